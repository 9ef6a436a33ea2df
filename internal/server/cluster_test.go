package server

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/config"
)

// TestBrokersFor: this broker first, as the list has it; the others as the filter lets
// them through.
func TestBrokersFor(t *testing.T) { // OpenWire 13
	t.Parallel()
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	_, port, _ := net.SplitHostPort(n.Addr().String())
	for name, c := range map[string]struct {
		host, filter string
		list         []config.ClusterBroker
		want         string
	}{
		"alone":                             {"127.0.0.1", "", nil, "tcp://127.0.0.1:P"},
		"a host as it is written":           {"localhost", "", []config.ClusterBroker{{URI: "tcp://b:1"}}, "tcp://localhost:P tcp://b:1"},
		"this one under its name":           {"", "", []config.ClusterBroker{{URI: "tcp://b:1"}, {Name: "me", URI: "ssl://me:2"}}, "ssl://me:2 tcp://b:1"},
		"this one by its address":           {"127.0.0.1", "x", []config.ClusterBroker{{URI: "tcp://127.0.0.1:P"}}, "tcp://127.0.0.1:P"},
		"a filter goes by the whole name":   {"127.0.0.1", "b, c.*", []config.ClusterBroker{{Name: "bb", URI: "tcp://b:1"}, {Name: "cc", URI: "tcp://c:1"}}, "tcp://127.0.0.1:P tcp://c:1"},
		"else by the URI":                   {"127.0.0.1", ".*//b:.*", []config.ClusterBroker{{URI: "tcp://b:1"}, {URI: "tcp://c:1"}}, "tcp://127.0.0.1:P tcp://b:1"},
		"of two kinds that of the listener": {"127.0.0.1", "", []config.ClusterBroker{{Name: "me", URI: "ssl://me:2"}, {Name: "me", URI: "tcp://me:1"}, {Name: "b", URI: "tcp://b:1"}, {Name: "b", URI: "nio+ssl://b:2"}, {Name: "c", URI: "ssl://c:1"}}, "tcp://me:1 tcp://b:1 ssl://c:1"},
		"a filter is not for this one":      {"127.0.0.1", "none", []config.ClusterBroker{{Name: "me", URI: "tcp://me:1"}, {Name: "b", URI: "tcp://b:1"}}, "tcp://me:1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listener{net: n, config: config.Listener{Host: c.host, Options: config.ListenerOptions{UpdateClusterFilter: c.filter}}}
			for i := range c.list {
				c.list[i].URI = strings.ReplaceAll(c.list[i].URI, "P", port)
			}
			got := strings.Join(brokersFor(l, &config.Config{BrokerName: "me", Cluster: c.list}), " ")
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "P", port), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPublished: an address that is no address is no use to clients.
func TestPublished(t *testing.T) {
	t.Parallel()
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, host := range []string{"", "0.0.0.0", "::"} {
		l := &listener{net: n, config: config.Listener{Host: host}}
		if got := l.published(); strings.Contains(got, "//:") || strings.Contains(got, "0.0.0.0") || strings.Contains(got, "::") {
			t.Errorf("%q is published as %s", host, got)
		}
	}
}
