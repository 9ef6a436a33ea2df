package keystore

import (
	"bytes"
	"crypto"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// The layout of a JKS store, all numbers big-endian:
//
//	magic, version (2; 1 has no types of certificates), number of entries
//	a key:         1, alias, time, key, number of certificates, certificates
//	a certificate: 2, alias, time, certificate
//	SHA-1 of the password, a fixed text, and all before
//
// An alias is a length of two bytes and as many; a time has eight; a key is a length
// of four and an EncryptedPrivateKeyInfo; a certificate is its type, like an alias, and
// a length of four with DER.
//
// Source: the JavaKeyStore and KeyProtector classes of OpenJDK's provider SUN.
var (
	jksMagic   = []byte{0xfe, 0xed, 0xfe, 0xed}
	jceksMagic = []byte{0xce, 0xce, 0xce, 0xce}
)

const jksWhitener = "Mighty Aphrodite"

// jksCipher is the algorithm that a JKS store protects its keys with.
var jksCipher = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}

var errDamaged = errors.New("the JKS store is damaged")

// readJKS reads a JKS store. Without a password it is not checked, as in Java.
func readJKS(raw []byte, password string, keyPassword *string) ([]entry, error) {
	if len(raw) < len(jksMagic)+sha1.Size {
		return nil, errDamaged
	}
	body, sum := raw[:len(raw)-sha1.Size], raw[len(raw)-sha1.Size:]
	if password != "" {
		h := sha1.New()
		h.Write(jksPassword(password))
		h.Write([]byte(jksWhitener))
		h.Write(body)
		if subtle.ConstantTimeCompare(h.Sum(nil), sum) == 0 {
			return nil, errPassword
		}
	}
	c := &jksCursor{rest: body[len(jksMagic):]}
	version := c.number(4)
	if c.typed = version == 2; !c.typed && version != 1 {
		return nil, errDamaged
	}
	var all []entry
	for range c.number(4) {
		tag := c.number(4)
		c.take(c.number(2)) // alias
		c.take(8)           // time
		var e entry
		switch tag {
		case 1:
			sealed := c.take(c.number(4))
			for range c.number(4) {
				e.chain = append(e.chain, c.certificate())
				if c.err != nil {
					break
				}
			}
			if keyPassword != nil && c.err == nil {
				e.key, c.err = openJKS(sealed, *keyPassword)
			}
		case 2:
			e.chain = append(e.chain, c.certificate())
		default:
			c.fail(errDamaged)
		}
		if c.err != nil {
			return nil, c.err
		}
		all = append(all, e)
	}
	return all, c.err
}

// A jksCursor goes over a store. After an error it gives nothing.
type jksCursor struct {
	rest  []byte
	typed bool // certificates have their type before them
	err   error
}

func (c *jksCursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.rest = nil
}

func (c *jksCursor) take(n int) []byte {
	if c.err != nil || n > len(c.rest) {
		c.fail(errDamaged)
		return nil
	}
	taken := c.rest[:n]
	c.rest = c.rest[n:]
	return taken
}

// number reads one of so many bytes; 0 after an error.
func (c *jksCursor) number(bytes int) int {
	b := append(make([]byte, 8-bytes, 8), c.take(bytes)...)
	if c.err != nil {
		return 0
	}
	return int(binary.BigEndian.Uint64(b))
}

func (c *jksCursor) certificate() *x509.Certificate {
	if c.typed {
		if t := c.take(c.number(2)); c.err == nil && string(t) != "X.509" && string(t) != "X509" {
			c.fail(fmt.Errorf("a certificate of the type %q is not offered", t))
		}
	}
	der := c.take(c.number(4))
	if c.err != nil {
		return nil
	}
	x, err := x509.ParseCertificate(der)
	if err != nil {
		c.fail(err)
	}
	return x
}

// openJKS decrypts a key: salt, key XOR a stream, and a sum that shows whether the
// password was right.
func openJKS(sealed []byte, password string) (crypto.Signer, error) {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	if _, err := asn1.Unmarshal(sealed, &info); err != nil || len(info.Data) < 2*sha1.Size {
		return nil, errDamaged
	}
	if !info.Algorithm.Algorithm.Equal(jksCipher) {
		return nil, fmt.Errorf("a private key is protected in a way (%v) that is not known", info.Algorithm.Algorithm)
	}
	secret := jksPassword(password)
	salt, data, sum := info.Data[:sha1.Size], info.Data[sha1.Size:len(info.Data)-sha1.Size], info.Data[len(info.Data)-sha1.Size:]
	key := make([]byte, len(data))
	for i, block := 0, salt; i < len(data); i += sha1.Size {
		next := sha1.Sum(append(bytes.Clone(secret), block...))
		block = next[:]
		subtle.XORBytes(key[i:], data[i:], block)
	}
	if check := sha1.Sum(append(bytes.Clone(secret), key...)); subtle.ConstantTimeCompare(check[:], sum) == 0 {
		return nil, errors.New("the password of its private key is wrong (keyStoreKeyPassword; without one that of the store is taken)")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a private key of the kind %T is not offered", parsed)
	}
	return signer, nil
}

// jksPassword is a password as JKS has it: UTF-16.
func jksPassword(password string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(password)) {
		b = binary.BigEndian.AppendUint16(b, unit)
	}
	return b
}
