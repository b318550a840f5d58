package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/source/shippers"
)

// guarded is an ingester with tokens. The secret of each is "s3cret-" and its id.
type guarded struct {
	listen, admin string
	tokens        string // the file
	log           *safeBuffer
}

// safeBuffer is a log that can be read while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// entry is a token in the file.
func entry(id, rest string) string {
	sum := sha256.Sum256([]byte("s3cret-" + id))
	return fmt.Sprintf("  - {id: %s, sha256: [%s]%s}\n", id, hex.EncodeToString(sum[:]), rest)
}

// runGuarded starts an ingester with tokens in this process, and ends it with the test.
func runGuarded(t *testing.T, admin string, entries ...string) *guarded {
	t.Helper()
	return runGuardedWith(t, func(c *config.Config) { c.Ingest.Admin = admin }, entries...)
}

// runGuardedWith is runGuarded with a changed configuration.
func runGuardedWith(t *testing.T, change func(*config.Config), entries ...string) *guarded {
	t.Helper()
	dir := t.TempDir()
	g := &guarded{tokens: filepath.Join(dir, "tokens.yaml"), log: new(safeBuffer)}
	if err := os.WriteFile(g.tokens, []byte("tokens:\n"+strings.Join(entries, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	g.start(t, func(c *config.Config) {
		c.Access.Tokens = g.tokens
		change(c)
	})
	return g
}

// start starts an ingester in this process with a changed configuration, and ends it with
// the test.
func (g *guarded) start(t *testing.T, change func(*config.Config)) {
	t.Helper()
	c := config.Default()
	var err error
	if c.Store, err = openstore.Parse("dir:" + filepath.Join(t.TempDir(), "store")); err != nil {
		t.Fatal(err)
	}
	c.Ingest.Listen, c.Ingest.Admin = "127.0.0.1:0", "127.0.0.1:0"
	c.Ingest.Grace = config.Duration(time.Second)
	change(&c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, c, handling{}, zerolog.New(g.log)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if strings.Contains(g.log.String(), "s3cret") {
			t.Errorf("a secret is in the log:\n%s", g.log)
		}
	})
	for end := time.Now().Add(30 * time.Second); g.listen == ""; time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(g.log.String()) {
			var ready struct{ Message, Listen, Admin string }
			if json.Unmarshal([]byte(line), &ready) == nil && ready.Message == "ready" {
				g.listen, g.admin = ready.Listen, ready.Admin
			}
		}
		if time.Now().After(end) {
			t.Fatalf("it is not ready:\n%s", g.log)
		}
	}
}

// a route is a request that needs a token.
type route struct {
	protocol     string // of the source, "" for others
	method, path string
	kind, body   string // of the request
	probe        bool   // it has no service: each token is right
}

const event = `{"service":"web","message":"x"}`

const logs = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}`

func routes() []route {
	return []route{
		{"native", "POST", "/ingest/web", "", "x", false},
		{"native", "PUT", "/ingest", "application/json", event, false},
		{"native", "GET", "/nowhere", "", "", true},
		{"elastic", "GET", "/", "", "", true},
		{"elastic", "HEAD", "/_index_template/web", "", "", true},
		{"elastic", "GET", "/_license", "", "", true},
		{"elastic", "POST", "/_bulk", "application/x-ndjson", `{"create":{"_index":"web"}}` + "\n" + event + "\n", false},
		{"elastic", "PUT", "/web/_bulk", "application/x-ndjson", `{"create":{}}` + "\n" + event + "\n", false},
		{"elastic", "POST", "/elasticsearch/_bulk", "", `{"create":{"_index":"web"}}` + "\n" + event + "\n", false},
		{"otlp", "POST", "/v1/logs", "application/json", logs, false},
		{"otlp", "POST", "/otlp/v1/logs", "application/json", logs, false},
		{"native", "DELETE", "/ingest/web", "", "", true},
		{"loki", "POST", "/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"service_name":"web"},"values":[["1","x"]]}]}`, false},
		{"loki", "POST", "/api/prom/push", "application/json", `{"streams":[{"stream":{"service_name":"web"},"values":[["1","x"]]}]}`, false},
		{"loki", "GET", "/ready", "", "", true},
		{"journald", "POST", "/upload", "application/vnd.fdo.journal", "__REALTIME_TIMESTAMP=1700000000000000\nMESSAGE=x\n_SYSTEMD_UNIT=web.service\n\n", false},
		{"splunk", "POST", "/services/collector", "application/json", `{"event":"x","source":"web","sourcetype":"web"}`, false},
		{"splunk", "POST", "/services/collector/event", "application/json", `{"event":"x","source":"web","sourcetype":"web"}`, false},
		{"splunk", "POST", "/services/collector/raw", "", "x", false},
		{"splunk", "GET", "/services/collector/health", "", "", true},
		{"datadog", "POST", "/api/v2/logs", "application/json", `[{"message":"x","service":"web"}]`, false},
		{"datadog", "GET", "/api/v1/validate", "", "", true},
		{"gelf", "POST", "/gelf", "application/json", `{"version":"1.1","host":"h","short_message":"x","_service":"web"}`, false},
		{"seq", "POST", "/api/events/raw", "application/vnd.serilog.clef", `{"@m":"x","Application":"web"}`, false},
		{"elastic", "POST", "/web/_doc", "application/json", event, false},
		{"", "GET", "/live/web", "", "", false},
		{"", "GET", "/live/web?peers=no&follow=1", "", "", false},
		{"", "POST", "/live/web", "", "", true},
		{"", "GET", "/live/", "", "", true},
		{"", "GET", "/live/a/b", "", "", true},
	}
}

