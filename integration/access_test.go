package integration_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/dev/testkit/certstest"
)

// fleet are two ingesters of one store, with TLS, tokens, and tokens for each other.
type fleet struct {
	t      *testing.T
	at     place
	dir    string
	tokens string // the file
	a, b   *ingester
	ca     *certstest.Authority
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), ca: certstest.New(t)}
	f.at, _ = dirStore(t)
	f.tokens = f.file("tokens.yaml")
	f.ca.Write(f.file("ca.pem"))
	certstest.Write(t, f.file("cert.pem"), f.file("key.pem"), f.ca.Server("127.0.0.1", time.Hour))
	peers := f.token("peers", "--peer")
	f.at.env = append(f.at.env, "SSL_CERT_FILE="+f.file("ca.pem"))
	at := f.at
	at.env = append(at.env[:len(at.env):len(at.env)], "BLOBTAIL_PEER_TOKEN="+peers)
	flags := []string{"--tokens", f.tokens, "--tls-cert", f.file("cert.pem"), "--tls-key", f.file("key.pem"), "--tls-client-ca", f.file("ca.pem")}
	f.a = start(t, at, t.TempDir(), flags...)
	f.b = start(t, at, t.TempDir(), append(flags, "--lane", "1")...)
	return f
}

func (f *fleet) file(name string) string { return filepath.Join(f.dir, name) }

// token makes a token as an operator does.
func (f *fleet) token(id string, flags ...string) string {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), append([]string{"token", "new", id, "--file", f.tokens}, flags...)...)
	cmd.Env = testkit.Environ()
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("%v %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// send sends a record and returns the status.
func (f *fleet) send(to *ingester, service, token string, certificates ...tls.Certificate) int {
	f.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.ca.Pool(), Certificates: certificates}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(http.MethodPost, strings.Replace(to.listen, "http:", "https:", 1)+"/ingest/"+service, strings.NewReader("about "+service))
	if err != nil {
		f.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode
}

// Readers and ingesters of a fleet need tokens, and do through TLS only the things that these
// allow.
func TestFleetWithTokens(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	web, reader := f.token("web", "--write", "web"), f.token("reader", "--read", "web")
	testkit.Until(t, "the new tokens are known", func() bool { return f.send(f.a, "web", web) == 200 && f.send(f.b, "web", web) == 200 })
	if status := f.send(f.a, "db", web); status != http.StatusForbidden {
		t.Errorf("another service: %d", status)
	}
	read := func(token string) (string, string, int) {
		at := f.at
		at.env = append(at.env[:len(at.env):len(at.env)], "BLOBTAIL_TOKEN="+token)
		out, errs, code := answered(t, at, "web", "--live-url", strings.Replace(f.a.listen, "http:", "https:", 1))
		return string(out), errs, code
	}
	if _, errs, code := read(""); code != 3 || !strings.Contains(errs, "(401): a token is needed") {
		t.Errorf("without a token: %d %s", code, errs)
	}
	if _, errs, code := read(web); code != 3 || !strings.Contains(errs, "(403): token web may read no service") || strings.Contains(errs, web) {
		t.Errorf("with a token of a sender: %d %s", code, errs)
	}
	out, errs, code := read(reader)
	if n := strings.Count(out, "about web"); code != 0 || n < 2 {
		t.Errorf("%d %d records: %s", code, n, errs)
	}
	path := f.file("reader")
	if err := os.WriteFile(path, []byte(reader+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := answered(t, f.at, "web", "--token-file", path); code != 0 || strings.Count(string(out), "about web") < 2 {
		t.Errorf("with a file, of announced ingesters: %d %s", code, errs)
	}
	if out, errs, code := answered(t, f.at, "we*", "--token-file", path); code != 3 || strings.Count(string(out), "about web") < 2 ||
		!strings.Contains(errs, "the token may read only web of we*") {
		t.Errorf("a glob that the token does not cover: %d %s", code, errs)
	}
	for _, p := range []*ingester{f.a, f.b} {
		for _, secret := range []string{web, reader} {
			if _, part, _ := strings.Cut(secret, "."); strings.Contains(p.Log(), part) {
				t.Error("a secret is in the log")
			}
		}
	}
}

// SIGHUP reads tokens and the certificate again at once. A client certificate stands for a
// token.
func TestHangUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	text, err := os.ReadFile(f.tokens)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.tokens, append(text, "  - id: host\n    certificate: [host-1]\n    write: [web]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	certstest.Write(t, f.file("cert.pem"), f.file("key.pem"), f.ca.Server("127.0.0.1", 2*time.Hour))
	if err := f.a.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "both files are read", func() bool {
		return strings.Count(f.a.Log(), "certificate ends soon") > 1 && strings.Count(f.a.Log(), "tokens read") > 1
	})
	if status := f.send(f.a, "web", "", f.ca.Client("host-1")); status != 200 {
		t.Errorf("its certificate: %d", status)
	}
	if status := f.send(f.a, "db", "", f.ca.Client("host-1")); status != 403 {
		t.Errorf("its certificate, another service: %d", status)
	}
	if status := f.send(f.a, "web", "", f.ca.Client("host-2")); status != 401 {
		t.Errorf("another certificate: %d", status)
	}
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), "token", "revoke", "host", "--file", f.tokens)
	cmd.Env = testkit.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	testkit.Until(t, "the token is revoked", func() bool { return f.send(f.a, "web", "", f.ca.Client("host-1")) == 401 })
}
