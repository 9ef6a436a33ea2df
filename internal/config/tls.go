package config

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/keystore"
)

// A KeyFile is a file of certificates: PEM, or a store of Java's.
type KeyFile struct {
	// Path is the file, relative to the working directory; empty: there is none.
	Path string
	// KeyPath is the PEM file of the private key; empty: it is in the same file.
	KeyPath string
	// Password is that of the file, KeyPassword that of the key in it; empty: the same.
	Password, KeyPassword access.Secret
}

// Certificates are those of the listeners that name none of their own.
type Certificates struct {
	// Keys are the broker's certificate, Trust those with which clients show who they are.
	Keys, Trust KeyFile
	// Source is "FILE:LINE"; empty: nothing is said about them.
	Source string
}

// TLSOptions are what a listener asks for whose clients come with TLS.
type TLSOptions struct {
	// On says that they do (ssl://, nio+ssl://).
	On bool
	// NeedClientAuth lets in only clients with a certificate that is trusted. WantClientAuth
	// asks for one, and lets clients without one in. Default false.
	NeedClientAuth, WantClientAuth bool
	// Protocols are the versions that are spoken, by Java's names with commas; empty:
	// TLSv1.2 and TLSv1.3 (enabledProtocols).
	Protocols string
	// CipherSuites are those that are offered, by Java's names with commas; empty: those
	// that crypto/tls takes for safe (enabledCipherSuites).
	CipherSuites string
	// Keys and Trust take the place of those in Config.Certificates.
	Keys, Trust KeyFile
}

// Secure is what a listener with TLS serves its clients with, read from files.
type Secure struct {
	// TLS is complete.
	TLS *tls.Config
	// Shows tells certificates apart, for people.
	Shows string
}

// Scheme is tcp, or ssl where clients come with TLS.
func (l Listener) Scheme() string {
	if l.Options.TLS.On {
		return "ssl"
	}
	return "tcp"
}

// tlsVersions are Java's names of versions. Those before TLS 1.2 are broken, and are
// not spoken.
var tlsVersions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13, "TLSv1.1": 0, "TLSv1": 0, "SSLv3": 0, "SSLv2Hello": 0, "SSLv2": 0}

// versionsOf reads enabledProtocols. left names those that are not spoken.
func versionsOf(names string) (low, high uint16, left []string, err error) {
	for _, name := range listOfNames(names) {
		v, known := tlsVersions[name]
		switch {
		case !known:
			return 0, 0, nil, fmt.Errorf("protocol %q is not known%s", name, didYouMean(name, []string{"TLSv1.2", "TLSv1.3"}))
		case v == 0:
			left = append(left, name)
			continue
		case low == 0 || v < low:
			low = v
		}
		high = max(high, v)
	}
	if low == 0 && len(left) > 0 {
		return 0, 0, nil, fmt.Errorf("%s is before TLS 1.2, and is not spoken; add TLSv1.2, which Java clients speak from Java 7 on", strings.Join(left, ", "))
	}
	return cmp.Or(low, tls.VersionTLS12), cmp.Or(high, tls.VersionTLS13), left, nil
}

