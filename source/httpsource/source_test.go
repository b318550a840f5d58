package httpsource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/origin"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// noon is the clock of most tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A memory is an Accepter that keeps its requests, and recognises origins like the
// buffer.
type memory struct {
	mu       sync.Mutex
	requests []record.Request
	known    map[record.Origin]uint64
	refuse   func(n int) error // the n-th call's error
	calls    int
	wait     func(ctx context.Context, stored bool) error
	expired  func(r *record.Request) int
}

func (m *memory) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.refuse != nil {
		if err := m.refuse(m.calls); err != nil {
			return record.Receipt{}, err
		}
	}
	receipt := record.Receipt{Wait: func(ctx context.Context, stored bool) error {
		if m.wait != nil {
			return m.wait(ctx, stored)
		}
		return nil
	}}
	if m.expired != nil {
		receipt.Expired = m.expired(r)
	}
	if !r.Origin.IsZero() {
		if sum, ok := m.known[r.Origin]; ok {
			if sum != r.Sum {
				return record.Receipt{}, record.ErrKeyReused
			}
			receipt.Duplicate = true
			return receipt, nil
		}
		if m.known == nil {
			m.known = map[record.Origin]uint64{}
		}
		m.known[r.Origin] = r.Sum
	}
	c := *r
	c.Services = append([]string(nil), r.Services...)
	c.Lines = append([]record.Line(nil), r.Lines...)
	c.Data = bytes.Clone(r.Data)
	m.requests = append(m.requests, c)
	return receipt, nil
}

// lines returns the canonical lines of all requests, after checking that they
// fill Data exactly and that their tables agree with them.
func (m *memory) lines(t testing.TB) []map[string]any {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []map[string]any
	for _, r := range m.requests {
		off := uint32(0)
		for _, l := range r.Lines {
			if l.Off != off {
				t.Fatalf("line at %d, want %d", l.Off, off)
			}
			off += l.Len
			line := r.Data[l.Off:off]
			if bytes.IndexByte(line, '\n') != len(line)-1 {
				t.Fatalf("not one line: %q", line)
			}
			var v map[string]any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			if v["service"] != r.Services[l.Service] {
				t.Fatalf("service %v, the table says %s", v["service"], r.Services[l.Service])
			}
			if ns, ok := record.LineTime(line); !ok || ns != l.Time {
				t.Fatalf("time %d, the table says %d", ns, l.Time)
			}
			out = append(out, v)
		}
		if int(off) != len(r.Data) {
			t.Fatalf("lines reach to %d of %d", off, len(r.Data))
		}
	}
	return out
}

func (m *memory) origins() []record.Origin {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []record.Origin
	for _, r := range m.requests {
		out = append(out, r.Origin)
	}
	return out
}

func newSource(m body.Accepter, change ...func(*httpsource.Options)) *httpsource.Source {
	o := httpsource.Options{Accept: m, Now: func() time.Time { return noon }, Patience: 50 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	return httpsource.New(o)
}

type reply struct {
	Status    int `json:"-"`
	Header    http.Header
	Accepted  int
	Rejected  int
	Expired   int
	Duplicate bool
	Error     string
	Note      string
	Errors    []struct {
		Index  int
		Reason string
	}
	RetryAfter string
}

// send posts body to path; header are pairs.
func send(t testing.TB, h http.Handler, path, body string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	return serve(t, h, r, header...)
}

func serve(t testing.TB, h http.Handler, r *http.Request, header ...string) reply {
	t.Helper()
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return readReply(t, w.Result())
}

func readReply(t testing.TB, res *http.Response) reply {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := reply{Status: res.StatusCode, Header: res.Header}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("answer %d %q: %v", res.StatusCode, text, err)
	}
	if got, want := res.Header.Get("Content-Length"), fmt.Sprint(len(text)); got != want {
		t.Errorf("Content-Length %s, want %s", got, want)
	}
	if res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("Content-Type %s", res.Header.Get("Content-Type"))
	}
	a.RetryAfter = res.Header.Get("Retry-After")
	return a
}

func wantStatus(t testing.TB, a reply, status int, errorHas string) {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Error, errorHas) {
		t.Errorf("answer %d %q, want %d with %q", a.Status, a.Error, status, errorHas)
	}
}

