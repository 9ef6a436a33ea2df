package jms

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// verifyChain verifies the broker's certificate against the roots, without its
// name: socket.verifyHostName=false.
func verifyChain(c *tls.Config) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the broker shows no certificate")
		}
		o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}
