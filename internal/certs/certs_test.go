package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/certs"
	"blobtail/internal/dev/testkit/certstest"
)

func pathsIn(dir string) certs.Paths {
	return certs.Paths{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
}

// dial makes a handshake, and returns the state of both ends.
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
		a, paths := certstest.New(t), pathsIn(t.TempDir())
		certstest.Write(t, paths.Certificate, paths.Key, a.Server("one.example.com", time.Hour*24*90))
		var out bytes.Buffer
		c, err := certs.Open(paths, zerolog.New(&out))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Run(ctx)
		served := func(name string) error {
			_, _, err := dial(c, &tls.Config{RootCAs: a.Pool(), ServerName: name})
			return err
		}
		if err := served("one.example.com"); err != nil {
			t.Error(err)
		}
		certstest.Write(t, paths.Certificate, paths.Key, a.Server("two.example.com", time.Hour))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := served("two.example.com"); err != nil || served("one.example.com") == nil {
			t.Error("the new certificate is not in force", err)
		}
		if !strings.Contains(out.String(), "ends soon") {
			t.Error("no warning of the end")
		}
		certstest.WritePEM(t, paths.Key, "PRIVATE KEY", []byte("s3cret"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := served("two.example.com"); err != nil {
			t.Error("a bad key took the certificate away", err)
		}
		if n := strings.Count(out.String(), "stays in force"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		// The key comes after the certificate: both are read again until they fit.
		three := a.Server("three.example.com", time.Hour)
		certstest.WritePEM(t, paths.Certificate, "CERTIFICATE", three.Certificate[0])
		time.Sleep(5 * time.Second)
		synctest.Wait()
		certstest.Write(t, paths.Certificate, paths.Key, three)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := served("three.example.com"); err != nil {
			t.Error(err)
		}
	})
}

func TestClients(t *testing.T) {
	a, other, paths := certstest.New(t), certstest.New(t), pathsIn(t.TempDir())
	paths.ClientCA = filepath.Join(filepath.Dir(paths.Key), "ca.pem")
	certstest.Write(t, paths.Certificate, paths.Key, a.Server("logs.example.com", time.Hour))
	a.Write(paths.ClientCA)
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
		"ours":                 {clients: []tls.Certificate{a.Client("web")}, verified: true},
		"of another authority": {clients: []tls.Certificate{other.Client("web")}, fails: true},
		"a server's":           {clients: []tls.Certificate{a.Server("web", time.Hour)}, fails: true},
		"TLS 1.2":              {most: tls.VersionTLS12},
		"TLS 1.1":              {most: tls.VersionTLS11, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: a.Pool(), ServerName: "logs.example.com", MaxVersion: row.most, MinVersion: tls.VersionTLS10}
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
	a, dir := certstest.New(t), t.TempDir()
	good, swapped := pathsIn(dir), pathsIn(t.TempDir())
	certstest.Write(t, good.Certificate, good.Key, a.Server("a", time.Hour))
	certstest.Write(t, swapped.Certificate, swapped.Key, a.Server("b", time.Hour))
	noCA := good
	noCA.ClientCA = good.Key
	for name, c := range map[string]struct {
		paths certs.Paths
		want  string
	}{
		"missing":                {pathsIn(t.TempDir()), "no such file"},
		"key of another":         {certs.Paths{Certificate: good.Certificate, Key: swapped.Key}, "private key does not match public key: they are of two pairs; give the key that was made with this certificate"},
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

// A certificate that clients refuse is not sound: before it begins, after it has ended, or with
// such a chain. The same holds for authorities of clients if none of them is valid.
func TestSound(t *testing.T) {
	a, dir := certstest.New(t), t.TempDir()
	paths := pathsIn(dir)
	paths.ClientCA = filepath.Join(dir, "ca.pem")
	a.Write(paths.ClientCA)
	certstest.Write(t, paths.Certificate, paths.Key, a.Server("logs.example.com", time.Hour*24*30))
	c, err := certs.Open(paths, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for after, want := range map[time.Duration]string{
		0: "", 29 * 24 * time.Hour: "", 31 * 24 * time.Hour: "cert.pem: it ended at 20", -2 * time.Hour: "cert.pem: it begins at 20",
	} {
		if err := c.Sound(now.Add(after)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want %q", after, err, want)
		}
	}
	certstest.Write(t, paths.Certificate, paths.Key, a.Server("logs.example.com", time.Hour*24*3650))
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := c.Sound(now.Add(366 * 24 * time.Hour)); err == nil || !strings.Contains(err.Error(), "authorities of clients: "+paths.ClientCA+": it ended") {
		t.Errorf("an authority that has ended: %v", err)
	}
	leaf, err := os.ReadFile(paths.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	certstest.WritePEM(t, paths.ClientCA, "CERTIFICATE", a.Server("link", time.Minute).Certificate[0])
	link, err := os.ReadFile(paths.ClientCA)
	if err != nil {
		t.Fatal(err)
	}
	a.Write(paths.ClientCA)
	if err := errors.Join(os.WriteFile(paths.Certificate, append(leaf, link...), 0o600), c.Reload()); err != nil {
		t.Fatal(err)
	}
	if err := c.Sound(now); err != nil {
		t.Error(err)
	}
	if err := c.Sound(now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "one of the chain behind it: it ended") {
		t.Errorf("a link that has ended: %v", err)
	}
}
