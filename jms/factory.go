package jms

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/clock"
)

// DefaultURL is where a broker listens unless it is told otherwise.
const DefaultURL = "tcp://localhost:61616"

// A ConnectionFactory makes connections to a broker. Its fields may be changed
// until CreateConnection is called; each connection keeps a copy of its own, so that
// a change concerns later connections only (R-EDGE-24). It is safe for concurrent
// use as long as nobody changes it.
type ConnectionFactory struct {
	UserName string
	Password string
	// ClientID identifies the owner of durable subscriptions; "": generated.
	ClientID string
	Options  Options
	// Policies are the redelivery policies. A jms.redeliveryPolicy.* option of the URL
	// has set its default (R-URI-13).
	Policies RedeliveryPolicies
	// TLS is used for ssl; nil: the system's roots.
	TLS *tls.Config
	// Dial opens network connections; nil: a net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log is told of fail-overs and of what goes wrong behind the scenes; nil: nothing
	// is logged.
	Log *slog.Logger

	url   brokerURL
	text  string
	clock clock.Clock
}

// NewConnectionFactory reads a broker URL with its options (spec section 2.4):
//
//	tcp://host:61616?jms.prefetchPolicy.queuePrefetch=1
//	ssl://host:61617?socket.verifyHostName=false
//	failover:(tcp://a:61616,tcp://b:61616)?maxReconnectAttempts=5&jms.redeliveryPolicy.maximumRedeliveries=3
//
// "" is DefaultURL. What is unknown or does not fit is ErrInvalidOption, with every
// such option named; nothing is left out in silence.
func NewConnectionFactory(url string) (*ConnectionFactory, error) {
	if url == "" {
		url = DefaultURL
	}
	f := &ConnectionFactory{Options: DefaultOptions(), text: url, clock: clock.System{}}
	u, options, err := parseBrokerURL(url)
	if err != nil {
		return nil, err
	}
	f.url = u
	policy, asked := DefaultRedeliveryPolicy(), false
	for _, o := range options {
		asked = asked || len(o.name) > len("redeliveryPolicy.") && o.name[:len("redeliveryPolicy.")] == "redeliveryPolicy."
	}
	if err := apply("broker URL "+url, options, factorySetters(f, &policy)); err != nil {
		return nil, err
	}
	if asked {
		f.Policies.SetDefault(policy)
	}
	return f, nil
}

// URL is the broker URL as it was given.
func (f *ConnectionFactory) URL() string { return f.text }

// SetRedeliveryPolicy sets the policy of all destinations without one of their own.
func (f *ConnectionFactory) SetRedeliveryPolicy(p RedeliveryPolicy) { f.Policies.SetDefault(p) }

// CreateConnection connects to the broker. The connection delivers nothing before
// its Start. The context bounds the connecting, not the life of the connection;
// with failover and no bound on its attempts it is what ends them.
func (f *ConnectionFactory) CreateConnection(ctx context.Context) (*Connection, error) {
	c := newConnection(f)
	if err := c.open(ctx); err != nil {
		c.abandon(err)
		return nil, err
	}
	return c, nil
}

// ids counts connections of this process, so that their generated ids differ.
var ids atomic.Int64

// generatedID makes an id like ActiveMQ's: host, process, time, number.
func generatedID(prefix string, c clock.Clock) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return fmt.Sprintf("%s%s-%d-%d-%d:1", prefix, host, os.Getpid(), c.Now().UnixMilli(), ids.Add(1))
}

// jitter is uniform in (-1, 1).
func jitter() float64 { return 2*rand.Float64() - 1 }
