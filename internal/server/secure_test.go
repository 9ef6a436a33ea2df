package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
)

// certificate makes one that signs itself and holds until then, and trust in it.
func certificate(t testing.TB, name string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// A handshaker is a listener with TLS without a socket to listen at.
type handshaker struct {
	*listener
	log bytes.Buffer
}

func newHandshaker() *handshaker {
	h := &handshaker{}
	h.listener = &listener{net: deafListener{}, clock: clock.System{}}
	h.listener.config.Options.TLS.On = true
	h.listener.log = slog.New(slog.NewTextHandler(&h.log, nil))
	return h
}

// A deafListener has an address, and nothing more.
type deafListener struct{ net.Listener }

func (deafListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 61617} }

// TestHandshakesThatFail: whoever comes without what is asked for is told of in the log
// once, with what can be done, and has its connection closed.
func TestHandshakesThatFail(t *testing.T) {
	t.Parallel()
	far := time.Now().Add(100 * 365 * 24 * time.Hour)
	own, trustOwn := certificate(t, "broker", far)
	_, trustClient := certificate(t, "client", far)
	stranger, _ := certificate(t, "stranger", far)
	old, trustOld := certificate(t, "old", time.Now().Add(-30*365*24*time.Hour))
	need := &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trustClient}
	plain := &tls.Config{Certificates: []tls.Certificate{own}}
	says := func(bytes string) func(net.Conn) error {
		return func(c net.Conn) error {
			if _, err := io.WriteString(c, bytes); err != nil {
				return err
			}
			_, err := c.Read(make([]byte, 1))
			return err
		}
	}
	with := func(c *tls.Config) func(net.Conn) error {
		c.ServerName = "broker"
		return func(conn net.Conn) error {
			t := tls.Client(conn, c)
			if err := t.Handshake(); err != nil {
				return err
			}
			_, err := t.Read(make([]byte, 1))
			return err
		}
	}
	for name, c := range map[string]struct {
		secure *tls.Config
		client func(net.Conn) error
		want   string // in the log; empty: nothing
	}{
		"OpenWire without TLS":                  {plain, says("\x00\x00\x00\xf0\x01ActiveMQ"), "speaks OpenWire without TLS: write ssl://"},
		"HTTP":                                  {plain, says("GET / HTTP/1.1\r\n\r\n"), "speaks HTTP, and not TLS"},
		"something else":                        {plain, says("\xff\xff\xff\xff\xff\xff"), "does not speak TLS"},
		"silence":                               {plain, says(""), "within 10s"},
		"looks whether someone listens":         {plain, func(c net.Conn) error { return c.Close() }, ""},
		"does not trust the broker":             {plain, with(&tls.Config{RootCAs: trustClient}), "does not trust the broker's certificate"},
		"no certificate":                        {need, with(&tls.Config{RootCAs: trustOwn}), "needClientAuth: give the client a certificate"},
		"no certificate, TLS 1.2":               {need, with(&tls.Config{RootCAs: trustOwn, MaxVersion: tls.VersionTLS12}), "needClientAuth: give the client a certificate"},
		"a certificate nobody knows, not shown": {need, with(&tls.Config{RootCAs: trustOwn, Certificates: []tls.Certificate{stranger}}), "clients do not show others"},
		"a certificate nobody knows": {need, with(&tls.Config{RootCAs: trustOwn, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &stranger, nil
		}}), "does not trust the client's certificate"},
		"a certificate of old": {&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trustOld},
			with(&tls.Config{RootCAs: trustOwn, Certificates: []tls.Certificate{old}}), "certificate has expired"},
		"other versions": {&tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}, with(&tls.Config{RootCAs: trustOwn, MaxVersion: tls.VersionTLS12}), "no version of TLS in common"},
		"other suites": {&tls.Config{Certificates: []tls.Certificate{own}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}},
			with(&tls.Config{RootCAs: trustOwn, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, MaxVersion: tls.VersionTLS12}), "no cipher suite in common"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHandshaker()
				for range 3 {
					theirs, ours := net.Pipe()
					ended := make(chan error, 1)
					go func() { ended <- c.client(theirs) }()
					if _, ok := h.handshake(t.Context(), ours, c.secure); ok {
						t.Fatal("it was let in")
					}
					if err := <-ended; err == nil && c.want != "" {
						t.Error("the client has not learnt of it")
					}
					theirs.Close()
				}
				log := h.log.String()
				switch {
				case c.want == "" && log != "":
					t.Errorf("in the log is\n%s", log)
				case c.want != "" && !strings.Contains(log, c.want):
					t.Errorf("in the log is no %q:\n%s", c.want, log)
				case c.want != "" && name != "silence" && strings.Count(log, "\n") != 1:
					t.Errorf("three times in the log:\n%s", log)
				}
			})
		})
	}
}

// TestHandshakeEndsWithTheBroker: a client that says nothing holds nobody.
func TestHandshakeEndsWithTheBroker(t *testing.T) {
	t.Parallel()
	own, _ := certificate(t, "broker", time.Now().Add(time.Hour))
	synctest.Test(t, func(t *testing.T) {
		h := newHandshaker()
		theirs, ours := net.Pipe()
		defer theirs.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		if _, ok := h.handshake(ctx, ours, &tls.Config{Certificates: []tls.Certificate{own}}); ok || time.Since(start) != time.Second {
			t.Errorf("after %v", time.Since(start))
		}
		if h.log.Len() > 0 {
			t.Error(h.log.String())
		}
	})
}

// TestCutIsTheEnd: a client whose connection is cut has hung up, with TLS as without.
func TestCutIsTheEnd(t *testing.T) {
	t.Parallel()
	own, trust := certificate(t, "broker", time.Now().Add(100*365*24*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		h := newHandshaker()
		theirs, ours := net.Pipe()
		go func() {
			c := tls.Client(theirs, &tls.Config{ServerName: "broker", RootCAs: trust})
			_, _ = io.WriteString(c, "x")
			theirs.Close()
		}()
		c, ok := h.handshake(t.Context(), ours, &tls.Config{Certificates: []tls.Certificate{own}})
		if !ok {
			t.Fatal(h.log.String())
		}
		b := make([]byte, 2)
		if n, err := c.Read(b); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := c.Read(b); err != io.EOF {
			t.Errorf("the end is %v", err)
		}
		_ = c.Close()
	})
}

// TestAdvertisedWithTLS: what clients are told of is how they can come.
func TestAdvertisedWithTLS(t *testing.T) {
	t.Parallel()
	h := newHandshaker()
	h.config.Host = "broker"
	if h.uri() != "ssl://127.0.0.1:61617" || h.published() != "ssl://broker:61617" {
		t.Errorf("%s, published as %s", h.uri(), h.published())
	}
}