// listOfNames takes names with commas between them apart.
func listOfNames(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// Parts of the names of cipher suites that Java knows and crypto/tls does not.
var (
	suiteKeys = []string{"RSA", "DHE_RSA", "DHE_DSS", "DH_anon", "ECDH_RSA", "ECDH_ECDSA", "ECDH_anon", "ECDHE_RSA", "ECDHE_ECDSA", "KRB5", "RSA_EXPORT", "DHE_RSA_EXPORT", "DHE_DSS_EXPORT", "DH_anon_EXPORT", "KRB5_EXPORT"}
	suiteData = []string{"AES_128_CBC", "AES_256_CBC", "AES_128_GCM", "AES_256_GCM", "CHACHA20_POLY1305", "3DES_EDE_CBC", "DES_CBC", "DES40_CBC", "DES_CBC_40", "RC4_128", "RC4_40", "NULL"}
	suiteSums = []string{"SHA", "SHA256", "SHA384", "MD5"}
)

// javaSuite reports whether Java has a cipher suite of that name.
func javaSuite(name string) bool {
	keys, rest, ok := strings.Cut(strings.TrimPrefix(name, "TLS_"), "_WITH_")
	i := strings.LastIndexByte(rest, '_')
	return ok && i > 0 && slices.Contains(suiteKeys, keys) && slices.Contains(suiteData, rest[:i]) && slices.Contains(suiteSums, rest[i+1:])
}

// suites is what enabledCipherSuites comes to.
type suites struct {
	old           []uint16 // for TLS 1.2
	new           int      // how many for TLS 1.3 are named, of which none can be left out
	weak, unknown []string // that are insecure; that Java alone has
}

// suitesOf reads enabledCipherSuites.
func suitesOf(names string) (s suites, err error) {
	safe, weak := tls.CipherSuites(), tls.InsecureCipherSuites()
	for _, given := range listOfNames(names) {
		name := given
		if rest, old := strings.CutPrefix(name, "SSL_"); old {
			name = "TLS_" + rest // Java's older spelling
		}
		named := func(c *tls.CipherSuite) bool {
			return c.Name == name || c.Name == name+"_SHA256" && strings.Contains(name, "CHACHA20")
		}
		if i := slices.IndexFunc(safe, named); i >= 0 {
			if slices.Contains(safe[i].SupportedVersions, tls.VersionTLS12) {
				s.old = append(s.old, safe[i].ID)
			} else {
				s.new++
			}
		} else if i := slices.IndexFunc(weak, named); i >= 0 {
			s.old, s.weak = append(s.old, weak[i].ID), append(s.weak, given)
		} else if name == "TLS_EMPTY_RENEGOTIATION_INFO_SCSV" { // a signal, and always understood
		} else if javaSuite(name) {
			s.unknown = append(s.unknown, given)
		} else {
			var all []string
			for _, c := range append(safe, weak...) {
				all = append(all, c.Name)
			}
			return s, fmt.Errorf("cipher suite %q is not known%s", given, didYouMean(given, all))
		}
	}
	if len(s.old) == 0 && s.new == 0 && names != "" {
		return s, fmt.Errorf("names no cipher suite that is offered; add one such as %s", tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384))
	}
	return s, nil
}

// negotiable checks what versions and suites are asked for, and fills them in.
func (o *TLSOptions) negotiable(c *tls.Config) (warnings, errors []string) {
	low, high, left, err := versionsOf(o.Protocols)
	if err != nil {
		errors = append(errors, "enabledProtocols: "+err.Error())
	}
	if len(left) > 0 {
		warnings = append(warnings, fmt.Sprintf("enabledProtocols: %s is left out: versions before TLS 1.2 are not spoken", strings.Join(left, ", ")))
	}
	s, err := suitesOf(o.CipherSuites)
	if err != nil {
		errors = append(errors, "enabledCipherSuites: "+err.Error())
	}
	if len(s.unknown) > 0 {
		warnings = append(warnings, fmt.Sprintf("enabledCipherSuites: %s is left out: it is not offered", strings.Join(s.unknown, ", ")))
	}
	if len(s.weak) > 0 {
		warnings = append(warnings, fmt.Sprintf("enabledCipherSuites: %s is weak, and is offered as it is asked for", strings.Join(s.weak, ", ")))
	}
	if len(errors) > 0 {
		return warnings, errors
	}
	if o.CipherSuites != "" {
		const of13 = 3 // suites of TLS 1.3
		switch {
		case s.new == 0: // none of TLS 1.3
			high = min(high, tls.VersionTLS12)
		case s.new < of13 && high == tls.VersionTLS13:
			warnings = append(warnings, "enabledCipherSuites: of TLS 1.3 all suites are offered, as one is")
		}
		if len(s.old) == 0 {
			low = max(low, tls.VersionTLS13)
		}
		if low > high {
			errors = append(errors, "enabledCipherSuites has none for the versions of enabledProtocols; add some, or remove it")
		}
	}
	c.MinVersion, c.MaxVersion, c.CipherSuites = low, high, s.old
	return warnings, errors
}

// Java's own names for the stores of a process, for -D.
const (
	defineKeys  = "javax.net.ssl.keyStore"
	defineTrust = "javax.net.ssl.trustStore"
)

// javaStores takes the stores that -D names where the file names none, as Java does.
func (l *loader) javaStores() {
	for _, s := range []struct {
		name string
		into *KeyFile
	}{{defineKeys, &l.cfg.Certificates.Keys}, {defineTrust, &l.cfg.Certificates.Trust}} {
		if path := l.defines[s.name]; path != "" && s.into.Path == "" {
			*s.into = KeyFile{Path: path, Password: access.Secret(l.defines[s.name+"Password"])}
			l.cfg.Certificates.Source = cmp.Or(l.cfg.Certificates.Source, "-D")
		}
	}
}

// secure reads the certificates of the listeners.
func (l *loader) secure() {
	if l.opts.WithoutKeys {
		return
	}
	r := keyReader{loader: l, keys: map[KeyFile]readKeys{}, trust: map[KeyFile]readTrust{}}
	used := false
	for i := range l.cfg.Listeners {
		if n := &l.cfg.Listeners[i]; n.Options.TLS.On {
			used = true
			n.Secure = r.listener(n)
		}
	}
	if c := l.cfg.Certificates; c.Source != "" && !used && len(l.problems) == 0 {
		l.warn(c.notice("is not used: no listener has clients that come with TLS (ssl://)"))
	}
}

