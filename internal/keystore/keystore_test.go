package keystore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// A named is a certificate with its key.
type named struct {
	key  crypto.Signer
	cert *x509.Certificate
}

// issue makes a certificate that by has signed; nil: it signs itself.
func issue(t testing.TB, name string, key crypto.Signer, by *named) named {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return named{key, c}
}

func newEC(t testing.TB) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A jksWriter writes a JKS store, as keytool does.
type jksWriter struct {
	bytes.Buffer
	n int
}

func (w *jksWriter) number(n, bytes int) {
	b := binary.BigEndian.AppendUint64(nil, uint64(n))
	w.Write(b[8-bytes:])
}

func (w *jksWriter) text(s string) {
	w.number(len(s), 2)
	w.WriteString(s)
}

func (w *jksWriter) certificate(c *x509.Certificate) {
	w.text("X.509")
	w.number(len(c.Raw), 4)
	w.Write(c.Raw)
}

func (w *jksWriter) entry(tag int, alias string) {
	w.n++
	w.number(tag, 4)
	w.text(alias)
	w.number(1, 8)
}

func (w *jksWriter) key(t testing.TB, alias, password string, n named, chain ...*x509.Certificate) {
	t.Helper()
	plain, err := x509.MarshalPKCS8PrivateKey(n.key)
	if err != nil {
		t.Fatal(err)
	}
	salt := []byte(strings.Repeat("s", sha1.Size))
	data := bytes.Clone(salt)
	for block := salt; len(data) < sha1.Size+len(plain); {
		sum := sha1.Sum(append(jksPassword(password), block...))
		block = sum[:]
		part := plain[len(data)-sha1.Size:]
		out := make([]byte, min(len(part), len(block)))
		subtle.XORBytes(out, part, block)
		data = append(data, out...)
	}
	check := sha1.Sum(append(jksPassword(password), plain...))
	sealed, err := asn1.Marshal(struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}{pkix.AlgorithmIdentifier{Algorithm: jksCipher, Parameters: asn1.NullRawValue}, append(data, check[:]...)})
	if err != nil {
		t.Fatal(err)
	}
	w.entry(1, alias)
	w.number(len(sealed), 4)
	w.Write(sealed)
	w.number(len(chain), 4)
	for _, c := range chain {
		w.certificate(c)
	}
}

func (w *jksWriter) trusted(alias string, c *x509.Certificate) {
	w.entry(2, alias)
	w.certificate(c)
}

// store ends the store.
func (w *jksWriter) store(password string) []byte {
	head := &jksWriter{}
	head.Write(jksMagic)
	head.number(2, 4)
	head.number(w.n, 4)
	head.Write(w.Bytes())
	sum := sha1.Sum(append(append(jksPassword(password), jksWhitener...), head.Bytes()...))
	return append(head.Bytes(), sum[:]...)
}