func TestServiceNames(t *testing.T) {
	for _, tt := range []struct{ path, body, service string }{
		{"/ingest/web", `{"msg":"x"}`, "web"},
		{"/ingest/web", `{"msg":"x","service":"other"}`, "web"}, // the path takes precedence
		{"/ingest/Web%20Shop", `{"msg":"x"}`, "web-shop"},
		{"/ingest/_rejected", `{"msg":"x"}`, "rejected"}, // the system name is out of reach
		{"/ingest/a%2Fb", `{"msg":"x"}`, "a-b"},
		{"/ingest", `{"msg":"x","service":"Other"}`, "other"},
		{"/ingest", `{"msg":"x"}`, "unknown"},
		{"/ingest", `plain text`, "unknown"},
	} {
		m := &memory{}
		a := send(t, newSource(m), tt.path, tt.body)
		if a.Status != 200 || a.Accepted != 1 {
			t.Errorf("%s %s: %+v", tt.path, tt.body, a)
			continue
		}
		if got := m.lines(t)[0]["service"]; got != tt.service {
			t.Errorf("%s %s: service %v, want %s", tt.path, tt.body, got, tt.service)
		}
	}
}

func TestManyServicesInOneRequest(t *testing.T) {
	m := &memory{}
	var body strings.Builder
	for i := range 300 {
		fmt.Fprintf(&body, `{"msg":"x","service":"s%d"}`+"\n", i%150)
	}
	if a := send(t, newSource(m), "/ingest", body.String()); a.Accepted != 300 {
		t.Fatalf("%+v", a)
	}
	for i, l := range m.lines(t) {
		if want := fmt.Sprintf("s%d", i%150); l["service"] != want {
			t.Errorf("line %d of service %v, want %s", i, l["service"], want)
		}
	}
	if n := len(m.requests[0].Services); n != 150 {
		t.Errorf("%d services, want each once", n)
	}
}

// The time of a record is its own, otherwise the key's, otherwise that of arrival.
func TestEffectiveTime(t *testing.T) {
	const uuid = "019aa1a0-0000-7000-8000-000000000000"
	ms, ok := origin.KeyTime(uuid)
	if !ok {
		t.Fatal("no UUIDv7")
	}
	for _, tt := range []struct {
		name, body, key string
		want            time.Time
	}{
		{"own", `{"ts":"2020-01-02T03:04:05Z"}`, uuid, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)},
		{"key", `{"msg":"x"}`, uuid, time.UnixMilli(ms)},
		{"arrival", `{"msg":"x"}`, "", noon},
		{"key without a time", `{"msg":"x"}`, "abc", noon},
		{"key from the future", `{"msg":"x"}`, "fffffffff-ffff-7fff-8fff-ffffffffffff"[1:], noon},
		{"text with key", "a line", uuid, time.UnixMilli(ms)},
	} {
		m := &memory{}
		var header []string
		if tt.key != "" {
			header = []string{"Idempotency-Key", tt.key}
		}
		if a := send(t, newSource(m), "/ingest/web", tt.body, header...); a.Accepted != 1 {
			t.Fatalf("%s: %+v", tt.name, a)
		}
		if got := m.requests[0].Lines[0].Time; got != tt.want.UnixNano() {
			t.Errorf("%s: %v, want %v", tt.name, time.Unix(0, got).UTC(), tt.want)
		}
	}
}

// A note names the page that helps, once.
func TestNoteOfLacks(t *testing.T) {
	const unread, level = " have a field for the time that could not be read", " have a field for the level that could not be read; docs/send/loggers.md#words-for-levels"
	for _, tt := range []struct {
		lacks record.Lacks
		want  string
	}{
		{record.Lacks{}, ""},
		{record.Lacks{TimeUnread: 1}, "1 of 3 lines" + unread + "; docs/send/time-and-level.md#times"},
		{record.Lacks{LevelUnread: 2}, "2 of 3 lines" + level},
		{record.Lacks{Time: 1, TimeUnread: 2, LevelUnread: 3}, "no time found in 1 of 3 lines: they have the time of arrival; docs/send/time-and-level.md#times; 2 of 3 lines" + unread + "; 3 of 3 lines" + level},
	} {
		if got := httpsource.Lacking(tt.lacks, 3); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.lacks, got, tt.want)
		}
	}
}

