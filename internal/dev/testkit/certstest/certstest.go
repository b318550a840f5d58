// Package certstest makes certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(t testing.TB) *Authority {
	a := &Authority{t: t}
	pair := a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, time.Hour*24*365)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *Authority) make(c *x509.Certificate, life time.Duration) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(life)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Server makes a certificate of a server with a DNS name or an IP address.
func (a *Authority) Server(name string, life time.Duration) tls.Certificate {
	c := &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(name); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	return a.make(c, life)
}

// Client makes a certificate of a client with a common name.
func (a *Authority) Client(name string) tls.Certificate {
	return a.make(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Hour)
}

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Write writes the certificate of the authority to a file.
func (a *Authority) Write(path string) { WritePEM(a.t, path, "CERTIFICATE", a.cert.Raw) }

// Write writes a certificate and its key to files.
func Write(t testing.TB, certificate, key string, pair tls.Certificate) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	WritePEM(t, certificate, "CERTIFICATE", pair.Certificate[0])
	WritePEM(t, key, "PRIVATE KEY", der)
}

// WritePEM writes a file with one block.
func WritePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
