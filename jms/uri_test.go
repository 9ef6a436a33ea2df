package jms

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBrokerURLs(t *testing.T) {
	t.Parallel()
	for url, check := range map[string]func(f *ConnectionFactory) bool{
		"": func(f *ConnectionFactory) bool { return f.url.endpoints[0].address == "localhost:61616" },
		"tcp://host": func(f *ConnectionFactory) bool {
			return f.url.endpoints[0].address == "host:61616" && !f.url.endpoints[0].tls
		},
		"ssl://[::1]?socket.verifyHostName=false": func(f *ConnectionFactory) bool {
			e := f.url.endpoints[0]
			return e.address == "[::1]:61617" && e.tls && !e.o.verifyHostName
		},
		"nio+ssl://h:1": func(f *ConnectionFactory) bool { return f.url.endpoints[0].tls },
		// R-URI-10, R-URI-11, R-URI-13, R-URI-21
		"tcp://host:61616?jms.redeliveryPolicy.maximumRedeliveries=3&jms.useAsyncSend=true": func(f *ConnectionFactory) bool {
			return f.Policies.fallback.MaximumRedeliveries == 3 && f.Policies.fallback.RedeliveryDelay == time.Second && f.Options.Send.UseAsyncSend
		},
		"failover:(tcp://a:61616,tcp://b:61616)?jms.redeliveryPolicy.initialRedeliveryDelay=0&maxReconnectAttempts=3": func(f *ConnectionFactory) bool {
			return len(f.url.endpoints) == 2 && f.url.endpoints[1].address == "b:61616" && f.url.failover.maxReconnectAttempts == 3 && f.Policies.fallback.InitialRedeliveryDelay == 0
		},
		"failover://(tcp://a,ssl://b)?randomize=false&nested.wireFormat.maxInactivityDuration=1000": func(f *ConnectionFactory) bool {
			return !f.url.failover.randomize && f.url.endpoints[0].o.format.MaxInactivityDuration == time.Second && f.url.endpoints[1].tls
		},
		"failover:tcp://a:1?wireFormat.cacheEnabled=false&timeout=3000": func(f *ConnectionFactory) bool {
			return f.url.failover.timeout == 3*time.Second && !f.url.endpoints[0].o.format.CacheEnabled
		},
		"failover:tcp://a:1,tcp://b:2": func(f *ConnectionFactory) bool { return len(f.url.endpoints) == 2 },
		"failover:(failover:(tcp://a,tcp://b?soTimeout=3),static:(tcp://c))?timeout=1": func(f *ConnectionFactory) bool {
			return len(f.url.endpoints) == 3 && f.url.failover.timeout == time.Millisecond
		},
		"tcp://h?jms.prefetchPolicy.all=7&jms.clientID=a%20b&jms.closeTimeout=1": func(f *ConnectionFactory) bool {
			return f.Options.Prefetch.Queue == 7 && f.Options.Prefetch.OptimizeDurableTopic == 7 && f.ClientID == "a b" && f.Options.Timeouts.Close == time.Millisecond
		},
		"tcp://h?jms.prefetchPolicy.queuePrefetch=99999": func(f *ConnectionFactory) bool { return f.Options.Prefetch.Queue == 32767 },
		// R-POL-01, better: both spellings
		"tcp://h?jms.redeliveryPolicy.collisionAvoidancePercent=30": func(f *ConnectionFactory) bool { return f.Policies.fallback.CollisionAvoidanceFactor == 0.3 },
		"tcp://h?jms.redeliveryPolicy.collisionAvoidanceFactor=0.2": func(f *ConnectionFactory) bool { return f.Policies.fallback.CollisionAvoidanceFactor == 0.2 },
	} {
		f, err := NewConnectionFactory(url)
		if err != nil || !check(f) {
			t.Errorf("%q: %+v, %v", url, f, err)
		}
	}
}

// R-URI-12: what is not known is refused, all of it, and named.
func TestBadBrokerURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"host:61616": {"there is no transport", "tcp://HOST:PORT"},
		"http://h":   {`no transport "http"`},
		"tcp://":     {"no host"},
		"tcp://h?jms.nonsense=1&jms.useAsyncSend=x":            {"nonsense: unknown", `useAsyncSend: "x" is neither true nor false`},
		"tcp://h?jms.useasyncsend=true":                        {"did you mean useAsyncSend?"},
		"tcp://h?nonsense=1":                                   {"nonsense: unknown"},
		"tcp://h?wireFormat.cacheSize=50":                      {"cache size 50"},
		"failover:(tcp://a":                                    {"not closed"},
		"failover:()":                                          {"lists no broker"},
		"failover:(tcp://a)?maxReconnects=1":                   {"maxReconnects: unknown"},
		"failover:(tcp://a?x=1)":                               {"x: unknown"},
		"tcp://h?jms.redeliveryPolicy.maximumRedeliveries=six": {`"six" is no whole number`},
	} {
		_, err := NewConnectionFactory(url)
		if !errors.Is(err, ErrInvalidOption) {
			t.Errorf("%q: %v", url, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) && url != "host:61616" {
				t.Errorf("%q: %v, want %q in it", url, err, w)
			}
		}
	}
}

// R-URI-20
func TestDestinationOptions(t *testing.T) {
	t.Parallel()
	f, err := NewConnectionFactory("")
	ok(t, err)
	s := &Session{c: newConnection(f), mode: AutoAcknowledge}
	defer s.c.abandon(ErrClosed)
	i, err := s.consumerInfo(Queue("A?consumer.prefetchSize=1&consumer.exclusive=true&consumer.priority=7&consumer.selector=a%3D1"), &consumerOptions{prefetch: -1})
	ok(t, err)
	if i.Destination.PhysicalName != "A" || i.PrefetchSize != 1 || !i.Exclusive || i.Priority != 7 || i.Selector.Value != "a=1" {
		t.Errorf("%+v", i)
	}
	for _, bad := range []string{"A?consumer.nonsense=1", "A?nonsense=1", "A?consumer.redeliveryPolicy.maximumRedeliveries=1"} {
		if _, err := s.consumerInfo(Queue(bad), &consumerOptions{prefetch: -1}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"A": "queue://A", "topic://T?x=1": "topic://T", "temp-queue://ID:x:1": "temp-queue://ID:x:1"} {
		d, err := ParseDestination(s)
		if err != nil || d.String() != want {
			t.Errorf("%q: %v, %v", s, d, err)
		}
	}
	if Topic("T").String() != "topic://T" || Topic("queue://Q").String() != "queue://Q" || !Queue("").IsZero() {
		t.Error("a kind is lost")
	}
	if _, err := ParseDestination(" ?a=b"); !errors.Is(err, ErrInvalidDestination) {
		t.Errorf("no name: %v", err)
	}
}
