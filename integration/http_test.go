package integration_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if cerr := w.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// two is a body of two records. Every accepted body below has as many.
const two = `{"time":"2026-11-10T12:00:00.5Z","level":"ERROR","message":"first","k":1}` + "\n" +
	`{"time":"2026-11-10T12:00:01.5Z","level":"warning","message":"second","k":[2,{"x":"y"}]}` + "\n"

// wantTwo returns the stored lines of two for a service.
func wantTwo(service string) string {
	return fmt.Sprintf(`{"ts":"2026-11-10T12:00:00.500000000Z","level":"error","service":"%s","msg":"first","k":1}`+"\n"+
		`{"ts":"2026-11-10T12:00:01.500000000Z","level":"warn","service":"%[1]s","msg":"second","k":[2,{"x":"y"}]}`+"\n", service)
}

// All forms of a body have the same meaning. Records of a request that waits for
// storage are readable as soon as it is answered.
func TestBodies(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	array := "[" + strings.Replace(strings.TrimSpace(two), "\n", ",", 1) + "]"
	text := "first\nsecond\n"
	for _, row := range []struct {
		service string
		body    []byte
		headers []string
	}{
		{"plain", []byte(two), nil},
		{"ndjson", []byte(two), []string{"Content-Type", "application/x-ndjson"}},
		{"json-array", []byte(array), []string{"Content-Type", "application/json"}},
		{"sniffed-array", []byte(array), nil},
		{"concatenated", []byte(strings.ReplaceAll(two, "\n", "")), []string{"Content-Type", "application/json"}},
		{"curl", []byte(two), []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"gzip", gzipped(t, []byte(two)), []string{"Content-Encoding", "gzip"}},
		{"zstd", zstded(t, []byte(two)), []string{"Content-Encoding", "zstd"}},
		{"text", []byte(text), []string{"Content-Type", "text/plain"}},
	} {
		t.Run(row.service, func(t *testing.T) {
			t.Parallel()
			a := p.mustPost("/ingest/"+row.service, row.body, append(row.headers, "Ack", "stored")...)
			if a.Accepted != 2 {
				t.Errorf("answer %+v", a)
			}
			if row.service == "text" {
				if out := query(t, at, "text", "-o", "raw"); string(out) != text {
					t.Errorf("got %q, want %q", out, text)
				}
				return
			}
			if out := query(t, at, row.service, "-o", "json"); string(out) != wantTwo(row.service) {
				t.Errorf("got %swant %s", out, wantTwo(row.service))
			}
		})
	}
}

// A bad request must be answered with its status and its reason.
func TestRefusals(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	big := bytes.Repeat([]byte(two), (65<<20)/len(two))
	// A body of many gzip members is one body. Some noise in each keeps it from being
	// refused for its ratio.
	member := make([]byte, 1<<20)
	noise := rand.New(rand.NewPCG(1, 1))
	for i := range member {
		if i%4096 < 128 {
			member[i] = byte(noise.Uint64())
		}
	}
	tooLargeInside := bytes.Repeat(gzipped(t, member), 65)
	for _, row := range []struct {
		name, path string
		body       []byte
		headers    []string
		code       int
		reason     string
	}{
		{"too large", "/ingest/web", big, nil, 413, "64 MiB"},
		{"too large compressed", "/ingest/web", make([]byte, 17<<20), []string{"Content-Encoding", "gzip"}, 413, "16 MiB"},
		{"too large inside", "/ingest/web", tooLargeInside, []string{"Content-Encoding", "gzip"}, 413, "64 MiB"},
		{"bomb", "/ingest/web", gzipped(t, make([]byte, 20<<20)), []string{"Content-Encoding", "gzip"}, 413, "times its size"},
		{"content type", "/ingest/web", []byte(two), []string{"Content-Type", "image/png"}, 415, "image/png"},
		{"encoding", "/ingest/web", []byte(two), []string{"Content-Encoding", "br"}, 415, "br"},
		{"not gzip", "/ingest/web", []byte(two), []string{"Content-Encoding", "gzip"}, 400, "gzip"},
		{"nothing readable", "/ingest/web", []byte("{\"a\":\n{{{\n"), []string{"Content-Type", "application/x-ndjson"}, 400, ""},
		{"path", "/elsewhere", []byte(two), nil, 404, "/ingest"},
		{"two keys in one", "/ingest/web", []byte(two), []string{"Idempotency-Key", "a\tb"}, 400, "Idempotency-Key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, a, _, err := p.post(row.path, row.body, row.headers...)
			if err != nil || code != row.code || a.Error == "" || !strings.Contains(a.Error, row.reason) {
				t.Errorf("%d %+v, %v; want %d with %q", code, a, err, row.code, row.reason)
			}
		})
	}
	p.mustFlush()
	if n := count(t, at, "*"); n != 0 {
		t.Errorf("%d records of refused requests are stored", n)
	}
}