func must(t testing.TB) func([]byte, error) []byte {
	return func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func pemOf(t testing.TB, n named, more ...*x509.Certificate) []byte {
	t.Helper()
	key := must(t)(x509.MarshalPKCS8PrivateKey(n.key))
	out := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, c := range append([]*x509.Certificate{n.cert}, more...) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// TestKeys reads a certificate with its chain and its key from every kind of file.
func TestKeys(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	root := issue(t, "root", newEC(t), nil)
	leaf, other := issue(t, "leaf", newEC(t), &root), issue(t, "other", rsaKey, &root)
	jks := &jksWriter{}
	jks.key(t, "Broker", "k\u00e9y", leaf, leaf.cert, root.cert)
	jks.trusted("ca", root.cert)
	two := &jksWriter{}
	two.key(t, "a", "secret", leaf, leaf.cert, root.cert)
	two.key(t, "b", "secret", other, other.cert, root.cert)
	strange := &jksWriter{}
	strange.key(t, "a", "secret", leaf, other.cert)
	onlyTrust := &jksWriter{}
	onlyTrust.trusted("ca", root.cert)
	for name, c := range map[string]struct {
		raw           []byte
		key           string
		want, problem string
	}{
		"PEM":                            {pemOf(t, leaf, root.cert), "", "leaf root", ""},
		"JKS":                            {jks.store("secret"), "k\u00e9y", "leaf root", ""},
		"JKS with two":                   {two.store("secret"), "secret", "leaf root; other root", ""},
		"PKCS12":                         {must(t)(pkcs12.Modern2023.Encode(leaf.key, leaf.cert, []*x509.Certificate{root.cert}, "secret")), "", "leaf root", ""},
		"PKCS12 of old":                  {must(t)(pkcs12.LegacyRC2.Encode(rsaKey, other.cert, nil, "secret")), "", "other", ""},
		"PKCS12, the certificates mixed": {must(t)(pkcs12.Modern2023.Encode(leaf.key, root.cert, []*x509.Certificate{leaf.cert}, "secret")), "", "leaf root", ""},
		"no key":                         {onlyTrust.store("secret"), "", "", "no private key"},
		"PEM without a key":              {pemOf(t, leaf)[len(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(t)(x509.MarshalPKCS8PrivateKey(leaf.key))})):], "", "", "private key"},
		"PEM with an encrypted key":      {[]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), "", "", "openssl pkey"},
		"wrong password of the key":      {jks.store("secret"), "secret", "", "keyStoreKeyPassword"},
		"wrong password of a JKS store":  {jks.store("other"), "key", "", "password is wrong"},
		"wrong password of a PKCS12":     {must(t)(pkcs12.Modern2023.Encode(leaf.key, leaf.cert, nil, "other")), "", "", "password is wrong"},
		"another's key":                  {strange.store("secret"), "secret", "", "not that of its certificate"},
		"JCEKS":                          {append(bytes.Clone(jceksMagic), 0, 0, 0, 2), "", "", "-deststoretype pkcs12"},
		"something else":                 {[]byte("hello"), "", "", "neither PEM nor"},
		"nothing":                        {nil, "", "", "neither PEM nor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Keys(c.raw, "secret", c.key)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v, want an error with %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var chains []string
			for _, k := range got {
				var names []string
				for _, der := range k.Certificate {
					x, err := x509.ParseCertificate(der)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, x.Subject.CommonName)
				}
				chains = append(chains, strings.Join(names, " "))
			}
			if s := strings.Join(chains, "; "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestTrusted reads the certificates that are trusted: as in Java those of entries of
// their own, and that of a key, but not its chain.
func TestTrusted(t *testing.T) {
	t.Parallel()
	root := issue(t, "root", newEC(t), nil)
	leaf, other := issue(t, "leaf", newEC(t), &root), issue(t, "other", newEC(t), nil)
	jks := &jksWriter{}
	jks.key(t, "b", "unknown", leaf, leaf.cert, root.cert)
	jks.trusted("o", other.cert)
	for name, c := range map[string]struct {
		raw           []byte
		password      string
		want, problem string
	}{
		"PEM":                      {pemOf(t, leaf, other.cert), "", "leaf other", ""},
		"JKS":                      {jks.store("secret"), "secret", "leaf other", ""},
		"JKS without its password": {jks.store("secret"), "", "leaf other", ""},
		"PKCS12":                   {must(t)(pkcs12.Modern2023.EncodeTrustStore([]*x509.Certificate{root.cert, other.cert}, "secret")), "secret", "root other", ""},
		"PKCS12 of a key":          {must(t)(pkcs12.Modern2023.Encode(leaf.key, leaf.cert, []*x509.Certificate{root.cert}, "secret")), "secret", "leaf", ""},
		"PKCS12 of both":           {must(t)(pkcs12.Modern2023.Encode(leaf.key, leaf.cert, []*x509.Certificate{other.cert}, "secret")), "secret", "", "store of their own"},
		"empty":                    {(&jksWriter{}).store("secret"), "secret", "", "keytool -importcert"},
		"wrong password":           {must(t)(pkcs12.Modern2023.EncodeTrustStore([]*x509.Certificate{root.cert}, "secret")), "", "", "password is wrong"},
		"no certificate":           {[]byte("-----BEGIN X-----\n-----END X-----\n"), "", "", "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Trusted(c.raw, c.password)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v, want an error with %q", err, c.problem)
				}
				return
			}
			var names []string
			for _, x := range got {
				names = append(names, x.Subject.CommonName)
			}
			if s := strings.Join(names, " "); err != nil || s != c.want {
				t.Errorf("got %q (%v), want %q", s, err, c.want)
			}
		})
	}
}

// TestDamage: whatever is cut off or changed in a JKS store is an error, also where
// nobody checks its sum, and takes no more memory than the file has.
func TestDamage(t *testing.T) {
	t.Parallel()
	leaf := issue(t, "leaf", newEC(t), nil)
	w := &jksWriter{}
	w.key(t, "b", "secret", leaf, leaf.cert)
	w.trusted("o", leaf.cert)
	whole := w.store("secret")
	for n := range len(whole) {
		if _, err := Keys(whole[:n], "secret", "secret"); err == nil {
			t.Fatalf("%d of %d bytes are read", n, len(whole))
		}
		_, _ = Trusted(whole[:n], "")
		for _, b := range []byte{0, 0x7f, 0xff} {
			damaged := bytes.Clone(whole)
			damaged[n] = b
			if _, err := Keys(damaged, "secret", "secret"); err == nil && b != whole[n] {
				t.Fatalf("byte %d may be %x", n, b)
			}
			_, _ = Keys(damaged, "", "secret")
		}
	}
}
