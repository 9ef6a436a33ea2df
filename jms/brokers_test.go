package jms

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// between runs f with two brokers, a and b, at their addresses.
func between(t *testing.T, f func(t *testing.T, a, b *openwiretest.Room, dial dialer)) {
	t.Helper()
	betweenTold(t, openwire.Directory{}, f)
}

// betweenTold is between with brokers that tell their clients of others.
func betweenTold(t *testing.T, d openwire.Directory, f func(t *testing.T, a, b *openwiretest.Room, dial dialer)) {
	t.Helper()
	if reference != nil {
		t.Skip("it needs two brokers of its own")
	}
	synctest.Test(t, func(t *testing.T) {
		tells := func(_ *broker.Options, o *openwire.Options) { o.Directory = d }
		a, b := openwiretest.Open(t, tells), openwiretest.Open(t, tells)
		f(t, a, b, func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "a:61616" {
				return a.Dial(ctx, network, address)
			}
			return b.Dial(ctx, network, address)
		})
		a.Close()
		b.Close()
	})
}

// at names the broker that a connection is with.
func at(c *Connection) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return "none"
	}
	return c.link.endpoint.address[:1]
}

func TestSpareLinkIsUsed(t *testing.T) {
	between(t, func(t *testing.T, a, b *openwiretest.Room, dial dialer) {
		f, err := NewConnectionFactory("failover:(tcp://a,tcp://b)?randomize=false&backup=true")
		ok(t, err)
		f.Dial = dial
		c := connect(t, f)
		rest(5 * time.Minute) // the spare link is kept alive
		if at(c) != "a" || b.Dials() != 1 {
			t.Errorf("with %s; %d links to b", at(c), b.Dials())
		}
		a.Stop()
		rest(time.Millisecond)
		if at(c) != "b" || b.Dials() != 1 {
			t.Errorf("after the fail-over with %s; %d links to b", at(c), b.Dials())
		}
		send(t, session(t, c, AutoAcknowledge), Queue("Q"), "x")
		ok(t, c.Close())
	})
}

func TestPriorityBackupGoesHome(t *testing.T) {
	between(t, func(t *testing.T, a, b *openwiretest.Room, dial dialer) {
		f, err := NewConnectionFactory("failover:(tcp://a,tcp://b)?priorityBackup=true")
		ok(t, err)
		f.Dial = dial
		a.Stop()
		c := connect(t, f)
		if at(c) != "b" {
			t.Errorf("with %s", at(c))
		}
		a.Start()
		rest(5 * time.Second)
		if at(c) != "a" {
			t.Errorf("with %s after the preferred one came back", at(c))
		}
		send(t, session(t, c, AutoAcknowledge), Queue("Q"), "x")
		ok(t, c.Close())
	})
}

// OpenWire 13: the broker sends its clients elsewhere.
func TestTheBrokerSendsClientsElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		url     string
		control wire.ConnectionControl
		want    string
	}{
		"reconnectTo":                       {"failover:(tcp://a)", wire.ConnectionControl{ReconnectTo: wire.NewText("tcp://b")}, "b"},
		"connectedBrokers alone":            {"failover:(tcp://a)", wire.ConnectionControl{ConnectedBrokers: wire.NewText("tcp://b,tcp://a")}, "a"},
		"connectedBrokers with rebalancing": {"failover:(tcp://a)", wire.ConnectionControl{ConnectedBrokers: wire.NewText("tcp://b,tcp://a"), RebalanceConnection: true}, "b"},
		"updateURIsSupported=false":         {"failover:(tcp://a)?updateURIsSupported=false", wire.ConnectionControl{ConnectedBrokers: wire.NewText("tcp://b"), RebalanceConnection: true}, "a"},
		"a plain connection stays":          {"tcp://a", wire.ConnectionControl{ReconnectTo: wire.NewText("tcp://b")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			between(t, func(t *testing.T, _, _ *openwiretest.Room, dial dialer) {
				f, err := NewConnectionFactory(tt.url)
				ok(t, err)
				f.Dial = dial
				c := connect(t, f)
				c.mu.Lock()
				l := c.link
				c.mu.Unlock()
				c.received(l, &tt.control)
				rest(time.Second)
				if at(c) != tt.want {
					t.Errorf("with %s, want %s", at(c), tt.want)
				}
				ok(t, c.Close())
			})
		})
	}
}

// TestClientsSpread: two brokers that ask their clients to spread, as NixieMQ does.
func TestClientsSpread(t *testing.T) { // OpenWire 13
	d := openwire.Directory{Update: true, Rebalance: true, Brokers: []string{"tcp://a:61616", "tcp://b:61616"}}
	betweenTold(t, d, func(t *testing.T, a, _ *openwiretest.Room, dial dialer) {
		f, err := NewConnectionFactory("failover:(tcp://a)")
		ok(t, err)
		f.Dial = dial
		var where []string
		var all []*Connection
		for range 6 {
			c := connect(t, f)
			rest(time.Second)
			where = append(where, at(c))
			all = append(all, c)
			send(t, session(t, c, AutoAcknowledge), Queue("Q"), "x")
		}
		if got := strings.Join(where, ""); got != "ababab" {
			t.Errorf("six clients are with %s", got)
		}
		a.Stop() // those that knew a alone have learnt of b
		rest(time.Minute)
		for i, c := range all {
			if at(c) != "b" {
				t.Errorf("client %d is with %s", i, at(c))
			}
			ok(t, c.Close())
		}
		a.Start()
	})
}

