package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// pemPair makes a certificate that signs itself, and its key.
func pemPair(t testing.TB, name string) (certificate, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// secured loads a file with that text, or none, beside files of certificates.
func secured(t testing.TB, text string, files map[string][]byte, listen ...string) (*Config, string) {
	t.Helper()
	o := Options{Listen: listen, ReadFile: func(path string) ([]byte, error) {
		if path == "conf/f" {
			return []byte(text), nil
		}
		if raw, ok := files[path]; ok {
			return raw, nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}}
	if text != "" {
		o.File = "conf/f"
	}
	c, notices, err := Load(o)
	var b strings.Builder
	for _, n := range notices {
		b.WriteString("warning " + n.String() + "\n")
	}
	if err != nil {
		b.WriteString(err.Error() + "\n")
	}
	return c, b.String()
}

// TestSecure loads every way to say which certificates there are.
func TestSecure(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, "broker")
	client, _ := pemPair(t, "client")
	files := map[string][]byte{"b.pem": cert, "b.key": key, "conf/both.pem": slices.Concat(cert, key), "conf/c.pem": client, "/etc/both.pem": slices.Concat(key, cert), "empty": nil}
	context := func(attributes, uri string) string {
		return `<broker><sslContext><sslContext ` + attributes + `/></sslContext>
<transportConnectors><transportConnector uri="` + uri + `"/></transportConnectors></broker>`
	}
	const ssl = "ssl://127.0.0.1:61617"
	for name, c := range map[string]struct {
		text   string
		listen string
		auth   tls.ClientAuthType
		said   string // among what is said; empty: nothing is said, and it loads
	}{
		"sslContext beside the file": {text: context(`keyStore="both.pem" keyStorePassword="x"`, ssl)},
		"a bean": {text: `<beans><bean id="tls" class="org.apache.activemq.spring.SpringSslContext"><property name="keyStore" value="file:/etc/both.pem"/></bean>
<broker sslContext="#tls"><transportConnectors><transportConnector uri="ssl://127.0.0.1:1"/></transportConnectors></broker></beans>`},
		"a trust manager of one's own": {text: `<beans><bean id="mine" class="x.Mine"/><broker><sslContext><sslContext keyStore="both.pem" trustManagers="#mine"/></sslContext>
<transportConnectors><transportConnector uri="ssl://127.0.0.1:1"/></transportConnectors></broker></beans>`, said: "conf/f:1: trustManagers: is not offered"},
		"sslContext with a URL":       {text: context(`keyStore="file:/etc/both.pem"`, ssl)},
		"sslContext, clients needed":  {text: context(`keyStore="file:${activemq.conf}/both.pem" trustStore="classpath:c.pem"`, "nio+ssl://127.0.0.1:1?needClientAuth=true"), auth: tls.RequireAndVerifyClientCert},
		"clients wanted":              {text: context(`keyStore="both.pem" trustStore="c.pem"`, ssl+"?transport.wantClientAuth=true"), auth: tls.VerifyClientCertIfGiven},
		"YAML":                        {text: "tls:\n  certificate: b.pem\n  key: b.key\nlisteners:\n  - " + ssl + "\n"},
		"YAML, of the listener's own": {text: "listeners:\n  - " + ssl + "?certificate=b.pem&key=b.key\n"},
		"--listen":                    {listen: ssl + "?certificate=b.pem&key=b.key"},
		"Artemis": {text: `<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><security-enabled>false</security-enabled>
<acceptors><acceptor name="a">tcp://127.0.0.1:1?protocols=OPENWIRE;sslEnabled=true;keyStorePath=both.pem;needClientAuth=true;trustStorePath=c.pem</acceptor></acceptors></core></configuration>`, auth: tls.RequireAndVerifyClientCert, said: "warning"},

		"no certificate":           {text: "listeners:\n  - " + ssl + "\n", said: "conf/f:2: listener openwire (ssl://127.0.0.1:61617): needs a certificate: name one"},
		"no certificate, --listen": {listen: ssl, said: "--listen: listener openwire"},
		"nobody is trusted":        {text: context(`keyStore="both.pem"`, ssl+"?needClientAuth=true"), said: "conf/f:2: listener openwire (ssl://127.0.0.1:61617?needClientAuth=true): asks for certificates of clients, and trusts none"},
		"no such file":             {text: context(`keyStore="file:gone.ks"`, ssl), said: "conf/f:1: certificates: keyStore gone.ks cannot be used: file does not exist"},
		"no such key":              {listen: ssl + "?certificate=b.pem&key=gone", said: "keyStore b.pem cannot be used: gone: file does not exist"},
		"empty file":               {text: context(`keyStore="file:empty"`, ssl), said: "neither PEM nor a store of Java's"},
		"no such trust":            {text: context(`keyStore="both.pem" trustStore="gone.ts"`, ssl+"?wantClientAuth=true"), said: "trustStore conf/gone.ts cannot be used"},
		"not used":                 {text: context(`keyStore="both.pem"`, "tcp://127.0.0.1:1"), said: "warning conf/f:1: certificates: is not used: no listener"},
		"encrypted password":       {text: context(`keyStore="both.pem" keyStorePassword="ENC(x)"`, ssl), said: "conf/f:1: sslContext keyStorePassword: is encrypted for Java"},
		"JCEKS":                    {text: context(`keyStore="both.pem" keyStoreType="JCEKS"`, ssl), said: `conf/f:1: sslContext keyStoreType: stores of the type "JCEKS" are not read`},
		"revoked certificates":     {text: context(`keyStore="both.pem" crlPath="x"`, ssl), said: "conf/f:1: sslContext crlPath"},
		"second context":           {text: strings.Replace(context(`keyStore="both.pem"`, ssl), "</sslContext>", `<sslContext keyStore="x"/></sslContext>`, 1), said: "is the second sslContext"},
		"TLS without TLS":          {text: context(`keyStore="both.pem"`, "tcp://127.0.0.1:1?needClientAuth=true"), said: "option needClientAuth is for clients that come with TLS: write ssl://"},
		"unknown suite":            {text: context(`keyStore="both.pem"`, ssl+"?transport.enabledCipherSuites=TLS_ECDHE_RSA_WITH_AES_512_GCM_SHA256"), said: `conf/f:2: transportConnector uri: enabledCipherSuites: cipher suite "TLS_ECDHE_RSA_WITH_AES_512_GCM_SHA256" is not known; did you mean TLS_ECDHE_RSA_WITH_AES_`},
		"old version":              {text: context(`keyStore="both.pem"`, ssl+"?transport.enabledProtocols=TLSv1,TLSv1.1"), said: "conf/f:2: transportConnector uri: enabledProtocols: TLSv1, TLSv1.1 is before TLS 1.2, and is not spoken; add TLSv1.2"},
		"passwords are not shown":  {listen: ssl + "?certificate=gone&keyStorePassword=topsecret", said: "keyStorePassword=***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var listen []string
			if c.listen != "" {
				listen = []string{c.listen}
			}
			got, said := secured(t, c.text, files, listen...)
			if strings.Contains(said, "topsecret") {
				t.Errorf("a password is told: %s", said)
			}
			if c.said != "" && !strings.Contains(said, c.said) || c.said == "" && said != "" {
				t.Fatalf("said %q, want %q", said, c.said)
			}
			if got == nil || !got.Listeners[0].Options.TLS.On {
				if c.said == "" {
					t.Fatal("not loaded")
				}
				return
			}
			l := got.Listeners[0]
			if l.Secure == nil || len(l.Secure.TLS.Certificates) != 1 || l.Secure.TLS.ClientAuth != c.auth || (l.Secure.TLS.ClientCAs == nil) != (c.auth == tls.NoClientCert) || l.Scheme() != "ssl" {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestJavaStores takes the names that a Java process is given its stores by.
func TestJavaStores(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, "broker")
	c, _, err := Load(Options{Listen: []string{"ssl://127.0.0.1:1?needClientAuth=true"},
		Defines: []string{"javax.net.ssl.keyStore=k", "javax.net.ssl.keyStorePassword=p", "javax.net.ssl.trustStore=t"},
		ReadFile: func(path string) ([]byte, error) {
			return map[string][]byte{"k": slices.Concat(cert, key), "t": cert}[path], nil
		}})
	if err != nil || c.Listeners[0].Secure == nil || c.Certificates.Keys.Password != "p" {
		t.Errorf("%v %+v", err, c)
	}
}

// TestNegotiable holds versions and suites by Java's names against crypto/tls's.
func TestNegotiable(t *testing.T) {
	t.Parallel()
	const rsaGCM, chacha = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
	for name, c := range map[string]struct {
		protocols, suites string
		low, high         uint16
		offers            []uint16
		warning, problem  string
	}{
		"nothing is said":           {low: tls.VersionTLS12, high: tls.VersionTLS13},
		"one version":               {protocols: "TLSv1.2", low: tls.VersionTLS12, high: tls.VersionTLS12},
		"two, and one of old":       {protocols: "TLSv1.3, TLSv1.2,TLSv1.1", low: tls.VersionTLS12, high: tls.VersionTLS13, warning: "TLSv1.1 is left out"},
		"misspelt":                  {protocols: "TLSv12", problem: `"TLSv12" is not known; did you mean TLSv1.2?`},
		"a suite of TLS 1.2":        {suites: rsaGCM, low: tls.VersionTLS12, high: tls.VersionTLS12, offers: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
		"suites of both":            {suites: chacha + ",TLS_AES_256_GCM_SHA384", low: tls.VersionTLS12, high: tls.VersionTLS13, offers: []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}, warning: "of TLS 1.3 all suites"},
		"all suites of TLS 1.3":     {suites: "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256", low: tls.VersionTLS13, high: tls.VersionTLS13},
		"none for the version":      {protocols: "TLSv1.3", suites: rsaGCM, problem: "none for the versions"},
		"one that Java alone has":   {suites: rsaGCM + ",TLS_DHE_RSA_WITH_AES_128_GCM_SHA256,TLS_EMPTY_RENEGOTIATION_INFO_SCSV", low: tls.VersionTLS12, high: tls.VersionTLS12, offers: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, warning: "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256 is left out"},
		"nothing but such":          {suites: "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", warning: "is left out", problem: "no cipher suite that is offered"},
		"a weak one, spelt of old":  {suites: "SSL_RSA_WITH_3DES_EDE_CBC_SHA", low: tls.VersionTLS12, high: tls.VersionTLS12, offers: []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}, warning: "is weak"},
		"a suite that nobody knows": {suites: "TLS_RSA_WITH_ROT13", problem: "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got tls.Config
			warnings, problems := (&TLSOptions{On: true, Protocols: c.protocols, CipherSuites: c.suites}).negotiable(&got)
			if w := strings.Join(warnings, "\n"); !strings.Contains(w, c.warning) || c.warning == "" && w != "" {
				t.Errorf("warnings %q, want %q", w, c.warning)
			}
			if p := strings.Join(problems, "\n"); !strings.Contains(p, c.problem) || c.problem == "" && p != "" {
				t.Errorf("problems %q, want %q", p, c.problem)
			}
			if c.problem == "" && (got.MinVersion != c.low || got.MaxVersion != c.high || !slices.Equal(got.CipherSuites, c.offers)) {
				t.Errorf("%x to %x, %x", got.MinVersion, got.MaxVersion, got.CipherSuites)
			}
		})
	}
}

// TestCertificatesAreReloaded: what a listener serves with changes with the files, and
// with what the configuration says of them; how it serves takes a restart.
func TestCertificatesAreReloaded(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, "old")
	newCert, newKey := pemPair(t, "new")
	files := map[string][]byte{"old.pem": slices.Concat(cert, key), "new.pem": slices.Concat(newCert, newKey), "f.pem": slices.Concat(cert, key)}
	text := func(certificate, options string) string {
		return "tls:\n  certificate: " + certificate + "\nlisteners:\n  - tcp://127.0.0.1:1\n  - ssl://127.0.0.1:2" + options + "\n"
	}
	load := func(text string) *Config {
		c, said := secured(t, text, files)
		if said != "" {
			t.Fatal(said)
		}
		return c
	}
	shows := func(c *Config) string { return c.Listeners[1].Secure.TLS.Certificates[0].Leaf.Subject.CommonName }
	check := func(what string, from, to *Config, holds string, changes ...string) {
		t.Helper()
		if got := shows(from.Reloaded(to)); got != holds {
			t.Errorf("%s: %s holds", what, got)
		}
		if shows(from) != "old" {
			t.Errorf("%s: what held has changed", what)
		}
		var all string
		for _, c := range Diff(from, to) {
			all += c.String() + "\n"
		}
		for _, c := range changes {
			if !strings.Contains(all, c) {
				t.Errorf("%s: no %q in\n%s", what, c, all)
			}
		}
		if len(changes) == 0 && all != "" {
			t.Errorf("%s: %s", what, all)
		}
	}
	one := load(text("f.pem", ""))
	check("nothing", one, load(text("f.pem", "")), "old")
	check("another file", one, load(text("new.pem", "")), "new", "certificates certificate: f.pem (conf/f:2) → new.pem (conf/f:2)\n", "CN=old until", "→ CN=new until")
	check("other options", one, load(text("new.pem", "?transport.enabledProtocols=TLSv1.3")), "old", "needs a restart")
	files["f.pem"] = files["new.pem"]
	check("another content", one, load(text("f.pem", "")), "new", "certificates of listener openwire (ssl://127.0.0.1:2): CN=old until")
}
