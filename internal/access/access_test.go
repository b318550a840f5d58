package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
)

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// write writes a file of tokens with SECRET in place of the hash of "s3cret".
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	rewrite(t, path, text)
	return path
}

func rewrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SECRET", hash("s3cret"))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, text string) *access.Tokens {
	t.Helper()
	tokens, err := access.Open(write(t, text), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

const three = `# who may
tokens:
  - id: web
    sha256: [SECRET]
    write: ["web", "web-*"]
    limits: {bytes: 10MiB/s, requests: 100/s, services-per-hour: 50}
  - id: grafana
    sha256: [SECRET]
    read: ["*"]
    expires: 2027-06-01
  # the others
  - id: peers
    sha256: [SECRET]
    role: peer
    certificate: ["spiffe://logs/peer", "Peer-1.example.com"]
`

func TestRead(t *testing.T) {
	list, err := access.Read(write(t, three))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	web := list[0]
	if web.Limits != (access.Limits{Bytes: 10 << 20, Requests: 100, Services: 50}) || web.Secrets() != 1 {
		t.Errorf("%+v", web)
	}
	if want := time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC); !list[1].Expires.Equal(want) {
		t.Error(list[1].Expires)
	}
	if list[2].Role != access.Peer {
		t.Error(list[2].Role)
	}
}

