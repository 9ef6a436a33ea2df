// Package keystore reads what a TLS listener needs from files: certificates with their
// private keys, and certificates that are trusted. It knows PEM and the two kinds of
// store that Java's keytool makes, PKCS#12 and JKS, and tells them apart by content, as
// Java does for the latter two, whatever type is named.
//
// It is a leaf: bytes come in, nothing is opened. What a damaged file makes it take is
// bounded by the file's size.
package keystore

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// An entry is one entry of a store: a key with its chain, or a certificate that is
// trusted, which has no key.
type entry struct {
	key   crypto.Signer
	chain []*x509.Certificate
	// more says that there are certificates beside key and chain, of which it is not known
	// whether they are trusted.
	more bool
}

// Reasons that say what to do.
var (
	errPassword = errors.New("the password is wrong, or the file is damaged")
	errNoKey    = errors.New("there is no private key in it; a broker needs one with its certificate")
	errNoTrust  = errors.New("there is no certificate in it that is trusted; add one with keytool -importcert")
	errMixed    = errors.New("it is a PKCS12 store with a private key and other certificates; keep those that are trusted in a store of their own")
	errUnknown  = errors.New("it is neither PEM nor a store of Java's (PKCS12, JKS)")
	errJCEKS    = errors.New("it is a store of the type JCEKS, which is not read; make a PKCS12 store of it with keytool -importkeystore -deststoretype pkcs12")
)

// Keys reads the certificates that have a private key. keyPassword is that of the keys
// in a JKS store.
func Keys(raw []byte, password, keyPassword string) ([]tls.Certificate, error) {
	if isPEM(raw) {
		return pemKeys(raw)
	}
	entries, err := read(raw, password, &keyPassword)
	if err != nil {
		return nil, err
	}
	var all []tls.Certificate
	for _, e := range entries {
		if e.key == nil {
			continue
		}
		if len(e.chain) == 0 || !matches(e.key, e.chain[0]) {
			return nil, errors.New("its private key is not that of its certificate")
		}
		c := tls.Certificate{PrivateKey: e.key, Leaf: e.chain[0]}
		for _, x := range e.chain {
			c.Certificate = append(c.Certificate, x.Raw)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errNoKey
	}
	return all, nil
}

// Trusted reads the certificates that are trusted. As in Java, one of them is the
// certificate of a private key, if a store holds one. The password may be empty for a
// JKS store, which is then not checked for damage.
func Trusted(raw []byte, password string) ([]*x509.Certificate, error) {
	if isPEM(raw) {
		return pemCertificates(raw)
	}
	entries, err := read(raw, password, nil)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for _, e := range entries {
		if e.more {
			return nil, errMixed
		}
		all = append(all, e.chain[:min(1, len(e.chain))]...)
	}
	if len(all) == 0 {
		return nil, errNoTrust
	}
	return all, nil
}

// read reads a store of Java's. Its keys stay unread where keyPassword is nil, if the
// kind of store lets them.
func read(raw []byte, password string, keyPassword *string) ([]entry, error) {
	switch {
	case bytes.HasPrefix(raw, jksMagic):
		return readJKS(raw, password, keyPassword)
	case bytes.HasPrefix(raw, jceksMagic):
		return nil, errJCEKS
	case bytes.HasPrefix(raw, []byte{0x30}): // a SEQUENCE
		return readPKCS12(raw, password)
	}
	return nil, errUnknown
}

// readPKCS12 reads a PKCS#12 file: one private key with certificates, or certificates
// that are marked as trusted.
func readPKCS12(raw []byte, password string) ([]entry, error) {
	if trusted, err := pkcs12.DecodeTrustStore(raw, password); err == nil {
		all := make([]entry, len(trusted))
		for i, c := range trusted {
			all[i].chain = []*x509.Certificate{c}
		}
		return all, nil
	} else if errors.Is(err, pkcs12.ErrIncorrectPassword) {
		return nil, errPassword
	}
	key, first, rest, err := pkcs12.DecodeChain(raw, password)
	if err != nil {
		return nil, fmt.Errorf("%w; a PKCS12 store is read that holds one private key with its certificates, or certificates alone that keytool -importcert has put there", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a private key of the kind %T is not offered", key)
	}
	// In the file they have no order that could be relied on.
	certificates := append([]*x509.Certificate{first}, rest...)
	i := slices.IndexFunc(certificates, func(c *x509.Certificate) bool { return matches(signer, c) })
	if i < 0 {
		return nil, errors.New("its private key is not that of its certificate")
	}
	chain := chainOf(certificates[i], certificates)
	return []entry{{key: signer, chain: chain, more: len(chain) < len(certificates)}}, nil
}

// chainOf orders certificates: from leaf, each is followed by the one that it was signed by.
func chainOf(leaf *x509.Certificate, all []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{leaf}
	for last := leaf; !bytes.Equal(last.RawIssuer, last.RawSubject); {
		i := slices.IndexFunc(all, func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, last.RawIssuer) && !slices.Contains(chain, c)
		})
		if i < 0 {
			break
		}
		last = all[i]
		chain = append(chain, last)
	}
	return chain
}

// matches reports whether a key is the one of a certificate.
func matches(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

func isPEM(raw []byte) bool { return bytes.Contains(raw, []byte("-----BEGIN ")) }

// pemKeys reads one key with its chain, in any order.
func pemKeys(raw []byte) ([]tls.Certificate, error) {
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, errors.New("its private key is encrypted, which is not read from PEM; decrypt it with openssl pkey, or keep both in a PKCS12 store with a password")
		}
	}
	c, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil, err
	}
	return []tls.Certificate{c}, nil
}

func pemCertificates(raw []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return all, nil
}
