package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
)

const (
	// handshakeTime is how long a TLS handshake may take. Artemis has as much.
	handshakeTime = 10 * time.Second
	// Of a client that was refused, so much is still read for so long: else the system
	// would throw away the alert that tells the client why.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
	// expiryNotice is how long before its end a certificate is warned about.
	expiryNotice = 30 * 24 * time.Hour
)

// A secureConn is a connection with TLS. One that is cut, without TLS's own goodbye, ends
// as others do: whether that was within a frame, its reader knows.
type secureConn struct{ *tls.Conn }

// Read reads what was encrypted.
func (c secureConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// handshake makes a connection with TLS of one that has been accepted. Where that fails
// the connection is closed, and it was logged why.
func (l *listener) handshake(ctx context.Context, conn net.Conn, c *tls.Config) (_ net.Conn, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	secure := tls.Server(conn, c)
	err := secure.HandshakeContext(ctx)
	if err == nil {
		return secureConn{secure}, true
	}
	l.unsecured(conn, err)
	l.linger(conn)
	return nil, false
}

// linger closes a connection to which an alert may have been written.
func (l *listener) linger(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = conn.SetReadDeadline(l.clock.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, conn, lingerBytes)
	}
	_ = conn.Close()
}

// unsecured logs why a handshake failed, and what can be done. Of those that fail alike
// one is told now and then: a client comes again and again.
func (l *listener) unsecured(conn net.Conn, err error) {
	remedy := remedyOf(err)
	if remedy == "" && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, context.Canceled)) {
		l.log.Debug("hung up in the TLS handshake", "listener", l.uri(), "peer", conn.RemoteAddr(), "err", err)
		return // whoever only looks whether someone listens; or the broker stops
	}
	l.failures.Lock()
	if l.failed == nil {
		l.failed = map[string]*seldom{}
	}
	if l.failed[remedy] == nil {
		l.failed[remedy] = &seldom{}
	}
	more, tell := l.failed[remedy].now(l.clock.Now())
	l.failures.Unlock()
	if tell {
		attrs := []any{slog.String("listener", l.uri()), slog.Any("peer", conn.RemoteAddr()), slog.Any("err", err), slog.Int("more_like_it", more)}
		if remedy != "" {
			attrs = append(attrs, slog.String("remedy", remedy))
		}
		l.log.Warn("connection refused: its TLS handshake failed", attrs...)
	}
}

// Remedies for handshakes that fail, by what the error of crypto/tls says. Those with a
// type are in remedyOf.
var handshakeRemedies = []struct{ says, remedy string }{
	{"didn't provide a certificate", "the listener has needClientAuth: give the client a certificate (javax.net.ssl.keyStore) that the broker's trust store vouches for; clients do not show others"},
	{"remote error: tls: unknown certificate authority", clientDistrusts},
	{"remote error: tls: bad certificate", clientDistrusts},
	{"remote error: tls: unknown certificate", clientDistrusts}, // which Java sends for all that it finds wrong
	{"remote error: tls: expired certificate", "the client takes the broker's certificate for expired: renew it, or set the clocks"},
	{"remote error: tls: protocol version not supported", versionsDiffer},
	{"offered only unsupported versions", versionsDiffer},
	{"no cipher suite supported by both", "client and listener have no cipher suite in common: look at enabledCipherSuites of both, and at the kind of key (RSA, EC) of the broker's certificate"},
	{"remote error: tls: handshake failure", "client and listener have no protocol version or cipher suite in common: look at enabledProtocols and enabledCipherSuites of both"},
}

const (
	clientDistrusts = "the client does not trust the broker's certificate: put it, or that of who signed it, into the client's trust store (javax.net.ssl.trustStore); one with another host name needs socket.verifyHostName=false in the client's URL"
	versionsDiffer  = "client and listener have no version of TLS in common: from TLS 1.2 on all are spoken, unless enabledProtocols says less"
)

// remedyOf says what can be done about a handshake that failed; empty: it is not known.
func remedyOf(err error) string {
	var plain tls.RecordHeaderError
	var unverified *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the client did not end its handshake within %v: it is very slow, or does not know TLS", handshakeTime)
	case errors.As(err, &plain) && plain.Conn != nil:
		switch protocol := openwire.Speaks(plain.RecordHeader[:]); protocol {
		case "OpenWire":
			return "the client speaks OpenWire without TLS: write ssl:// in its URL, or let it go to a listener of tcp://"
		case "":
			return "the client does not speak TLS: it may have come to the wrong port"
		default:
			return "the client speaks " + protocol + ", and not TLS: it may have come to the wrong port"
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the client's certificate has expired, or does not hold yet: renew it, or set the clocks"
	case errors.As(err, &unverified):
		return "the broker does not trust the client's certificate: put it, or that of who signed it, into the broker's trust store, and reload the configuration"
	}
	for _, r := range handshakeRemedies {
		if strings.Contains(err.Error(), r.says) {
			return r.remedy
		}
	}
	return ""
}

// setSecure serves clients that come from now on with the certificates of a
// configuration's listeners, which are in the order of the server's own.
func (s *Server) setSecure(listeners []config.Listener) {
	for i, l := range s.listeners {
		n := listeners[i].Secure
		if n == nil {
			continue
		}
		l.secure.Store(n.TLS)
		for _, c := range n.TLS.Certificates {
			switch left := c.Leaf.NotAfter.Sub(s.o.Clock.Now()); {
			case left <= 0:
				s.o.Log.Warn("the broker's certificate has expired, and clients refuse it: renew it, and reload the configuration", "listener", l.uri(), "subject", c.Leaf.Subject.String(), "until", c.Leaf.NotAfter.UTC())
			case left < expiryNotice:
				s.o.Log.Warn("the broker's certificate expires soon: renew it, and reload the configuration", "listener", l.uri(), "subject", c.Leaf.Subject.String(), "until", c.Leaf.NotAfter.UTC())
			}
		}
	}
}
