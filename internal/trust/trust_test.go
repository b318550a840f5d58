package trust_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit/certstest"
	"blobtail/internal/trust"
)

// TestFiles ensures that each thing that is no valid authority is an error with its place and its
// remedy.
func TestFiles(t *testing.T) {
	dir, a := t.TempDir(), certstest.New(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	a.Write(file("ca.pem"))
	certstest.Write(t, file("leaf.pem"), file("key.pem"), a.Server("logs.example.com", time.Hour))
	certstest.WritePEM(t, file("csr.pem"), "CERTIFICATE REQUEST", []byte("x"))
	certstest.WritePEM(t, file("other.pem"), "PGP MESSAGE", []byte("x"))
	certstest.WritePEM(t, file("damaged.pem"), "CERTIFICATE", []byte("x"))
	certstest.WritePEM(t, file("trusted.pem"), "TRUSTED CERTIFICATE", []byte("x"))
	good, err := os.ReadFile(file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(file("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"cut.pem": good[:len(good)/2], "text.pem": []byte("tokens: []\n"), "empty.pem": nil,
		"der.pem": a.Server("x", time.Hour).Certificate[0], "both.pem": append(key, good...),
	} {
		if err := os.WriteFile(file(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"ca.pem": "", "leaf.pem": "", "both.pem": "",
		"none.pem":    "no such file or directory; correct the path",
		"":            "is a directory; name the file in it",
		"key.pem":     "no certificate in PEM but a private key",
		"csr.pem":     "but the request for one",
		"other.pem":   `a block of type "PGP MESSAGE"`,
		"damaged.pem": "its certificate cannot be read",
		"trusted.pem": "openssl x509 -in " + file("trusted.pem"),
		"der.pem":     "openssl x509 -inform der -in " + file("der.pem"),
		"cut.pem":     "END CERTIFICATE----- is missing",
		"text.pem":    "-----BEGIN CERTIFICATE-----",
		"empty.pem":   "-----BEGIN CERTIFICATE-----",
	} {
		_, err := trust.New(trust.Options{CA: file(name)}, time.Now())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(dir, name)) || !strings.Contains(err.Error(), "(--ca, tls.ca)")) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for at, want := range map[time.Time]string{time.Now().Add(2 * 365 * 24 * time.Hour): "it ended at", time.Now().Add(-2 * time.Hour): "is this host's clock right?"} {
		if _, err := trust.New(trust.Options{CA: file("ca.pem")}, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %s: %v", at, err)
		}
	}
	for _, name := range []string{"https://logs.example.com", "logs.example.com:8514", "[::1]:8514", "*.example.com", "a/b", "a b"} {
		if _, err := trust.New(trust.Options{Name: name}, time.Now()); err == nil || !strings.Contains(err.Error(), "--server-name") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"logs.example.com", "localhost", "10.0.0.4", "::1", "[::1]"} {
		if _, err := trust.New(trust.Options{Name: name}, time.Now()); err != nil {
			t.Error(err)
		}
	}
	if none, err := trust.New(trust.Options{}, time.Now()); none.Config() != nil || err != nil {
		t.Error(none, err)
	}
}

// served starts a server over TLS with a certificate, and returns its URL.
func served(t *testing.T, pair tls.Certificate) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// ask asks a URL as a client with these options does.
func ask(t *testing.T, at string, o trust.Options) error {
	t.Helper()
	believed, err := trust.New(o, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: believed.Config()}
	defer transport.CloseIdleConnections()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Get(at)
	if err != nil {
		explained, _ := believed.Explain(err, to)
		return explained
	}
	return resp.Body.Close()
}

// TestBelieved ensures that a client believes the authorities and the name that it is told, and
// no others, and that a refusal names what a person can do.
func TestBelieved(t *testing.T) {
	a, b, dir := certstest.New(t), certstest.New(t), t.TempDir()
	ca, other := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	a.Write(ca)
	b.Write(other)
	local, named := served(t, a.Server("127.0.0.1", time.Hour)), served(t, a.Server("logs.example.com", time.Hour))
	ended := served(t, a.Server("127.0.0.1", -time.Minute))
	wild := served(t, a.Server("*.peers.example.com", time.Hour))
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, c := range map[string]struct {
		at   string
		o    trust.Options
		want []string // none: it is believed
	}{
		"the authority":          {at: local, o: trust.Options{CA: ca}},
		"the authority and name": {at: named, o: trust.Options{CA: ca, Name: "logs.example.com"}},
		"of a wildcard":          {at: wild, o: trust.Options{CA: ca, Name: "a.peers.example.com"}},
		"no authority":           {local, trust.Options{}, []string{"unknown authority", "--ca FILE", "BLOBTAIL_CA", "SSL_CERT_FILE"}},
		"another authority":      {local, trust.Options{CA: other}, []string{"unknown authority", "neither " + other + " nor this host", "--ca"}},
		"another name":           {named, trust.Options{CA: ca}, []string{"its certificate is for logs.example.com, and not for 127.0.0.1", "kubectl port-forward", "--server-name logs.example.com"}},
		"a wildcard alone":       {wild, trust.Options{CA: ca}, []string{"--server-name NAME.peers.example.com"}},
		"neither":                {named, trust.Options{}, []string{"--server-name logs.example.com", "then also give the certificate of its authority", "--ca FILE"}},
		"another --server-name":  {named, trust.Options{CA: ca, Name: "x.example.com"}, []string{"not for x.example.com", "give one of these names as --server-name"}},
		"ended":                  {ended, trust.Options{CA: ca}, []string{"expired", "give it a new certificate"}},
		"plain HTTP":             {strings.Replace(plain.URL, "http:", "https:", 1), trust.Options{}, []string{"it speaks no TLS: write " + plain.URL}},
	} {
		err := ask(t, c.at, c.o)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if _, host := strings.CutPrefix(name, "another name"); host && strings.Contains(err.Error(), "then also") {
			t.Errorf("%s: the authority is known: %v", name, err)
		}
	}
}

// TestWantsTLS ensures that an answer over plain HTTP of a server that speaks TLS is known: ours,
// those of nginx and Apache, a redirect, and an alert of TLS.
func TestWantsTLS(t *testing.T) {
	secure := served(t, certstest.New(t).Server("127.0.0.1", time.Hour))
	at, err := url.Parse(strings.Replace(secure, "https:", "http:", 1))
	if err != nil {
		t.Fatal(err)
	}
	real, err := http.Get(at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer real.Body.Close()
	said, err := io.ReadAll(real.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := trust.WantsTLS(real, said, at); got != "it speaks TLS: write "+secure {
		t.Errorf("%q", got)
	}
	answer := func(status int, location string) *http.Response {
		r := &http.Response{StatusCode: status, Header: http.Header{}, Request: &http.Request{URL: at}}
		if location != "" {
			r.Header.Set("Location", location)
		}
		return r
	}
	for _, c := range []struct {
		r    *http.Response
		body string
		want bool
	}{
		{answer(400, ""), "<center>The plain HTTP request was sent to HTTPS port</center>", true},
		{answer(400, ""), "Reason: You're speaking plain HTTP to an SSL-enabled server port.", true},
		{answer(301, "https://127.0.0.1/x"), "", true},
		{answer(301, "https://login.example.com/"), "", false},
		{answer(302, "/login"), "", false},
		{answer(400, ""), "bad request", false},
		{answer(200, ""), "Client sent an HTTP request to an HTTPS server.", false},
	} {
		if got := trust.WantsTLS(c.r, []byte(c.body), at); (got != "") != c.want {
			t.Errorf("%d %q: %q", c.r.StatusCode, c.body, got)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte("\x15\x03\x01\x00\x02\x02\x16"))
			_ = conn.Close()
		}
	}()
	if err := ask(t, "http://"+l.Addr().String(), trust.Options{}); err == nil || !strings.Contains(err.Error(), "it speaks TLS: write https://"+l.Addr().String()) {
		t.Error(err)
	}
}
