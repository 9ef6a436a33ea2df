package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// with makes options that differ from the default.
func with(change func(*ListenerOptions)) ListenerOptions {
	o := DefaultListenerOptions()
	change(&o)
	return o
}

func TestParseListener(t *testing.T) { // R-URI-21: the broker's half
	t.Parallel()
	d := DefaultListenerOptions()
	for name, c := range map[string]struct {
		uri     string
		host    string
		port    int
		options ListenerOptions
	}{
		"plain":                          {"tcp://127.0.0.1:61616", "127.0.0.1", 61616, d},
		"port 0 is left to the system":   {"tcp://localhost:0", "localhost", 0, d},
		"nio is served as tcp":           {"nio://10.0.0.1:1/", "10.0.0.1", 1, d},
		"scheme in capitals":             {"TCP://h:1?", "h", 1, d},
		"no host means all addresses":    {"tcp://:2", "", 2, d},
		"IPv6":                           {"tcp://[::1]:3", "::1", 3, d},
		"maximumConnections":             {"tcp://h:1?maximumConnections=7", "h", 1, with(func(o *ListenerOptions) { o.MaximumConnections = 7 })},
		"Java's largest int is no bound": {"tcp://h:1?maximumConnections=2147483647", "h", 1, d},
		"frame size":                     {"tcp://h:1?a=&wireFormat.maxFrameSize=1", "h", 1, with(func(o *ListenerOptions) { o.MaxFrameBytes = 1 })},
		"inactivity off":                 {"tcp://h:1?wireFormat.maxInactivityDuration=0", "h", 1, with(func(o *ListenerOptions) { o.MaxInactivity = 0 })},
		"monitor off wins":               {"tcp://h:1?transport.useInactivityMonitor=false&wireFormat.maxInactivityDuration=9", "h", 1, with(func(o *ListenerOptions) { o.MaxInactivity = 0 })},
		"monitor off wins from behind":   {"tcp://h:1?wireFormat.maxInactivityDuration=9&transport.useInactivityMonitor=false", "h", 1, with(func(o *ListenerOptions) { o.MaxInactivity = 0 })},
		"initial delay, both spellings":  {"tcp://h:1?wireFormat.maxInactivityDurationInitalDelay=1&wireFormat.maxInactivityDurationInitialDelay=2", "h", 1, with(func(o *ListenerOptions) { o.MaxInactivityInitialDelay = 2 * time.Millisecond })},
		"socket":                         {"tcp://h:1?transport.socketBufferSize=4096&wireFormat.tcpNoDelayEnabled=false&transport.keepAlive=false", "h", 1, with(func(o *ListenerOptions) { o.SocketBufferBytes, o.NoDelay, o.KeepAlive = 4096, false, false })},
		"escapes":                        {"tcp://h:1?maximum%43onnections=%37", "h", 1, with(func(o *ListenerOptions) { o.MaximumConnections = 7 })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := parseListener(strings.Replace(c.uri, "a=&", "", 1))
			got := r.listener
			if len(r.errors)+len(r.warnings) != 0 || r.notOffer != "" {
				t.Fatalf("%+v", r)
			}
			if got.Host != c.host || got.Port != c.port || got.Protocol != OpenWire {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(c.options, got.Options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseListenerRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ uri, want string }{
		"nothing":                {"", "is not a URI"},
		"no scheme":              {"127.0.0.1:61616", "is not a URI"},
		"unknown scheme":         {"tpc://h:1", `"tpc" is not known; did you mean tcp?`},
		"no port":                {"tcp://h", "is not HOST:PORT"},
		"port too large":         {"tcp://h:65536", "from 0 to 65535"},
		"port in words":          {"tcp://h:http", "from 0 to 65535"},
		"a path":                 {"tcp://h/x:1", "is not a host"},
		"unknown option":         {"tcp://h:1?wireformat.maxFramSize=1", "did you mean wireFormat.maxFrameSize?"},
		"bad escape":             {"tcp://h:1?%zz=1", "badly escaped"},
		"frame of no size":       {"tcp://h:1?wireFormat.maxFrameSize=0", "between"},
		"negative":               {"tcp://h:1?maximumConnections=-1", "between"},
		"no number":              {"tcp://h:1?wireFormat.maxInactivityDuration=30s", "not a whole number"},
		"bad value, not offered": {"tcp://h:1?trace=perhaps", "neither true nor false"},
		"bad switch":             {"tcp://h:1?keepAlive=7", "neither true nor false"},
		"bad monitor":            {"tcp://h:1?transport.useInactivityMonitor=", "neither true nor false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := parseListener(c.uri)
			if len(r.errors) != 1 || !strings.Contains(r.errors[0], c.want) {
				t.Errorf("errors %q, want one with %q", r.errors, c.want)
			}
		})
	}
}

// TestEverySchemeIsKnown checks the schemes of spec section 7.4.
func TestEverySchemeIsKnown(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"tcp", "nio", "ssl", "nio+ssl", "auto", "auto+nio", "auto+ssl", "auto+nio+ssl", "amqp", "stomp", "mqtt", "ws", "wss", "vm"} {
		if r := parseListener(s + "://127.0.0.1:1"); len(r.errors) != 0 || isOffered(s) == (r.notOffer != "") {
			t.Errorf("%s: %+v", s, r)
		}
	}
}

// TestEveryOption checks every option of the table: the default is silent,
// another value is honoured or named.
func TestEveryOption(t *testing.T) {
	t.Parallel()
	for name, o := range uriOptions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o.tls {
				if r := parseListener("tcp://h:1?" + name + "=x"); len(r.errors) != 1 || !strings.Contains(r.errors[0], "ssl://") {
					t.Errorf("it is for TLS: %+v", r)
				}
			}
			if o.set != nil {
				scheme := map[bool]string{false: "tcp", true: "ssl"}[o.tls]
				differs, refuses := false, false
				for _, v := range []string{"false", "true", "77", "TLSv1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"} {
					r, without := parseListener(scheme+"://h:1?"+name+"="+v), parseListener(scheme+"://h:1")
					differs = differs || len(r.errors) == 0 && r.listener.Options != without.listener.Options
					refuses = refuses || len(r.errors) > 0
				}
				if strings.HasSuffix(name, "StoreType") || strings.HasSuffix(name, "verifyHostName") { // there is one way
					differs = refuses
				}
				if !differs {
					t.Error("honoured, and changes nothing")
				}
				return
			}
			if o.why == "" {
				t.Error("has no reason")
			}
			if r := parseListener("tcp://h:1?" + name + "=" + o.def); o.def != "" && len(r.errors)+len(r.warnings) != 0 {
				t.Errorf("the default is named: %+v", r)
			}
			value := other(attr{kind: o.kind, def: o.def})
			if r := parseListener("tcp://h:1?" + name + "=" + value); len(r.errors) != 0 || len(r.warnings) != 1 {
				t.Errorf("%s: %+v", value, r)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	if got := parseListener("tcp://[::1]:3").listener.Address(); got != "[::1]:3" {
		t.Errorf("got %s", got)
	}
}