// TestClientIsSentAway: a client with a transaction, and with prefetched messages, is
// sent to another broker. Nothing is lost, what was only prefetched is not charged, and
// it is not sent back.
func TestClientIsSentAway(t *testing.T) { // R-EDGE-05
	d := openwire.Directory{Update: true, Rebalance: true, Brokers: []string{"tcp://a:61616"}}
	betweenTold(t, d, func(t *testing.T, a, b *openwiretest.Room, dial dialer) {
		f, err := NewConnectionFactory("failover:(tcp://a)")
		ok(t, err)
		f.Dial = dial
		c := connect(t, f)
		send(t, session(t, c, AutoAcknowledge), Queue("Q"), "0", "1", "2")
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Queue("Q")))(t)
		must(k.Receive(t.Context()))(t)
		send(t, s, Queue("OUT"), "sent")
		a.SetBrokers("tcp://a:61616", "tcp://b:61616")
		rest(time.Second)
		if at(c) != "b" {
			t.Fatalf("with %s", at(c))
		}
		if err := s.Commit(t.Context()); !errors.Is(err, ErrTransactionRolledBack) {
			t.Errorf("commit: %v", err)
		}
		rest(time.Minute)
		if at(c) != "b" {
			t.Errorf("with %s a while later", at(c))
		}
		ok(t, c.Close())
		f, err = NewConnectionFactory("tcp://a")
		ok(t, err)
		f.Dial = dial
		c = connect(t, f)
		k = must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("Q")))(t)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("a has %v", got)
		}
		k = must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("OUT")))(t)
		if got := texts(t, k, time.Second); len(got) > 0 {
			t.Errorf("a has %v that was rolled back", got)
		}
		ok(t, c.Close())
	})
}

// TestBrokersOverHTTP: a list that is asked for each time. It is no list of ours where
// the server says so.
func TestBrokersOverHTTP(t *testing.T) {
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/brokers" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "tcp://b:1,tcp://c\ntcp://d\n")
	}))
	defer list.Close()
	got, err := endpointsFrom(t.Context(), list.URL+"/brokers")
	ok(t, err)
	var addresses []string
	for _, e := range got {
		addresses = append(addresses, e.address)
	}
	if want := []string{"b:1", "c:61616", "d:61616"}; !slices.Equal(addresses, want) {
		t.Errorf("got %v, want %v", addresses, want)
	}
	for where, want := range map[string]error{list.URL + "/other": ErrUnavailable, "ftp://x/brokers": ErrInvalidOption} {
		if got, err := endpointsFrom(t.Context(), where); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", where, got, err)
		}
	}
}

func TestBrokersFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "brokers")
	ok(t, os.WriteFile(file, []byte("tcp://b\n"), 0o600))
	between(t, func(t *testing.T, a, _ *openwiretest.Room, dial dialer) {
		a.Stop()
		f, err := NewConnectionFactory("failover:(tcp://a)?updateURIsURL=file:" + file)
		ok(t, err)
		f.Dial = dial
		c := connect(t, f)
		if at(c) != "b" {
			t.Errorf("with %s", at(c))
		}
		ok(t, c.Close())
		a.Start()
	})
}

// trackMessages: what nobody waited for is sent again after a fail-over.
func TestTrackMessages(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "failover:(tcp://room)?trackMessages=true&jms.useAsyncSend=true"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("one")))
		rest(time.Second)
		r.Cut()
		ok(t, p.Send(t.Context(), NewText("two")))
		rest(time.Second)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if got := texts(t, k, time.Second); len(got) != 2 || got[0] != "one" || got[1] != "two" {
			t.Errorf("got %v", got)
		}
		ok(t, c.Close())
	})
}

// certificate makes one for a host, and the pool that trusts it.
func certificate(t testing.TB, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	ok(t, err)
	parsed, err := x509.ParseCertificate(der)
	ok(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		url   string
		trust bool
		works bool
	}{
		"right name":                        {"ssl://broker.example", true, true},
		"wrong name":                        {"ssl://other.example", true, false},
		"wrong name, verifyHostName=false":  {"ssl://other.example?socket.verifyHostName=false", true, true},
		"not trusted":                       {"ssl://broker.example", false, false},
		"not trusted, verifyHostName=false": {"ssl://other.example?socket.verifyHostName=false", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inRoom(t, func(t *testing.T, r *openwiretest.Room) {
				cert, pool := certificate(t, "broker.example")
				f := factory(t, r, tt.url)
				f.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
				if tt.trust {
					f.TLS.RootCAs = pool
				}
				var relays sync.WaitGroup
				f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					plain, err := r.Dial(ctx, network, address)
					if err != nil {
						return nil, err
					}
					ours, theirs := net.Pipe()
					secure := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{cert}})
					relays.Go(func() { io.Copy(plain, secure); plain.Close(); theirs.Close() })
					relays.Go(func() { io.Copy(secure, plain); plain.Close(); theirs.Close() })
					return ours, nil
				}
				c, err := f.CreateConnection(t.Context())
				if (err == nil) != tt.works {
					t.Fatalf("connect: %v", err)
				}
				if err == nil {
					send(t, session(t, c, AutoAcknowledge), Queue("A"), "x")
					ok(t, c.Close())
				} else if !errors.Is(err, ErrUnavailable) {
					t.Errorf("connect: %v", err)
				}
				relays.Wait()
			})
		})
	}
}
