package openwire

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// DefaultMaxFrameBytes is the largest frame that is taken unless configured
// otherwise: what ActiveMQ's own configuration file sets.
const DefaultMaxFrameBytes = 100 << 20

// Defaults of Limits.
const (
	defaultConnectAttemptTimeout = 30 * time.Second // OpenWire 2
	defaultStrangerTimeout       = 5 * time.Minute
	defaultWriteTimeout          = 30 * time.Second
	defaultReplies               = 4096
	defaultDeliveries            = 1 << 20
	defaultHeldBytes             = 1 << 20
	defaultPrefetch              = 1 << 16
	defaultObjects               = 1 << 16
)

// refusalDelay is how long a connection that was refused stays open, so that the
// peer can read why (OpenWire 9.3, 14).
const refusalDelay = 2 * time.Second

// Options are what a Server is made of.
type Options struct {
	Broker Broker
	// Advisories tell clients of each other's temporary destinations. All servers
	// of a broker share one. nil: nobody is told.
	Advisories *Advisories
	// Access says who clients are; nil: everybody is let in.
	Access     *access.Control
	BrokerName string
	BrokerID   string // OpenWire 9.4
	BrokerURL  string // where clients connect to, e.g. "tcp://host:61616"
	Listener   string // the name of the listener
	// Wishes tells the redelivery policies that clients of ours are to go by unless
	// their application has its own, as redelivery.Wishes writes them; asked for each
	// connection. nil: none.
	Wishes func() string
	// Names gives the destination that a client means by the one that it names;
	// message.ErrNotFound where there is none. nil: that one.
	Names func(message.Destination) (message.Destination, error)
	// DeliverAt is a property with which clients say when a message is to be delivered, in
	// milliseconds since 1970, beside ActiveMQ's own; "": none (R-HQ-93).
	DeliverAt string
	// LinkStealing lets a client take the client id of another connection over,
	// which is ended; else it is refused.
	LinkStealing bool
	// Directory tells clients of the brokers that they may use; its zero value: of none.
	Directory Directory
	Log       *slog.Logger
	Clock     clock.Clock // nil: the machine's
	// MaxFrameBytes is the largest frame taken; default DefaultMaxFrameBytes.
	MaxFrameBytes int64
	// MaxInactivity is the silence after which a peer is dead, and
	// InitialDelay the time before the first check (OpenWire 3.4). The peer's
	// smaller values win. Default 30 s and 10 s; a negative MaxInactivity turns
	// the monitor off.
	MaxInactivity time.Duration
	InitialDelay  time.Duration
	Limits        Limits
}

// Limits bound what one connection may cost. Zero values mean the defaults.
type Limits struct {
	// ConnectAttemptTimeout is how long a peer may take to its WireFormatInfo;
	// default 30 s.
	ConnectAttemptTimeout time.Duration
	// StrangerTimeout is how long a peer that has no client here, as it sent no
	// ConnectionInfo, may say nothing where no inactivity monitor watches it: a Java
	// connection sends its ConnectionInfo at its first use. Default 5 min.
	StrangerTimeout time.Duration
	// WriteTimeout is how long a peer may read nothing while data waits, and say
	// nothing either; then it is closed. Default 30 s.
	WriteTimeout time.Duration
	// Replies is how many answers may wait to be written before the connection is
	// read on; default 4096.
	Replies int
	// Deliveries is how many dispatches may wait to be written before the
	// connection is closed as too slow; default 1,048,576, some 200 MiB.
	Deliveries int
	// HeldBytes is how large the bodies of waiting dispatches may be together
	// before those that are in the store are left there until their turn; default
	// 1 MiB.
	HeldBytes int
	// Prefetch is the largest window of a consumer; one that asks for more is told
	// so with a ConsumerControl. Default 65,536.
	Prefetch int
	// Objects is how many sessions, producers, consumers and open transactions a
	// connection may have, of each; default 65,536.
	Objects int
	// Consumers and Producers are how many of them a client may open on a connection;
	// 0: as Objects says. The consumer of advisories that a Java connection opens for
	// itself does not count.
	Consumers, Producers int
}

func (o *Options) wishes() string {
	if o.Wishes == nil {
		return ""
	}
	return o.Wishes()
}

// A Server serves connections with the same options: those of one listener. It
// is safe for concurrent use.
type Server struct {
	o      Options
	format wire.WireFormat // what we announce

	stock       stock
	generations generations // of clients that come back
	interrupted interrupted // transactions of clients that may come back
	directory   *directory
}

// New checks the options.
func New(o Options) (*Server, error) {
	if o.Broker == nil {
		return nil, errors.New("openwire: no broker")
	}
	o.BrokerName = cmp.Or(o.BrokerName, "localhost")
	o.BrokerID = cmp.Or(o.BrokerID, o.BrokerName)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	o.MaxFrameBytes = cmp.Or(o.MaxFrameBytes, DefaultMaxFrameBytes)
	o.Limits = o.Limits.withDefaults()
	f := wire.DefaultWireFormat()
	f.MaxFrameSize = o.MaxFrameBytes
	f.MaxInactivityDuration = max(cmp.Or(o.MaxInactivity, f.MaxInactivityDuration), 0)
	f.InitialDelay = cmp.Or(o.InitialDelay, f.InitialDelay)
	if _, err := f.Info(); err != nil {
		return nil, fmt.Errorf("openwire: %w", err)
	}
	return &Server{o: o, format: f, directory: newDirectory(o.Directory)}, nil
}

func (l Limits) withDefaults() Limits {
	l.ConnectAttemptTimeout = cmp.Or(l.ConnectAttemptTimeout, defaultConnectAttemptTimeout)
	l.StrangerTimeout = cmp.Or(l.StrangerTimeout, defaultStrangerTimeout)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, defaultWriteTimeout)
	l.Replies = cmp.Or(l.Replies, defaultReplies)
	l.Deliveries = cmp.Or(l.Deliveries, defaultDeliveries)
	l.HeldBytes = cmp.Or(l.HeldBytes, defaultHeldBytes)
	l.Prefetch = cmp.Or(l.Prefetch, defaultPrefetch)
	l.Objects = cmp.Or(l.Objects, defaultObjects)
	return l
}
