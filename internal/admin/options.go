package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/jolokia"
	"github.com/nixiemq/nixie/internal/message"
)

// Limits of requests and answers.
const (
	// MaxRequestBytes is the largest body of a request.
	MaxRequestBytes = 1 << 20
	// DefaultPageMessages is how many messages a page has where the request does
	// not say, MaxPageMessages how many it may ask for.
	DefaultPageMessages = 100
	MaxPageMessages     = 1000
	// MaxBodyBytes is how much of a message's body is shown.
	MaxBodyBytes = 256 << 10
	// SampleMessages is how many messages at a queue's head are looked at to tell
	// whether it holds dead letters.
	SampleMessages = 100
	// MaxSeries is how many queues, and how many subscriptions, have metrics of
	// their own; the others are summed up.
	MaxSeries = 1000
)

// Options are what the handler is made of.
type Options struct {
	// Broker is what is shown. It must not be nil.
	Broker *broker.Broker
	// Access says who people are; nil: nobody is asked. The probes (/livez, /healthz,
	// /readyz) ask nobody in any case.
	Access *access.Control
	// Version is the program's; default "unknown".
	Version string
	// Started is when the broker was started.
	Started time.Time
	// Clock tells the time; nil: the machine's.
	Clock clock.Clock
	// Log gets what people did, and errors of ours; nil: nowhere.
	Log *slog.Logger
	// Space tells the room under the store; nil: there is no disk.
	Space func() (Space, error)
	// Stopping reports whether the broker is about to stop; nil: never.
	Stopping func() bool
	// Config is the configuration that holds now; nil: questions about policies are
	// not answered.
	Config func() *config.Config
	// Reload reads the configuration again and makes hold what can; dry only tells the
	// difference. nil: there is nothing to reload.
	Reload func(ctx context.Context, dry bool) (*Reloaded, error)
	// MoveClients sends clients to other brokers, most at the most, and returns how many
	// could go and how many do; dry sends nobody. nil: there are no other brokers.
	MoveClients func(most int, dry bool) (could, moved int, err error)
	// Body decodes a message's body for people: limit is how many bytes of text
	// at the most; nil: bodies are not shown.
	Body func(m *message.Message, limit int) (Body, error)
	// Properties decodes a message's properties, with those that the broker has
	// added, to values that encoding/json takes; nil: those that the broker has
	// added.
	Properties func(*message.Message) (map[string]any, error)
	// Connectors lists the broker's listeners; nil: they are not known.
	Connectors func() []jolokia.Connector
	// Send sends a text message for people; nil: nobody can.
	Send func(ctx context.Context, to message.Destination, headers map[string]any, text string) (id string, err error)
}

// Space is the room on the disk under the store, in bytes; all zero where there is
// no disk.
type Space struct {
	FreeBytes  uint64 `json:"freeBytes"`
	TotalBytes uint64 `json:"totalBytes"`
	UsedBytes  uint64 `json:"usedBytes"` // by the store itself
}

// A surface answers requests. It has no state but its metrics.
type surface struct {
	o Options
	b *broker.Broker
}

// New makes the handler of the admin listener. It fails where Options.Broker is
// missing.
func New(o Options) (http.Handler, error) {
	if o.Broker == nil {
		return nil, errors.New("admin: no broker")
	}
	o.Version = cmp.Or(o.Version, "unknown")
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Space == nil {
		o.Space = func() (Space, error) { return Space{}, nil }
	}
	if o.Stopping == nil {
		o.Stopping = func() bool { return false }
	}
	if o.Properties == nil {
		o.Properties = func(m *message.Message) (map[string]any, error) { return m.Added, nil }
	}
	s := &surface{o: o, b: o.Broker}
	metrics, err := s.metrics()
	if err != nil {
		return nil, err
	}
	beans, err := s.beans()
	if err != nil {
		return nil, err
	}
	return s.routes(metrics, beans), nil
}