// status returns the status of a request to a route with a token.
func (r route) status(t *testing.T, address, token string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(r.method, "http://"+address+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.kind != "" {
		q.Header.Set("Content-Type", r.kind)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusUnauthorized && len(resp.Header.Values("WWW-Authenticate")) != 2 {
		t.Errorf("%s %s: 401 without a challenge", r.method, r.path)
	}
	return resp.StatusCode, string(text)
}

// Every route of the listener for records needs a token with the right for the request.
func TestEveryRoute(t *testing.T) {
	g := runGuarded(t, "127.0.0.1:0",
		entry("all", `, write: ["*"], read: ["*"]`), entry("other", ", write: [other], read: [other]"),
		entry("gone", `, write: ["*"], read: ["*"], expires: 2020-01-01`), entry("peers", ", role: peer"))
	all := routes()
	for _, p := range shippers.Protocols(shippers.Options{}) {
		if !slices.ContainsFunc(all, func(r route) bool { return r.protocol == p.Name() }) {
			t.Errorf("no route of the protocol %s is tried", p.Name())
		}
	}
	for _, r := range all {
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			for name, token := range map[string]string{"no token": "", "a wrong secret": "all.s3cret-other", "an unknown id": "none.s3cret-all", "an expired token": "gone.s3cret-gone"} {
				if status, text := r.status(t, g.listen, token); status != http.StatusUnauthorized || strings.Contains(text, "s3cret") {
					t.Errorf("%s: %d %s", name, status, text)
				}
			}
			if status, text := r.status(t, g.listen, "other.s3cret-other"); (status != http.StatusForbidden) != r.probe || status == 401 {
				t.Errorf("a token of another service: %d %s", status, text)
			}
			if status, text := r.status(t, g.listen, "all.s3cret-all"); status == 401 || status == 403 {
				t.Errorf("the right token: %d %s", status, text)
			}
		})
	}
	if status, _ := routes()[0].status(t, g.listen, "peers.s3cret-peers"); status != http.StatusForbidden {
		t.Errorf("a peer sends records: %d", status)
	}
}

// A glob of /live shows the services of the token, and no trace of others.
func TestLiveShowsItsServices(t *testing.T) {
	g := runGuarded(t, "127.0.0.1:0", entry("all", `, write: ["*"]`), entry("web", `, read: ["web"]`), entry("peers", ", role: peer"))
	for _, service := range []string{"web", "hidden"} {
		if status, text := (route{"", "POST", "/ingest/" + service, "", "about " + service, false}).status(t, g.listen, "all.s3cret-all"); status != 200 {
			t.Fatal(status, text)
		}
	}
	live := route{"", "GET", "/live/*", "", "", false}
	if status, text := live.status(t, g.listen, "web.s3cret-web"); status != 200 || !strings.Contains(text, "about web") || strings.Contains(text, "hidden") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := live.status(t, g.listen, "peers.s3cret-peers"); status != 200 || !strings.Contains(text, "about hidden") {
		t.Errorf("%d %s", status, text)
	}
}