func TestMistakes(t *testing.T) {
	entry := func(rest string) string { return "tokens:\n  - id: a\n    sha256: [SECRET]\n" + rest }
	for name, c := range map[string]struct{ text, want string }{
		"another key":         {"token: []", `line 1: there is no key "token"; the file has one, "tokens"`},
		"no list":             {"tokens: 3", "line 1: tokens: want a list"},
		"no section":          {"- a", `line 1: want the key "tokens" with a list`},
		"unknown key":         {entry("    writes: []"), `line 4: token a: there is no key "writes"; want id, sha256,`},
		"no id":               {"tokens:\n  - sha256: [SECRET]", "line 2: tokens[0]: it has no id"},
		"bad id":              {"tokens:\n  - id: a.b", "line 2: tokens[0]: id: want letters, digits"},
		"duplicate id":        {entry("  - id: a\n    sha256: [SECRET]"), "line 4: token a: there are two tokens with this id"},
		"duplicate key":       {entry("    read: [a]\n    read: [b]"), `"read" already defined`},
		"short hash":          {"tokens:\n  - id: a\n    sha256:\n      - s3cret", "line 4: token a: sha256: [0]: want 64 hexadecimal digits, the SHA-256 of the secret"},
		"long hash":           {"tokens:\n  - id: a\n    sha256: [SECRET0]", "line 3: token a: sha256: [0]: want 64"},
		"three hashes":        {"tokens:\n  - id: a\n    sha256: [SECRET, SECRET, SECRET]", "line 3: token a: sha256: [2]: want at most 2"},
		"hash without a list": {"tokens:\n  - id: a\n    sha256: SECRET", "line 3: token a: sha256: want a list"},
		"no hash":             {"tokens:\n  - id: a\n    read: [a]", "line 2: token a: it has neither sha256 nor certificate"},
		"bad glob":            {entry("    read: ['a', 'w[eb']"), `line 4: token a: read: [1]: "w[eb": want a service or a glob`},
		"upper case":          {entry("    write: ['Web']"), `line 4: token a: write: [0]: "Web": want a service or a glob in lower case`},
		"a comma":             {entry("    read: ['a,b']"), `line 4: token a: read: [0]: "a,b": want a service or a glob`},
		"a line feed":         {entry("    read: [\"a\\n\"]"), `line 4: token a: read: [0]: "a\n": want a service or a glob`},
		"too many globs":      {entry("    read: [" + strings.Repeat("a-service, ", 500) + "a]"), `line 4: token a: read: [409]: want at most 4096 bytes of globs`},
		"empty glob":          {entry("    write: ['']"), `line 4: token a: write: [0]: ""`},
		"role":                {entry("    role: admin"), `line 4: token a: role: "admin": want peer or operator`},
		"expires":             {entry("    expires: tomorrow"), `line 4: token a: expires: "tomorrow": want a time such as`},
		"limit without /s":    {entry("    limits: {bytes: 10MiB}"), `line 4: token a: limits: bytes: "10MiB": want bytes in a second`},
		"no limit":            {entry("    limits: {requests: 0/s}"), `line 4: token a: limits: requests: "0/s": want requests in a second`},
		"not a number":        {entry("    limits: {requests: NaN/s}"), `requests: "NaN/s"`},
		"services":            {entry("    limits: {services-per-hour: 0}"), `line 4: token a: limits: services-per-hour: "0": want 1 to 10000`},
		"unknown limit":       {entry("    limits: {rate: 1}"), `line 4: token a: limits: there is no key "rate"`},
		"same certificate":    {entry("    certificate: [x]\n  - id: b\n    certificate: [x]"), `line 5: token b: certificate: token a has "x" too`},
		"no YAML":             {"tokens: [", "tokens.yaml: ["},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.text)
			_, err := access.Read(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), hash("s3cret"))) {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "tokens:\n", "tokens: []\n"} {
		if list, err := access.Read(write(t, text)); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	base := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, c := range map[string]struct {
		header, value string
		want          access.Credentials
		ok            bool
	}{
		"none":                 {"X-Other", "web.s3cret", access.Credentials{}, false},
		"bearer":               {"Authorization", "Bearer web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"bearer in lower case": {"Authorization", "bearer web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"basic":                {"Authorization", "Basic " + base("web:s3cret"), access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"basic of Splunk":      {"Authorization", "Basic " + base("x:web.s3cret"), access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"basic without a name": {"Authorization", "Basic " + base(":web.s3cret"), access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"splunk":               {"Authorization", "Splunk web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"api key":              {"Authorization", "ApiKey " + base("web:s3cret"), access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"api key unpadded":     {"Authorization", "ApiKey " + strings.TrimRight(base("web:s3cret!"), "="), access.Credentials{ID: "web", Secret: "s3cret!"}, true},
		"api key in the clear": {"Authorization", "ApiKey web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"datadog":              {"DD-API-KEY", "web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"seq":                  {"X-Seq-ApiKey", "web.s3cret", access.Credentials{ID: "web", Secret: "s3cret"}, true},
		"no secret":            {"Authorization", "Bearer web", access.Credentials{}, true},
		"no base64":            {"Authorization", "Basic %%%", access.Credentials{}, true},
		"another scheme":       {"Authorization", "Digest username=web", access.Credentials{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/ingest?token=web.s3cret&dd-api-key=web.s3cret", nil)
			r.Header.Set(c.header, c.value)
			if got, ok := access.CredentialsOf(r); got != c.want || ok != c.ok {
				t.Errorf("%+v, %v", got, ok)
			}
		})
	}
}

// A header that is there twice gives no token, even if one of the two is right, and not that of
// the client's certificate either.
func TestCredentialsTwice(t *testing.T) {
	tokens := open(t, "tokens:\n  - id: web\n    sha256: [SECRET]\n    certificate: [host-1]\n    write: [web]\n")
	right, basic := "Bearer web.s3cret", "Basic "+base64.StdEncoding.EncodeToString([]byte("web:s3cret"))
	for name, c := range map[string]struct {
		header string
		values []string
		ok     bool
	}{
		"once":            {"Authorization", []string{right}, true},
		"the same":        {"Authorization", []string{right, right}, false},
		"two schemes":     {"Authorization", []string{right, basic}, false},
		"right, wrong":    {"Authorization", []string{right, "Bearer ann.other"}, false},
		"wrong, right":    {"Authorization", []string{"Bearer ann.other", right}, false},
		"nothing, right":  {"Authorization", []string{"", right}, false},
		"nothing, twice":  {"Authorization", []string{"", ""}, false},
		"datadog":         {"Dd-Api-Key", []string{"web.s3cret"}, true},
		"datadog's twice": {"Dd-Api-Key", []string{"web.s3cret", "ann.other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			for _, value := range c.values {
				r.Header.Add(c.header, value)
			}
			chain := []*x509.Certificate{{Subject: pkix.Name{CommonName: "host-1"}}}
			r.TLS = &tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}}
			token, err := tokens.Of(r)
			if c.ok && (err != nil || token.ID != "web") || !c.ok && !errors.Is(err, access.ErrUnknown) {
				t.Errorf("%+v, %v", token, err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	tokens := open(t, three+"  - id: gone\n    sha256: [SECRET]\n    expires: 2020-01-01T00:00:00Z\n"+
		"  - id: two\n    sha256: ["+hash("old")+", SECRET]\n")
	for name, c := range map[string]struct {
		id, secret string
		want       error
		shown      string
	}{
		"right":              {"web", "s3cret", nil, ""},
		"old one":            {"two", "old", nil, ""},
		"new one":            {"two", "s3cret", nil, ""},
		"wrong":              {"web", "s3cre", access.ErrSecret, "web"},
		"empty":              {"web", "", access.ErrSecret, "web"},
		"unknown":            {"s3cret", "web", access.ErrUnknown, ""},
		"no id":              {"", "", access.ErrUnknown, ""},
		"expired":            {"gone", "s3cret", access.ErrExpired, "gone"},
		"wrong, and expired": {"gone", "x", access.ErrSecret, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := tokens.Check(c.id, c.secret)
			if !errors.Is(err, c.want) || (token == nil) != (err != nil) {
				t.Fatal(token, err)
			}
			if denied, ok := errors.AsType[*access.DeniedError](err); ok && denied.ID != c.shown {
				t.Errorf("it shows the id %q", denied.ID)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
		})
	}
}

// A certificate that no authority has verified is none.
func TestCertificates(t *testing.T) {
	tokens := open(t, three+"  - id: host\n    certificate: [host-1]\n  - id: old\n    certificate: [old-1]\n    expires: 2020-01-01\n")
	spiffe, err := url.Parse("spiffe://logs/peer")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		certificate x509.Certificate
		unverified  bool
		id          string
		want        error
	}{
		"uri":          {certificate: x509.Certificate{URIs: []*url.URL{spiffe}}, id: "peers"},
		"dns":          {certificate: x509.Certificate{DNSNames: []string{"x", "peer-1.example.com"}}, id: "peers"},
		"common name":  {certificate: x509.Certificate{Subject: pkix.Name{CommonName: "host-1"}}, id: "host"},
		"another name": {certificate: x509.Certificate{Subject: pkix.Name{CommonName: "host-2"}}, want: access.ErrUnknown},
		"expired":      {certificate: x509.Certificate{Subject: pkix.Name{CommonName: "old-1"}}, want: access.ErrExpired},
		"unverified":   {certificate: x509.Certificate{Subject: pkix.Name{CommonName: "host-1"}}, unverified: true, want: access.ErrMissing},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c.certificate}}
			if !c.unverified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{r.TLS.PeerCertificates}
			}
			token, err := tokens.Of(r)
			if !errors.Is(err, c.want) || c.want == nil && token.ID != c.id {
				t.Errorf("%v, %v", token, err)
			}
			r.Header.Set("Authorization", "Bearer web.s3cret")
			if token, err := tokens.Of(r); err != nil || token.ID != "web" {
				t.Errorf("its credentials come first: %v, %v", token, err)
			}
		})
	}
	if _, err := tokens.Of(httptest.NewRequest("POST", "/", nil)); err != access.ErrMissing {
		t.Error(err)
	}
}

func TestServices(t *testing.T) {
	tokens := open(t, `tokens:
  - {id: a, sha256: [SECRET], write: ["web", "web-*", "*-db", "[xy]"], read: ["*"]}
  - {id: s, sha256: [SECRET], read: ["_*"]}
  - {id: p, sha256: [SECRET], role: peer}
`)
	for _, c := range []struct {
		id, service string
		write, read bool
	}{
		{"a", "web", true, true}, {"a", "web-1", true, true}, {"a", "webx", false, true}, {"a", "my-db", true, true},
		{"a", "x", true, true}, {"a", "z", false, true}, {"a", "_rejected", false, false},
		{"s", "_rejected", false, true}, {"s", "web", false, false},
		{"p", "web", false, true}, {"p", "_rejected", false, true},
	} {
		token, err := tokens.Check(c.id, "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		if token.MayWrite(c.service) != c.write || token.MayRead(c.service) != c.read {
			t.Errorf("token %s, service %s: write %v, read %v", c.id, c.service, !c.write, !c.read)
		}
	}
}

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// take returns the log so far, and empties it.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.buf.String()
	l.buf.Reset()
	return text
}

// logged collects the ingester's own log.
func logged() (*lines, zerolog.Logger) {
	l := new(lines)
	return l, zerolog.New(l)
}

// A changed file is in force a few seconds later. A bad one is not, and is logged once.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, log := logged()
		path := write(t, three)
		tokens, err := access.Open(path, log)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go tokens.Run(ctx)
		may := func(id string) bool { _, err := tokens.Check(id, "s3cret"); return err == nil }

		rewrite(t, path, "tokens:\n  - {id: other, sha256: [SECRET]}\n")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !may("other") || may("web") {
			t.Error("the new file is not in force")
		}
		rewrite(t, path, "tokens:\n  - {id: web, sha256: [s3cret]}\n")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !may("other") {
			t.Error("a bad file took the tokens away")
		}
		if text := out.take(); strings.Count(text, "stay in force") != 1 || strings.Contains(text, "s3cret") {
			t.Errorf("not one line, or one with a secret: %s", text)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !may("other") || tokens.Reload() == nil {
			t.Error("a missing file is an error, and changes nothing")
		}
		rewrite(t, path, three)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !may("web") {
			t.Error("the file came back")
		}
	})
}

func TestOpenToOthers(t *testing.T) {
	out, log := logged()
	path := write(t, three)
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o660: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := access.Open(path, log); err != nil || strings.Contains(out.take(), "chmod g-w,o= ") != warned {
			t.Errorf("%o: it warns: %v, %v", mode, !warned, err)
		}
	}
}

func ExampleTokens_Of() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("tokens-%d.yaml", os.Getpid()))
	defer os.Remove(path)
	secret, hash := access.NewSecret()
	if _, err := access.Add(path, access.Entry{ID: "web", Hash: hash, Write: []string{"web-*"}}); err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := http.NewRequest("POST", "http://127.0.0.1/ingest/web-1", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Authorization", "Bearer web."+secret)
	token, err := tokens.Of(r)
	fmt.Println(err, token.MayWrite("web-1"), token.MayWrite("db"))
	// Output: <nil> true false
}
