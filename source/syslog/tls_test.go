package syslog_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"

	"blobtail/source/syslog"
)

func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// sign makes a certificate for loopback, for servers and clients.
func (a *authority) sign(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// With client certificates required, only a sender that has one is read, on any address.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	chosen := &tls.Config{Certificates: []tls.Certificate{ours.sign(t)}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: ours.pool(), MinVersion: tls.VersionTLS12}
	server := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }}
	for _, row := range []struct {
		name  string
		certs []tls.Certificate
		plain bool
		want  []string
	}{
		{name: "a certificate of the authority", certs: []tls.Certificate{ours.sign(t)}, want: []string{"a", "b"}},
		{name: "one of another", certs: []tls.Certificate{theirs.sign(t)}},
		{name: "none"},
		{name: "no TLS", plain: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := &journal{}
			l, err := net.Listen("tcp4", "0.0.0.0:0")
			if err != nil {
				t.Fatal(err)
			}
			stop := run(t, syslog.Options{Accept: j, TLS: server, ClientCerts: true}, l)
			_, port, _ := net.SplitHostPort(l.Addr().String())
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			tickets := tls.NewLRUClientSessionCache(1)
			if !row.plain {
				c = tls.Client(c, &tls.Config{RootCAs: ours.pool(), ServerName: "127.0.0.1", Certificates: row.certs, ClientSessionCache: tickets})
			}
			_, _ = c.Write([]byte("<13>a\n5 <13>b")) // it may be refused here, or when reading
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, _ = c.Read(make([]byte, 1))
			if _, sent := tickets.Get("127.0.0.1"); sent {
				t.Error("a ticket was sent, which senders never read")
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got, rejected := j.msgs(t); !slices.Equal(got, row.want) || len(rejected) > 0 {
				t.Errorf("got %q, rejected %q", got, rejected)
			}
		})
	}
}
