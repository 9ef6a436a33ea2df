package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/access"
)

// The options of a URI that are about TLS.

func setNeedClientAuth(o *ListenerOptions, s string) (err error) {
	o.TLS.NeedClientAuth, err = parseBool(s)
	return err
}

func setWantClientAuth(o *ListenerOptions, s string) (err error) {
	o.TLS.WantClientAuth, err = parseBool(s)
	return err
}

func setProtocols(o *ListenerOptions, s string) error {
	o.TLS.Protocols = s // judged with the suites
	return nil
}

func setCipherSuites(o *ListenerOptions, s string) error {
	o.TLS.CipherSuites = s
	return nil
}

// setVerifyHost takes ActiveMQ's default: clients are not asked to come from the host
// that their certificate names.
func setVerifyHost(_ *ListenerOptions, s string) error {
	on, err := parseBool(s)
	if on {
		return errors.New("a client is not asked to come from the host that its certificate names; set it to false")
	}
	return err
}

func setCertificate(o *ListenerOptions, s string) error {
	o.TLS.Keys.Path = s
	return nil
}

func setKey(o *ListenerOptions, s string) error {
	o.TLS.Keys.KeyPath = s
	return nil
}

func setTrustPath(o *ListenerOptions, s string) error {
	o.TLS.Trust.Path = s
	return nil
}

func setKeyStorePassword(o *ListenerOptions, s string) error {
	return setPassword(&o.TLS.Keys.Password, s)
}

func setKeyPassword(o *ListenerOptions, s string) error {
	return setPassword(&o.TLS.Keys.KeyPassword, s)
}

func setTrustPassword(o *ListenerOptions, s string) error {
	return setPassword(&o.TLS.Trust.Password, s)
}

func setPassword(into *access.Secret, s string) error {
	if encrypted(s) {
		return errors.New("is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear")
	}
	*into = access.Secret(s)
	return nil
}

func setStoreType(_ *ListenerOptions, s string) error { return checkStoreType(s) }

// storeTypes are the kinds of store that are read, whichever of them is named.
var storeTypes = []string{"JKS", "PKCS12", "PEM"}

// checkStoreType fails for a kind of store that is not read.
func checkStoreType(s string) error {
	if !slices.ContainsFunc(storeTypes, func(t string) bool { return strings.EqualFold(s, t) }) {
		return fmt.Errorf("stores of the type %q are not read, but %s are; keytool -importkeystore -deststoretype pkcs12 makes one of it", s, strings.Join(storeTypes, ", "))
	}
	return nil
}

// showTLS writes options as a URI has them; add takes those that are not the default.
func showTLS(o TLSOptions, add func(differs bool, name string, value any)) {
	add(o.NeedClientAuth, "needClientAuth", true)
	add(o.WantClientAuth, "wantClientAuth", true)
	for _, t := range []struct{ name, value string }{
		{"transport.enabledProtocols", o.Protocols}, {"transport.enabledCipherSuites", o.CipherSuites},
		{"certificate", o.Keys.Path}, {"key", o.Keys.KeyPath}, {"keyStorePassword", string(o.Keys.Password)}, {"keyPassword", string(o.Keys.KeyPassword)},
		{"trust", o.Trust.Path}, {"trustStorePassword", string(o.Trust.Password)},
	} {
		add(t.value != "", t.name, url.QueryEscape(t.value))
	}
}

// certificates are those of the listeners that name none of their own.
func (y yamlReader) certificates(name string) yamlKey {
	keys := y.certificateKeys()
	k := y.group(name, keys, yamlReader{loader: &loader{cfg: &Config{}}}.certificateKeys())
	take := k.take
	k.take = func(part string, node ast.Node) {
		y.cfg.Certificates.Source = y.source(first(node))
		take(part, node)
	}
	return k
}

func (y yamlReader) certificateKeys() []yamlKey {
	c := &y.cfg.Certificates
	return []yamlKey{
		y.name("certificate", &c.Keys.Path).says("The broker's certificate, and those that vouch for it, in one file: PEM, or a store of Java's (PKCS12, JKS) with the key. As all paths here it is relative to the working directory."),
		y.text("key", &c.Keys.KeyPath).says("The private key in PEM; default: it is in the file of the certificate."),
		y.secret("keyStorePassword", &c.Keys.Password).says("The password of a store of Java's; PEM has none."),
		y.secret("keyPassword", &c.Keys.KeyPassword).says("The password of the key in a JKS store; default keyStorePassword."),
		y.text("trust", &c.Trust.Path).says("The certificates of clients, or of those who vouch for them: PEM, or a store of Java's. For listeners with needClientAuth=true or wantClientAuth=true."),
		y.secret("trustStorePassword", &c.Trust.Password).says("The password of a store of Java's."),
	}
}

// secret is a text that is not shown but in the file itself.
func (y yamlReader) secret(name string, into *access.Secret) yamlKey {
	return y.value(name, yamlForm{kind: formText}, func(s string) error { return setPassword(into, s) }, func() yamlValue { return yamlText(*into) })
}

func certificateFacts(c *Config) []fact {
	t := c.Certificates
	if t.Source == "" {
		return nil
	}
	secrets := string(t.Keys.Password + "\n" + t.Keys.KeyPassword + "\n" + t.Trust.Password)
	facts := []fact{{part: "certificates", value: present, source: t.Source}, {part: "certificates", setting: "passwords", value: t.Keys.Password.String(), secret: secrets, source: t.Source}}
	for _, f := range []struct{ name, path string }{{"certificate", t.Keys.Path}, {"key", t.Keys.KeyPath}, {"trust", t.Trust.Path}} {
		if f.path != "" {
			facts = append(facts, fact{part: "certificates", setting: f.name, value: f.path, source: t.Source})
		}
	}
	return facts
}

// securedFacts tell the certificates of the listeners that c and other both have.
func securedFacts(c, other *Config) []fact {
	var facts []fact
	for _, l := range c.Listeners {
		if l.Secure != nil && other.Listener(l) != nil {
			facts = append(facts, fact{part: "certificates of listener " + l.Name + " (" + l.URI + ")", value: l.Secure.Shows, source: l.Source})
		}
	}
	return facts
}

// Listener is the listener that serves the same address in the same way as another
// configuration's; nil: there is none.
func (c *Config) Listener(l Listener) *Listener {
	for i := range c.Listeners {
		if n := &c.Listeners[i]; n.Name == l.Name && n.Address() == l.Address() && n.Options == l.Options {
			return n
		}
	}
	return nil
}