// An invalid line is answered with its number and reason, and can be read. The other
// lines of its request are accepted.
func TestRejectedLines(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	lines := []string{
		`{"time":"2026-11-10T12:00:00.25Z","msg":"good"}`,
		`{"time":"2026-11-10T12:00:00Z","msg":"cut off`,
		`{"msg":"a" "msg":"duplicate"}`,
		`{"deep":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`,
		`{"msg":"` + strings.Repeat("x", 1<<20) + `"}`,
		`{"time":"2026-11-10T12:00:01Z","msg":"text behind"} and more`,
		`{"time":"2026-11-10T12:00:02.25Z","msg":"good too"}`,
	}
	body := []byte(strings.Join(lines, "\n"))
	for _, duplicate := range []bool{false, true} {
		code, a, _, err := p.post("/ingest/web", body, "Content-Type", "application/x-ndjson")
		if err != nil || code != 200 || a.Accepted != 2 || a.Rejected != 5 || a.Duplicate != duplicate || len(a.Errors) != 5 {
			t.Fatalf("%d %+v, %v; want 2 accepted, 5 rejected, duplicate %v", code, a, err, duplicate)
		}
		for i, e := range a.Errors {
			if e.Index != i+1 || e.Reason == "" {
				t.Errorf("error %d: %+v", i, e)
			}
		}
	}
	p.mustFlush()
	if n := count(t, at, "*"); n != 2 {
		t.Errorf("%d records, want 2; what was rejected is not among them", n)
	}
	out := query(t, at, "_rejected", "-o", "json")
	if n := bytes.Count(out, []byte("\n")); n != 5 {
		t.Errorf("%d records in _rejected, want 5 (sent twice)", n)
	}
	for _, text := range []string{"cut off", "text behind", "duplicate", "deep"} {
		if !bytes.Contains(out, []byte(text)) {
			t.Errorf("_rejected lacks %q", text)
		}
	}
	for line := range bytes.Lines(out) {
		var r struct {
			TS, Service, Msg, Reason string
		}
		if err := json.Unmarshal(line, &r); err != nil || r.Reason == "" || r.TS != "2026-11-10T12:00:00.250000000Z" {
			t.Errorf("%v: %.300s", err, line)
		}
	}
}

// A retry is recognised by its key or by its body, also after a restart. A key with
// another body is a client error.
func TestRetries(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal)
	key := []string{"Idempotency-Key", "0192f0c1-2b3c-7d4e-8f50-a1b2c3d4e5f6"}
	untimed := []byte(`{"msg":"no time"}` + "\n" + `{"msg":"of its own"}` + "\n")
	if a := p.mustPost("/ingest/key", untimed, key...); a.Duplicate {
		t.Error("the first is no duplicate")
	}
	if a := p.mustPost("/ingest/body", []byte(two)); a.Duplicate {
		t.Error("the first is no duplicate")
	}
	for range 2 {
		if a := p.mustPost("/ingest/key", untimed, key...); !a.Duplicate || a.Accepted != 2 {
			t.Errorf("retry with a key: %+v", a)
		}
		if a := p.mustPost("/ingest/body", []byte(two), "Ack", "stored"); !a.Duplicate {
			t.Errorf("retry of a body with times: %+v", a)
		}
		if a := p.mustPost("/ingest/body", gzipped(t, []byte(two)), "Content-Encoding", "gzip"); !a.Duplicate {
			t.Errorf("the same, compressed: %+v", a)
		}
		code, a, _, err := p.post("/ingest/key", []byte(two), key...)
		if err != nil || code != http.StatusUnprocessableEntity || a.Error == "" {
			t.Errorf("the key with another body: %d %+v, %v; want 422", code, a, err)
		}
		p.kill()
		p = start(t, at, wal)
		// Repeats from before the start are recognised once the log is replayed.
		if code, f, err := p.flush("?timeout=30s"); code != 200 {
			t.Fatalf("%d %+v %v", code, f, err)
		}
	}
	for service, n := range map[string]int{"key": 2, "body": 2} {
		if got := count(t, at, service); got != n {
			t.Errorf("%s: %d records, want %d", service, got, n)
		}
	}
}

// The admin listener answers too.
func TestAdmin(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, filepath.Join(t.TempDir(), "made", "by", "the", "ingester"))
	for path, code := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 200, "/flush": 405, "/nothing": 404} {
		resp, err := http.Get(p.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("GET %s: %d, want %d", path, resp.StatusCode, code)
		}
	}
	if code, _, err := p.flush("?timeout=soon"); code != 400 {
		t.Errorf("flush?timeout=soon: %d, %v", code, err)
	}
	p.mustPost("/ingest/web", []byte(two))
	if code, took := p.stop(); code != 0 || took > p.allowed(5*time.Second) {
		t.Errorf("SIGTERM: exit code %d after %v", code, took)
	}
	if out := query(t, at, "web", "-o", "json"); string(out) != wantTwo("web") {
		t.Errorf("stopping flushes: got %s", out)
	}
}
