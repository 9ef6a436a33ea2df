package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nixiemq/nixie/internal/keystore"
	"github.com/nixiemq/nixie/jms"
	"github.com/spf13/cobra"
)

// What 'produce' and 'consume' have in common: they are clients of any broker that
// speaks OpenWire.

// A client is how to reach the broker.
type client struct {
	e        *env
	url      string
	user     string
	clientID string
	asJSON   bool
	quiet    bool
	trust    string
	keys     [2]string  // files of certificate and key
	mu       sync.Mutex // guards e.out
}

const clientHelp = `
DESTINATION is queue://NAME, topic://NAME, or a queue's name alone. --url is a broker URL
as Java clients have it, with its options:

  tcp://host:61616?jms.prefetchPolicy.queuePrefetch=1
  failover:(tcp://a:61616,tcp://b:61616)?maxReconnectAttempts=5
  ssl://host:61617

With ssl:// the broker must have a certificate that the system trusts, or --trust. Files are
PEM, or stores of Java's with the password in the environment variable ` + storePasswordVariable + `.`

// storePasswordVariable holds the password of files of certificates.
const storePasswordVariable = "NIXIE_STORE_PASSWORD"

func clientFlags(e *env, c *cobra.Command) *client {
	k := &client{e: e}
	f := c.Flags()
	f.StringVar(&k.url, "url", "tcp://127.0.0.1:61616", "broker `URL`, with its options")
	f.StringVar(&k.user, "user", "", "`name` to log in with; the password is taken from the environment variable "+passwordVariable)
	f.StringVar(&k.clientID, "client-id", "", "client `id` of the connection (default: one that nobody has)")
	f.BoolVar(&k.asJSON, "json", false, "print JSON, a line for each message and one for the summary")
	f.StringVar(&k.trust, "trust", "", "`file` of certificates to trust, with ssl:// (default: those of the system)")
	f.StringVar(&k.keys[0], "certificate", "", "`file` of the client's own certificate, with ssl://")
	f.StringVar(&k.keys[1], "key", "", "`file` of its private key, in PEM (default: it is in the same file)")
	f.BoolVarP(&k.quiet, "quiet", "q", false, "print the summary alone")
	return k
}

// factory makes the factory of the connections.
func (k *client) factory() (*jms.ConnectionFactory, error) {
	f, err := jms.NewConnectionFactory(k.url)
	if err != nil {
		return nil, usageError{fmt.Errorf("--url: %w", err)}
	}
	if k.user != "" {
		f.UserName = k.user
		f.Password, _ = k.e.lookup(passwordVariable)
	}
	f.ClientID = cmp.Or(k.clientID, f.ClientID)
	f.TLS, err = k.tls()
	return f, err
}

// tls is what the flags say of certificates.
func (k *client) tls() (*tls.Config, error) {
	c := &tls.Config{}
	password, _ := k.e.lookup(storePasswordVariable)
	if k.trust != "" {
		raw, err := os.ReadFile(k.trust)
		if err != nil {
			return nil, fmt.Errorf("--trust: %w", err)
		}
		trusted, err := keystore.Trusted(raw, password)
		if err != nil {
			return nil, fmt.Errorf("--trust %s: %w", k.trust, err)
		}
		c.RootCAs = x509.NewCertPool()
		for _, t := range trusted {
			c.RootCAs.AddCert(t)
		}
	}
	var raw []byte
	for _, name := range k.keys {
		if name == "" {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--certificate, --key: %w", err)
		}
		raw = append(append(raw, file...), '\n')
	}
	if raw != nil {
		var err error
		if c.Certificates, err = keystore.Keys(raw, password, password); err != nil {
			return nil, fmt.Errorf("--certificate %s: %w", k.keys[0], err)
		}
	}
	return c, nil
}

// connect opens a connection, and says what can be done where there is no broker, or it wants to know who asks.
func (k *client) connect(ctx context.Context, f *jms.ConnectionFactory) (*jms.Connection, error) {
	c, err := f.CreateConnection(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if noTLS(err) && strings.Contains(k.url, "ssl:") {
		return nil, fmt.Errorf("%w\nthe broker speaks no TLS there: take tcp:// for it, or the address of a listener with ssl://", err)
	}
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return nil, fmt.Errorf("%w\nname the broker's certificate, or that of who signed it, with --trust FILE; for another host name add ?socket.verifyHostName=false to the URL", err)
	}
	if errors.Is(err, jms.ErrUnavailable) {
		return nil, fmt.Errorf("%w\nis the broker running ('nixie serve'), and is this the openwire address that its ready line shows? Name another with --url", err)
	}
	if errors.Is(err, jms.ErrSecurity) {
		return nil, fmt.Errorf("%w\nlog in with --user NAME, and the password in the environment variable %s", err, passwordVariable)
	}
	return c, err
}

// noTLS reports whether the other end does not know what a TLS handshake is: it answers
// with something else, or ends the connection, whichever is seen first.
func noTLS(err error) bool {
	var plain tls.RecordHeaderError
	return errors.As(err, &plain) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// print writes a line for a message: v as JSON, or text.
func (k *client) print(text string, v any) error {
	if k.quiet {
		return nil
	}
	return k.printAlways(k.e.out, text, v)
}

// summary writes the last line: to standard error, where it is for people.
func (k *client) summary(text string, v any) error {
	if k.asJSON {
		return k.printAlways(k.e.out, "", v)
	}
	return k.printAlways(k.e.err, text, nil)
}

func (k *client) printAlways(w io.Writer, text string, v any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// destinationOf reads the argument.
func destinationOf(args []string) (jms.Destination, error) {
	if len(args) == 0 {
		return jms.Destination{}, usageError{errors.New("name a destination, such as ORDERS or topic://NEWS")}
	}
	d, err := jms.ParseDestination(args[0])
	if err != nil {
		return d, usageError{err}
	}
	return d, nil
}

// share reads "10%" or "0.1".
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		f /= 100
	}
	if err != nil || f < 0 || f > 1 {
		return 0, usageError{fmt.Errorf("--fail %q is no share like 10%% or 0.1", text)}
	}
	return f, nil
}

// filler makes a text of so many bytes.
func filler(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz "
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// A pacer lets things happen so many times a second; 0: as fast as they can.
type pacer struct {
	rate  float64
	start time.Time
	n     int
}

// wait waits for the next turn.
func (p *pacer) wait(ctx context.Context) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	if p.start.IsZero() {
		p.start = time.Now()
	}
	at := p.start.Add(time.Duration(float64(p.n) / p.rate * float64(time.Second)))
	p.n++
	if d := time.Until(at); d > 0 {
		return sleep(ctx, d)
	}
	return ctx.Err()
}

// perSecond is a rate for people.
func perSecond(n int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}