// A sender over its limits is held back first, and then told when to come again. New
// services over the limit are refused by their path, or kept in _rejected.
func TestLimits(t *testing.T) {
	g := runGuarded(t, "127.0.0.1:0", entry("fast", `, write: ["*"], limits: {requests: 4/s}`),
		entry("many", `, write: ["*"], read: ["_*"], limits: {services-per-hour: 2}`))
	var held, refused atomic.Int64
	var sending sync.WaitGroup
	for range 120 {
		sending.Go(func() {
			begun := time.Now()
			switch status, text := (route{"", "POST", "/ingest/web", "", "x", false}).status(t, g.listen, "fast.s3cret-fast"); {
			case status == 200 && time.Since(begun) > time.Second:
				held.Add(1)
			case status == 429 && strings.Contains(text, "token fast is over its limit of 4 requests in a second"):
				refused.Add(1)
			case status != 200:
				t.Error(status, text)
			}
		})
	}
	sending.Wait()
	if held.Load() < 5 || refused.Load() < 10 {
		t.Errorf("%d were held back, %d refused", held.Load(), refused.Load())
	}
	for i, want := range []int{200, 200, 429} {
		path := fmt.Sprint("/ingest/service-", i)
		if status, text := (route{"", "POST", path, "", "x", false}).status(t, g.listen, "many.s3cret-many"); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	two := `{"service":"service-0","msg":"a"}` + "\n" + `{"service":"service-9","msg":"b"}`
	if status, text := (route{"", "POST", "/ingest", "application/x-ndjson", two, false}).status(t, g.listen, "many.s3cret-many"); status != 200 ||
		!strings.Contains(text, `"accepted":1,"rejected":1`) || !strings.Contains(text, "token many is over its limit of 2 new services in an hour") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := (route{"", "GET", "/live/_rejected", "", "", false}).status(t, g.listen, "many.s3cret-many"); status != 200 || !strings.Contains(text, "service-9") {
		t.Errorf("the rejected record: %d %s", status, text)
	}
}

// An admin listener that other hosts reach answers probes to everybody, and the rest to
// operators.
func TestAdminBeyondLoopback(t *testing.T) {
	g := runGuarded(t, "0.0.0.0:0", entry("ops", ", role: operator"), entry("web", `, write: ["*"], read: ["*"]`), entry("gone", ", role: operator, expires: 2020-01-01"))
	_, port, err := net.SplitHostPort(g.admin)
	if err != nil {
		t.Fatal(err)
	}
	outside := outsideAddress(t)
	for _, r := range []struct {
		method, path string
		open         bool // to everybody
		operator     int  // status for an operator
	}{
		{"GET", "/healthz", true, 200}, {"GET", "/readyz", true, 200}, {"GET", "/metrics", false, 200},
		{"POST", "/flush", false, 403}, {"POST", "/drain", false, 403}, {"GET", "/debug/pprof/", false, 403},
		{"GET", "/ingest/web", false, 404}, {"GET", "/live/web", false, 404}, {"GET", "/nowhere", false, 404},
	} {
		x := route{"", r.method, r.path, "", "", false}
		address := net.JoinHostPort(outside, port)
		for token, want := range map[string]int{"": 401, "ops.wrong": 401, "gone.s3cret-gone": 401, "web.s3cret-web": 403, "ops.s3cret-ops": r.operator} {
			if r.open {
				want = 200
			}
			if status, text := x.status(t, address, token); status != want {
				t.Errorf("%s %s with %q: %d %s", r.method, r.path, token, status, text)
			}
		}
	}
	if status, text := (route{"", "GET", "/metrics", "", "", false}).status(t, net.JoinHostPort("127.0.0.1", port), ""); status != 200 ||
		!strings.Contains(text, `blobtail_auth_failures_total{reason="missing"}`) {
		t.Errorf("from this host: %d %.300s", status, text)
	}
}

// A page of another site, in a browser on this host, changes nothing.
func TestAdminFromAnotherSite(t *testing.T) {
	g := runGuarded(t, "127.0.0.1:0", entry("all", `, write: ["*"]`))
	for _, c := range []struct {
		method, path, header, value string
		want                        int
	}{
		{"POST", "/drain", "Sec-Fetch-Site", "cross-site", 403},
		{"POST", "/flush", "Sec-Fetch-Site", "same-site", 403},
		{"POST", "/drain", "Origin", "https://evil.example", 403},
		{"POST", "/drain?timeout=1s", "Origin", "null", 403},
		{"GET", "/readyz", "Sec-Fetch-Site", "cross-site", 200},
		{"POST", "/flush", "Origin", "http://" + g.admin, 200},
		{"POST", "/flush", "", "", 200},
	} {
		q, err := http.NewRequest(c.method, "http://"+g.admin+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			q.Header.Set(c.header, c.value)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with %s %s: %d, want %d", c.method, c.path, c.header, c.value, resp.StatusCode, c.want)
		}
	}
	if strings.Contains(g.log.String(), "drained") {
		t.Errorf("it was drained:\n%s", g.log)
	}
	if status, text := (route{"", "POST", "/ingest/web", "", "x", false}).status(t, g.listen, "all.s3cret-all"); status != 200 {
		t.Errorf("it takes no more: %d %s", status, text)
	}
}

// outsideAddress is an address of this host that is not loopback.
func outsideAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("this host has loopback addresses only")
	}
	t.Skip("this host has loopback addresses only")
	return ""
}

// Failures are logged once a second, with the id of a token that exists, and counted.
func TestFailuresAreLogged(t *testing.T) {
	g := runGuarded(t, "127.0.0.1:0", entry("web", `, write: ["*"]`))
	for range 20 {
		if status, _ := routes()[0].status(t, g.listen, "web.s3cret-x"); status != 401 {
			t.Fatal(status)
		}
	}
	if n := strings.Count(g.log.String(), `"token":"web","remote":"127.0.0.1:`); n < 1 || n > 10 {
		t.Errorf("logged %d times", n)
	}
	if _, text := (route{"", "GET", "/metrics", "", "", false}).status(t, g.admin, ""); !strings.Contains(text, `blobtail_auth_failures_total{reason="secret"} 20`) {
		t.Error("not counted")
	}
}
