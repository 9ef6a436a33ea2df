package config

import (
	"path/filepath"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// whyProvider is the reason for several parts of an sslContext.
const whyProvider = "TLS is Go's own, and has no providers"

// sslContextPart is the certificates of connectors with TLS; the element stands doubled
// in files.
var sslContextPart = &part{name: "sslContext", fate: accepted, children: []*part{{
	name: "sslContext", fate: honoured, role: roleSSLContext,
	attrs: []attr{
		{"keyStore", text, "", honoured, ""},
		{"keyStorePassword", text, "", honoured, ""},
		{"keyStoreKeyPassword", text, "", honoured, ""},
		{"keyStoreType", text, "", accepted, ""},
		{"trustStore", text, "", honoured, ""},
		{"trustStorePassword", text, "", honoured, ""},
		{"trustStoreType", text, "", accepted, ""},
		{"keyStoreAlgorithm", text, "SunX509", leftOut, whyProvider},
		{"trustStoreAlgorithm", text, "PKIX", leftOut, whyProvider},
		{"secureRandomAlgorithm", text, "", leftOut, whyProvider},
		{"provider", text, "", leftOut, whyProvider},
		{"protocol", text, "TLS", leftOut, "a connector's transport.enabledProtocols says which versions are spoken; all from TLS 1.2 on without"},
		{"crlPath", text, "", refused, "certificates of clients that were revoked would be let in; remove it, and take who is not to be let in out of the trustStore"},
	},
	children: []*part{
		{name: "secureRandom", fate: leftOut, why: whyProvider, opaque: true},
		{name: "keyManagers", fate: refused, why: "key managers are Java code; name a keyStore", opaque: true},
		{name: "trustManagers", fate: refused, why: "trust managers are Java code; name a trustStore", opaque: true},
		{name: "SSLContext", fate: refused, why: "a context of one's own is Java code; name a keyStore", opaque: true},
	},
}}}

// sslContext reads the certificates of connectors with TLS.
func (w *walker) sslContext(e *element) {
	c := &w.cfg.Certificates
	if c.Source != "" {
		w.fail(e.at("is the second sslContext; remove one"))
		return
	}
	c.Source = e.source()
	for _, s := range []struct {
		name string
		into *KeyFile
	}{{"keyStore", &c.Keys}, {"trustStore", &c.Trust}} {
		if a, ok := e.given(s.name); ok {
			s.into.Path = storePath(w.readFile, e.file, a.value)
		}
		w.password(e, s.name+"Password", &s.into.Password)
		if a, ok := e.given(s.name + "Type"); ok {
			if err := checkStoreType(a.value); err != nil {
				w.fail(e.atAttr(a, err.Error()))
			}
		}
	}
	w.password(e, "keyStoreKeyPassword", &c.Keys.KeyPassword)
}

// password stores one that is given in the clear.
func (w *walker) password(e *element, name string, into *access.Secret) {
	a, ok := e.given(name)
	switch {
	case ok && encrypted(a.value):
		w.fail(e.atAttr(a, "is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear"))
	case ok:
		*into = access.Secret(a.value)
	}
}

// storePath is the path of a store that a file names: a URL, else a path, else what
// stands beside the file, where ActiveMQ and Artemis find it on their class path.
func storePath(readFile func(string) ([]byte, error), file, resource string) string {
	path, isFile := strings.CutPrefix(resource, "file:")
	path, isClass := strings.CutPrefix(path, "classpath:")
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		path = "/" + strings.TrimLeft(rest, "/")
	}
	if filepath.IsAbs(path) || isFile {
		return filepath.Clean(path)
	}
	if _, err := readFile(path); err == nil && !isClass {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}
