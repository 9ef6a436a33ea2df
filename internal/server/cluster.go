package server

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
)

// directory is what the clients of a listener are told of the brokers that they may
// use.
func (s *Server) directory(l *listener) openwire.Directory {
	o := l.config.Options
	return openwire.Directory{Update: o.UpdateClusterClients, Rebalance: o.RebalanceClusterClients, OnRemove: o.UpdateClusterClientsOnRemove,
		Brokers: brokersFor(l, s.Config())}
}

// brokersFor lists the brokers for the clients of a listener: this one, then those of
// the configuration that updateClusterFilter lets through. This one is told as the list
// has it, if it is there under its name or the listener's address.
func brokersFor(l *listener, c *config.Config) []string {
	own, named := l.published(), false
	pass, err := config.ClusterFilter(l.config.Options.UpdateClusterFilter)
	if err != nil { // config has checked it
		pass = func(string) bool { return false }
	}
	var others []string
	for _, b := range c.Cluster {
		if otherKind(l, b, c.Cluster) {
			continue
		}
		name := b.Name
		if name == "" {
			name = b.URI
		}
		switch {
		case b.Name == c.BrokerName && !named:
			own, named = b.URI, true
		case b.URI == l.published() || b.Name == c.BrokerName:
		case pass(name):
			others = append(others, b.URI)
		}
	}
	return append([]string{own}, others...)
}

// otherKind reports whether a broker is listed once more, under the same name, with an
// address for clients that come as those of the listener do, with TLS or without, as b's is not.
func otherKind(l *listener, b config.ClusterBroker, all []config.ClusterBroker) bool {
	fits := func(o config.ClusterBroker) bool {
		return strings.Contains(schemeOf(o.URI), "ssl") == l.config.Options.TLS.On
	}
	return b.Name != "" && !fits(b) && slices.ContainsFunc(all, func(o config.ClusterBroker) bool { return o.Name == b.Name && fits(o) })
}

func schemeOf(uri string) string {
	scheme, _, _ := strings.Cut(uri, "://")
	return strings.ToLower(scheme)
}

// published is the listener's address as others see it: where it listens on all
// addresses, by the machine's name, as in ActiveMQ.
func (l *listener) published() string {
	host := l.config.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if name, err := os.Hostname(); err == nil && name != "" {
			host = name
		}
	}
	return l.config.Scheme() + "://" + net.JoinHostPort(host, strconv.Itoa(l.net.Addr().(*net.TCPAddr).Port))
}

// tellClients tells connected clients where the list of brokers has changed.
func (s *Server) tellClients(c *config.Config) {
	for _, l := range s.listeners {
		if n := l.setBrokers(brokersFor(l, c)); n > 0 {
			s.o.Log.Info("clients were told of the brokers that they may use", "listener", l.uri(), "clients", n)
		}
	}
}

// MoveClients ends connections of clients that have been told of other brokers, most at
// the most, so that they go there; see openwire.Server.MoveClients. It fails with
// ErrState where no listener tells its clients of others.
func (s *Server) MoveClients(most int, dry bool) (could, sent int, err error) {
	tells := false
	for _, l := range s.listeners {
		tells = tells || l.config.Options.UpdateClusterClients && len(brokersFor(l, s.Config())) > 1
		c, n := l.moveClients(most-sent, dry)
		could, sent = could+c, sent+n
	}
	if !tells {
		return 0, 0, fmt.Errorf("no listener tells its clients of other brokers: give it updateClusterClients=true, and list the brokers as cluster: %w", message.ErrState)
	}
	return could, sent, nil
}