// A time far ahead is none: the next one counts, else the arrival, and the field stays.
func TestFutureIsPassedOver(t *testing.T) {
	m := &memory{}
	body := `{"ts":"2026-11-21T12:00:00Z","msg":"just in time"}` + "\n" +
		`{"ts":"2026-11-21T12:00:00.000000001Z","msg":"too late"}` + "\n" +
		`{"ts":"2026-11-22T11:00:00Z","time":"2026-11-20T11:00:00Z","msg":"the next"}` + "\n"
	a := send(t, newSource(m), "/ingest/web", body)
	if a.Status != 200 || a.Accepted != 3 || a.Rejected != 0 || !strings.Contains(a.Note, "no time found in 1 of 3 lines") || !strings.Contains(a.Note, "2 of 3 lines have a field for the time that could not be read") {
		t.Fatalf("%+v", a)
	}
	for i, want := range []map[string]any{
		{"ts": "2026-11-21T12:00:00.000000000Z"},
		{"ts": "2026-11-20T12:00:00.000000000Z", "ts.original": "2026-11-21T12:00:00.000000001Z"},
		{"ts": "2026-11-20T11:00:00.000000000Z", "ts.original": "2026-11-22T11:00:00Z"},
	} {
		for k, v := range want {
			if got := m.lines(t)[i][k]; got != v {
				t.Errorf("line %d: %s is %v, want %v", i, k, got, v)
			}
		}
	}
}

// Rejected records without any accepted one have the time of the key or of arrival.
func TestRejectedAlone(t *testing.T) {
	m := &memory{}
	a := send(t, newSource(m), "/ingest/web", `{"a":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`)
	if a.Status != 200 || a.Rejected != 1 || a.Error != "" {
		t.Errorf("%+v", a)
	}
	if l := m.lines(t)[0]; l["ts"] != "2026-11-20T12:00:00.000000000Z" {
		t.Errorf("%v", l)
	}
	if !m.requests[0].Origin.IsZero() {
		t.Error("an origin from nothing accepted")
	}
}