// notice makes a notice that speaks of the certificates of all listeners.
func (c Certificates) notice(text string) Notice {
	file, line := splitSource(c.Source)
	return Notice{File: file, Line: line, Part: "certificates", Text: text}
}

// A keyReader reads each file once.
type keyReader struct {
	*loader
	keys  map[KeyFile]readKeys
	trust map[KeyFile]readTrust
}

type readKeys struct {
	all []tls.Certificate
	err error
}

type readTrust struct {
	all []*x509.Certificate
	err error
}

// listener makes what a listener serves its clients with; nil where something is wrong,
// which is reported.
func (r *keyReader) listener(n *Listener) *Secure {
	o, c := n.Options.TLS, r.cfg.Certificates
	own := o.Keys
	if own.Path == "" {
		own = c.Keys
	}
	trust := o.Trust
	if trust.Path == "" {
		trust = c.Trust
	}
	s := &Secure{TLS: &tls.Config{DynamicRecordSizingDisabled: true}} // the first frames of a consumer are as large as the rest
	if _, errors := o.negotiable(s.TLS); len(errors) > 0 {
		return nil // reported where they stand
	}
	if own.Path == "" {
		r.fail(n.notice("needs a certificate: name one, in an activemq.xml as keyStore of an sslContext, in YAML as tls, or in the URI as certificate=FILE&key=FILE"))
		return nil
	}
	var ok bool
	if s.TLS.Certificates, ok = r.certificates(n, own); !ok {
		return nil
	}
	for _, k := range s.TLS.Certificates {
		s.Shows += fmt.Sprintf("%s until %s %x ", k.Leaf.Subject, k.Leaf.NotAfter.UTC().Format("2006-01-02"), sum(k.Leaf))
	}
	if !o.NeedClientAuth && !o.WantClientAuth {
		s.Shows = strings.TrimSpace(s.Shows)
		return s
	}
	if trust.Path == "" {
		r.fail(n.notice("asks for certificates of clients, and trusts none: name those that are, in an activemq.xml as trustStore of an sslContext, in YAML as tls, or in the URI as trust=FILE"))
		return nil
	}
	trusted, ok := r.trusted(n, trust)
	if !ok {
		return nil
	}
	s.TLS.ClientAuth, s.TLS.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	if o.NeedClientAuth {
		s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s.Shows += "trusts"
	for _, t := range trusted {
		s.TLS.ClientCAs.AddCert(t)
		s.Shows += fmt.Sprintf(" %x", sum(t))
	}
	return s
}

// sum is enough of a fingerprint to tell certificates apart.
func sum(c *x509.Certificate) []byte {
	full := sha256.Sum256(c.Raw)
	return full[:6]
}

func (r *keyReader) certificates(n *Listener, f KeyFile) ([]tls.Certificate, bool) {
	had, again := r.keys[f]
	if !again {
		raw, err := r.readFile(f.Path)
		if err == nil && f.KeyPath != "" {
			var key []byte
			if key, err = r.readFile(f.KeyPath); err != nil {
				err = fmt.Errorf("%s: %w", f.KeyPath, err)
			}
			raw = append(append(raw, '\n'), key...)
		}
		if had.err = err; err == nil {
			had.all, had.err = keystore.Keys(raw, string(f.Password), string(cmp.Or(f.KeyPassword, f.Password)))
		}
		r.keys[f] = had
	}
	return had.all, r.read(n, f, n.Options.TLS.Keys, "keyStore", had.err, again)
}

func (r *keyReader) trusted(n *Listener, f KeyFile) ([]*x509.Certificate, bool) {
	had, again := r.trust[f]
	if !again {
		raw, err := r.readFile(f.Path)
		if had.err = err; err == nil {
			had.all, had.err = keystore.Trusted(raw, string(f.Password))
		}
		r.trust[f] = had
	}
	return had.all, r.read(n, f, n.Options.TLS.Trust, "trustStore", had.err, again)
}

// read reports, once, that a file could not be used, at the listener whose own it is, or
// where those of all listeners stand.
func (r *keyReader) read(n *Listener, f, own KeyFile, what string, err error, again bool) bool {
	if err == nil || again {
		return err == nil
	}
	place := r.cfg.Certificates.notice
	if f == own {
		place = n.notice
	}
	r.fail(place(fmt.Sprintf("%s %s cannot be used: %v", what, f.Path, err)))
	return false
}
