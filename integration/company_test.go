package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// announced is a line of logquery ingesters.
type announced struct {
	ID, State, Host, Address, Version string
	Lane                              int
	Unflushed                         float64 `json:"unflushed_seconds"`
}

func ingesters(t testing.TB, at place) (all []announced) {
	t.Helper()
	for line := range bytes.Lines(query(t, at, "ingesters")) {
		var a announced
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, a)
	}
	return all
}

// Ingesters that start at the same time without a configured lane get different lanes
// before they are ready. A restarted ingester gets its lane back. All of them are
// listed.
func TestAutoLanes(t *testing.T) {
	t.Parallel()
	if host, _ := os.Hostname(); regexp.MustCompile(`-[0-9]{1,6}$`).MatchString(host) {
		t.Skip("the name of this host has an ordinal, which is the lane of all")
	}
	stores(t, func(t *testing.T, at place) {
		var ps [3]*ingester
		var wals [3]string
		for i := range ps {
			wals[i] = t.TempDir()
			ps[i] = launch(t, at, wals[i], "--lane", "auto", "--advertise", fmt.Sprintf("http://10.0.0.%d:8514", i))
		}
		for _, p := range ps {
			if err := p.waitReady(); err != nil {
				t.Fatal(err)
			}
		}
		back := 0
		// On a busy host they are ready before they have settled.
		testkit.Until(t, "each has a lane of its own", func() bool {
			var lanes []int
			for _, p := range ps {
				lanes = append(lanes, int(p.metric("blobtail_lane")))
			}
			back = lanes[1]
			slices.Sort(lanes)
			return slices.Equal(lanes, []int{0, 1, 2})
		})
		for _, p := range ps {
			p.mustPost("/ingest/web", []byte(`{"ts":"2026-11-20T15:00:00Z","msg":"x"}`+"\n"))
			p.mustFlush()
		}
		names := string(query(t, at, "ls", "web", "2026-11-20", "--live", "off")) // the addresses are made up
		for _, n := range []string{"000001", "010001", "020001"} {
			if !strings.Contains(names, "/1500/"+n+".log") {
				t.Errorf("no blob %s among\n%s", n, names)
			}
		}
		ps[1].kill()
		ps[1] = start(t, at, wals[1], "--lane", "auto")
		if got := int(ps[1].metric("blobtail_lane")); got != back {
			t.Errorf("lane %d after a restart, and %d before", got, back)
		}
		if code := ps[2].leave(func() *ingester {
			return start(t, at, wals[2], "--lane", "auto", "--advertise", "http://10.0.0.2:8514")
		}); code != 0 {
			t.Errorf("exit code %d", code)
		}
		var states []string
		for i, a := range ingesters(t, at) {
			states = append(states, fmt.Sprint(a.State, " ", i < 2 || a.Address == "http://10.0.0.2:8514"))
		}
		if !slices.Equal(states, []string{"live true", "live true", "stopped true"}) {
			t.Errorf("%q", states)
		}
	})
}

// On a dir store the ingester announces its listener's address. The list of ingesters
// shows its unflushed records.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--lane", "7")
	p.mustPost("/ingest/web", []byte(two))
	testkit.Until(t, "the record that is in no blob is announced", func() bool {
		all := ingesters(t, at)
		if len(all) != 1 || all[0].State != "live" || all[0].Lane != 7 || all[0].Address != p.listen {
			t.Fatalf("%+v", all)
		}
		return all[0].Unflushed > 0
	})
}

// An ingester that cannot announce itself accepts no records. With --announce
// best-effort it starts, ingests and stops as usual.
func TestNoTables(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".tables"), []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	notThere, _ := azureStore(t)
	plain, _ := dirStore(t)
	easy := start(t, plain, t.TempDir())
	easy.stop()
	notThere.env[0] = regexp.MustCompile(`TableEndpoint=[^;]*`).ReplaceAllString(notThere.env[0], "TableEndpoint=http://127.0.0.1:9/none")
	for _, at := range []place{at, notThere} {
		refused := newStation(t, at, &promises{}, "refused", "--lane", "auto")
		refused.launch()
		if reason := refused.refuses(); !strings.Contains(reason, "announce") {
			t.Errorf("it takes nothing because %q", reason)
		}
		refused.stop()

		p := startApart(t, at, t.TempDir(), "--lane", "auto", "--announce", "best-effort")
		if easy.late(p.startup, 2*time.Second) {
			t.Errorf("ready after %v", p.startup)
		}
		p.mustPost("/ingest/web", []byte(two))
		p.mustFlush()
		if code, took := p.stop(); code != 0 || easy.late(took, 10*time.Second) {
			t.Errorf("exit code %d after %v", code, took)
		}
		// A reader cannot know whether an ingester holds more: see TestTablesAway.
		if n := count(t, at, "web", "--live", "off"); n != 2 {
			t.Errorf("%d records, want 2", n)
		}
		if !strings.Contains(p.Log(), `"part":"company","error":"announce this ingester: `) {
			t.Error("not told of")
		}
	}
}

// An ingester with a clock far from the store's clock accepts no records and reports
// the reason. It accepts records again by itself once the clock is right.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	at, _ := azureStore(t)
	a := shared.Azurite(t)
	u, err := url.Parse(a.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	var shift atomic.Int64
	shift.Store(int64(time.Hour))
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", u.Host },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(time.Duration(shift.Load())).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	at.env[0] = strings.Replace(at.env[0], a.BlobURL, proxy.URL+"/"+a.Account, 1)

	p := launch(t, at, t.TempDir())
	select { // it may be ready before it has heard the time
	case <-p.ready:
	case <-p.unready:
	case <-p.Exited:
		t.Fatalf("the ingester ended: %v", p.Cmd.ProcessState)
	}
	p.waitLog(t, "behind the store's, and 5m0s is allowed") // before that nothing is known of the clock
	text := "the clock of this host is 1h0m"
	if code, answer, header, err := p.post("/ingest/web", []byte(two)); code != 503 || !strings.Contains(answer.Error, "not ready: the clock of this host is ") || header.Get("Retry-After") == "" {
		t.Errorf("POST: %d %+v, %v; want 503 and %q", code, answer, err, text)
	}
	if code, body := p.readyz(t); code != 503 || !strings.Contains(body, "behind the store's, and 5m0s is allowed") {
		t.Errorf("readyz: %d %s", code, body)
	}
	if s := p.metric("blobtail_clock_skew_seconds"); s > -3590 || s < -3610 {
		t.Errorf("skew %v", s)
	}
	shift.Store(0)
	p.waitLog(t, `"message":"the clock is right again"`)
	// On a busy machine, requests of the start may have timed out meanwhile, and are tried again.
	p.readyAgain(t)
	p.mustPost("/ingest/web", []byte(two))
	p.mustFlush()
	if n := count(t, at, "web"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// readyAgain waits until an ingester that was not ready is.
func (p *ingester) readyAgain(t testing.TB) {
	t.Helper()
	testkit.Until(t, "the ingester is ready", func() bool {
		code, _ := p.readyz(t)
		return code == http.StatusOK
	})
}

func (p *ingester) readyz(t testing.TB) (code int, body string) {
	t.Helper()
	resp, err := http.Get(p.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b.String()
}

// waitLog waits until the ingester's log contains a text.
func (p *ingester) waitLog(t testing.TB, text string) {
	t.Helper()
	testkit.Until(t, "its log has "+text, func() bool {
		ended := p.Gone()
		has := strings.Contains(p.Log(), text)
		if ended && !has {
			t.Fatalf("its log never has %s", text)
		}
		return has
	})
}