func TestNothingReadable(t *testing.T) {
	for _, tt := range []struct {
		contentType, body string
		status, rejected  int
	}{
		{"application/json", `{"a":`, 400, 1},
		{"application/json", `hello`, 400, 1},
		{"application/json", `[{"a":1`, 400, 1},
		{"application/json", `[`, 400, 1},
		{"application/x-ndjson", "{\n{\n", 400, 2},
		{"application/x-ndjson", "hello\nyou\n", 400, 2},
		{"application/x-ndjson", "{}\n{\n", 200, 1},                                                     // something was accepted
		{"application/x-ndjson", "1\n{\n", 200, 2},                                                      // something was JSON
		{"application/json", `[1,"a",null]`, 200, 3},                                                    // all of it was JSON
		{"application/json", `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, 200, 1}, // JSON that is not accepted
		{"application/json", "", 200, 0},                                                                // nothing to read
		{"application/json", " \n ", 200, 0},                                                            //
		{"application/json", "[]", 200, 0},                                                              //
		{"text/plain", "", 200, 0},                                                                      //
	} {
		m := &memory{}
		a := send(t, newSource(m), "/ingest/web", tt.body, "Content-Type", tt.contentType)
		if a.Status != tt.status || a.Rejected != tt.rejected || (a.Error != "") != (tt.status == 400) {
			t.Errorf("%s %q: %+v", tt.contentType, tt.body, a)
		}
		kept := 0
		for _, l := range m.lines(t) {
			if l["service"] == "_rejected" {
				kept++
			}
		}
		if kept != tt.rejected {
			t.Errorf("%s %q: %d lines kept, want %d", tt.contentType, tt.body, kept, tt.rejected)
		}
	}
}

func TestAtMostHundredErrors(t *testing.T) {
	m := &memory{}
	a := send(t, newSource(m), "/ingest/web", strings.Repeat("x\n", 250), "Content-Type", "application/x-ndjson")
	if a.Rejected != 250 || len(a.Errors) != 100 || a.Errors[99].Index != 99 {
		t.Errorf("%d rejected, %d errors", a.Rejected, len(a.Errors))
	}
	if n := len(m.lines(t)); n != 250 {
		t.Errorf("%d kept", n)
	}
}

func TestMethodsAndPaths(t *testing.T) {
	s := newSource(&memory{})
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/ingest/web", 200}, {"PUT", "/ingest/web", 200}, {"POST", "/ingest", 200}, {"PUT", "/ingest", 200},
		{"GET", "/ingest/web", 405}, {"DELETE", "/ingest", 405}, {"HEAD", "/ingest", 405},
		{"POST", "/", 404}, {"POST", "/ingest/a/b", 404}, {"GET", "/metrics", 404},
	} {
		a := serve(t, s, httptest.NewRequest(tt.method, tt.path, strings.NewReader("{}")))
		if a.Status != tt.status {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, a.Status, tt.status)
		}
		if tt.status == 405 && a.Header.Get("Allow") != "POST, PUT" {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, a.Header.Get("Allow"))
		}
	}
}

func TestNotReady(t *testing.T) {
	m := &memory{}
	s := newSource(m, func(o *httpsource.Options) { o.Ready = func() error { return errors.New("the log is read") } })
	a := send(t, s, "/ingest/web", "{}")
	wantStatus(t, a, 503, "the log is read")
	if a.RetryAfter == "" || m.calls != 0 {
		t.Errorf("Retry-After %q, %d calls", a.RetryAfter, m.calls)
	}
}

func TestAcceptErrors(t *testing.T) {
	gone := errors.New("device gone")
	for _, tt := range []struct {
		err    error
		status int
		retry  bool
	}{
		{record.ErrFull, 429, true},
		{fmt.Errorf("append: %w", record.ErrFull), 429, true},
		{record.ErrKeyReused, 422, false},
		{gone, 503, true},
	} {
		for _, at := range []string{"accept", "wait"} {
			m := &memory{}
			if at == "accept" {
				m.refuse = func(int) error { return tt.err }
			} else {
				m.wait = func(context.Context, bool) error { return tt.err }
			}
			a := send(t, newSource(m), "/ingest/web", "{}")
			if a.Status != tt.status || (a.RetryAfter != "") != tt.retry || a.Error == "" {
				t.Errorf("%s %v: %+v", at, tt.err, a)
			}
		}
	}
}

// A full log holds a request back; when there is room again it is accepted.
func TestFullLogSlowsDown(t *testing.T) {
	m := &memory{refuse: func(n int) error {
		if n < 3 {
			return record.ErrFull
		}
		return nil
	}}
	s := newSource(m, func(o *httpsource.Options) { o.Patience = 10 * time.Second })
	if a := send(t, s, "/ingest/web", "{}"); a.Status != 200 || a.Accepted != 1 || m.calls != 3 {
		t.Errorf("%+v after %d calls", a, m.calls)
	}
}

func TestAckStored(t *testing.T) {
	for _, tt := range []struct {
		ack  string
		want bool
	}{{"stored", true}, {"", false}, {" Stored ", true}} {
		var got bool
		m := &memory{wait: func(_ context.Context, stored bool) error { got = stored; return nil }}
		send(t, newSource(m), "/ingest/web", "{}", "Ack", tt.ack)
		if got != tt.want {
			t.Errorf("Ack %q waits for stored: %v", tt.ack, got)
		}
	}
}

// A client that closes while it waits never gets an acknowledgement.
func TestClientGone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &memory{wait: func(ctx context.Context, _ bool) error { cancel(); <-ctx.Done(); return ctx.Err() }}
	r := httptest.NewRequestWithContext(ctx, "POST", "/ingest/web", strings.NewReader("{}"))
	if a := serve(t, newSource(m), r); a.Status != 499 {
		t.Errorf("%+v", a)
	}
}

// Memory is free while a request waits to become durable.
func TestMemoryIsFreeWhileWaiting(t *testing.T) {
	reg := new(count.Registry)
	during := -1.0
	m := &memory{wait: func(context.Context, bool) error { during = inFlight(t, reg); return nil }}
	s := newSource(m, func(o *httpsource.Options) { o.Metrics = reg })
	send(t, s, "/ingest/web", "{}")
	if during != 0 {
		t.Errorf("%v bytes in flight", during)
	}
}

func TestMetrics(t *testing.T) {
	reg := new(count.Registry)
	s := newSource(&memory{}, func(o *httpsource.Options) { o.Metrics = reg })
	body := `{"ts":1700000001.5,"msg":"a"}` + "\n" + `{"ts":1700000002.5}` + "\n{\"\n"
	send(t, s, "/ingest/web", body)
	send(t, s, "/ingest/web", body)
	send(t, s, "/nowhere", "")
	want := `# HELP blobtail_http_records_total Records of HTTP requests that were appended to the log, by result; rejected ones go to the service _rejected.
# TYPE blobtail_http_records_total counter
blobtail_http_records_total{result="accepted"} 2
blobtail_http_records_total{result="duplicate"} 3
blobtail_http_records_total{result="rejected"} 1
# HELP blobtail_http_requests_total HTTP requests by status code and protocol; 499 is a client that had gone.
# TYPE blobtail_http_requests_total counter
blobtail_http_requests_total{code="200",protocol="native"} 2
blobtail_http_requests_total{code="404",protocol="native"} 1
`
	for _, part := range strings.SplitAfter(want, "\"} 1\n") {
		if page := string(reg.Page()); !strings.Contains(page, part) {
			t.Errorf("%s\nis not in\n%s", part, page)
		}
	}
}
