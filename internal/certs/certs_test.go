package certs_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/certs"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	pair := a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, time.Hour*24*365)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) make(c *x509.Certificate, life time.Duration) tls.Certificate {
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

func (a *authority) server(name string, life time.Duration) tls.Certificate {
	return a.make(&x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, life)
}

func (a *authority) client(name string) tls.Certificate {
	return a.make(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Hour)
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// store writes a certificate and its key.
func store(t *testing.T, paths certs.Paths, pair tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, paths.Certificate, "CERTIFICATE", pair.Certificate[0])
	write(t, paths.Key, "PRIVATE KEY", key)
}

func write(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pathsIn(dir string) certs.Paths {
	return certs.Paths{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
}

// dial makes a handshake, and returns what both ends know.
func dial(c *certs.Certs, client *tls.Config) (server, seen tls.ConnectionState, err error) {
	left, right := net.Pipe()
	defer left.Close()
	defer right.Close()
	end := tls.Server(left, c.Config())
	failed := make(chan error, 1)
	go func() { failed <- end.Handshake() }()
	conn := tls.Client(right, client)
	err = conn.Handshake()
	if err == nil {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // the server sends tickets
		err = <-failed
	}
	return end.ConnectionState(), conn.ConnectionState(), err
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, paths := newAuthority(t), pathsIn(t.TempDir())
		store(t, paths, a.server("one.example.com", time.Hour*24*90))
		var out bytes.Buffer
		c, err := certs.Open(paths, zerolog.New(&out))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Run(ctx)
		served := func(name string) error {
			_, _, err := dial(c, &tls.Config{RootCAs: a.pool(), ServerName: name})
			return err
		}
		if err := served("one.example.com"); err != nil {
			t.Error(err)
		}
		store(t, paths, a.server("two.example.com", time.Hour))
		time.Sleep(5 * time.Second)
		if err := served("two.example.com"); err != nil || served("one.example.com") == nil {
			t.Error("the new certificate is not in force", err)
		}
		if !strings.Contains(out.String(), "ends soon") {
			t.Error("no warning of the end")
		}
		write(t, paths.Key, "PRIVATE KEY", []byte("s3cret"))
		time.Sleep(time.Minute)
		if err := served("two.example.com"); err != nil {
			t.Error("a bad key took the certificate away", err)
		}
		if n := strings.Count(out.String(), "stays in force"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		// The key comes after the certificate: both are read again until they fit.
		three := a.server("three.example.com", time.Hour)
		write(t, paths.Certificate, "CERTIFICATE", three.Certificate[0])
		time.Sleep(5 * time.Second)
		store(t, paths, three)
		time.Sleep(5 * time.Second)
		if err := served("three.example.com"); err != nil {
			t.Error(err)
		}
	})
}

func TestClients(t *testing.T) {
	a, other, paths := newAuthority(t), newAuthority(t), pathsIn(t.TempDir())
	paths.ClientCA = filepath.Join(filepath.Dir(paths.Key), "ca.pem")
	store(t, paths, a.server("logs.example.com", time.Hour))
	write(t, paths.ClientCA, "CERTIFICATE", a.cert.Raw)
	c, err := certs.Open(paths, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		clients  []tls.Certificate
		most     uint16
		verified bool
		fails    bool
	}{
		"none":                 {},
		"ours":                 {clients: []tls.Certificate{a.client("web")}, verified: true},
		"of another authority": {clients: []tls.Certificate{other.client("web")}, fails: true},
		"a server's":           {clients: []tls.Certificate{a.server("web", time.Hour)}, fails: true},
		"TLS 1.2":              {most: tls.VersionTLS12},
		"TLS 1.1":              {most: tls.VersionTLS11, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: a.pool(), ServerName: "logs.example.com", MaxVersion: row.most, MinVersion: tls.VersionTLS10}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(row.clients) == 0 {
					return new(tls.Certificate), nil
				}
				return &row.clients[0], nil
			}
			server, _, err := dial(c, config)
			if (err != nil) != row.fails {
				t.Fatal(err)
			}
			if err == nil && (len(server.VerifiedChains) > 0) != row.verified {
				t.Error(server.VerifiedChains)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	good, swapped := pathsIn(dir), pathsIn(t.TempDir())
	store(t, good, a.server("a", time.Hour))
	store(t, swapped, a.server("b", time.Hour))
	noCA := good
	noCA.ClientCA = good.Key
	for name, c := range map[string]struct {
		paths certs.Paths
		want  string
	}{
		"missing":                {pathsIn(t.TempDir()), "no such file"},
		"key of another":         {certs.Paths{Certificate: good.Certificate, Key: swapped.Key}, "private key does not match"},
		"no certificate":         {certs.Paths{Certificate: good.Key, Key: good.Key}, good.Key},
		"authority is a key":     {noCA, "it has no certificate in PEM"},
		"authority is not there": {certs.Paths{Certificate: good.Certificate, Key: good.Key, ClientCA: dir + "/none"}, "authorities of clients: open " + dir + "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := certs.Open(c.paths, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}
