package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A recorder answers all protocols with success, and keeps the requests. It shows
// the requests of a client, and tries a client before its protocol is there.
type recorder struct {
	t   testing.TB
	dir string
	raw bool // no HTTP

	mu sync.Mutex
	n  int
}

// TestRecord runs the clients against a recorder, if BLOBTAIL_INTEROP is record. Their
// requests are in bin/interop/recorded.
func TestRecord(t *testing.T) {
	if shared.mode != "record" {
		t.Skip("BLOBTAIL_INTEROP is not record")
	}
	for _, c := range clients() {
		t.Run(c.name, func(t *testing.T) {
			c.version(t) // or skip
			dir := filepath.Join(shared.tools, "recorded", strings.ReplaceAll(strings.Trim(c.name, "/@"), "/", "-"))
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			r := newRun(t, c, plain)
			rec := &recorder{t: t, dir: dir, raw: c.raw}
			to := rec.listen()
			r.p = newProxy(t, to, !c.raw)
			r.i = &ingester{t: t, listen: to, syslog: to}
			believed := c.ship(r)
			if believed == nil {
				believed = r.p.believed()
			}
			if c.raw {
				time.Sleep(time.Second)
				believed = r.p.believed()
			}
			if len(believed) != len(r.records) {
				t.Errorf("%d of %d records are delivered\n%.2000s", len(believed), len(r.records), r.output.String())
			}
		})
	}
}

// listen serves HTTP, or keeps the bytes of a client that speaks something else.
func (r *recorder) listen() string {
	if r.raw {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					all, _ := io.ReadAll(c) // the bytes until an error
					r.keep(all)
				}()
			}
		}()
		return l.Addr().String()
	}
	s := httptest.NewServer(r)
	r.t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// keep writes the first requests to files.
func (r *recorder) keep(text []byte) {
	r.mu.Lock()
	r.n++
	n := r.n
	r.mu.Unlock()
	if n <= 5 {
		if err := os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%03d.txt", n)), text, 0o644); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	head, _ := httputil.DumpRequest(req, false)
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	plain := unpacked(req.Header, body)
	r.keep(append(head, plain...))
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.Header().Set("Content-Type", "application/json")
	switch path := req.URL.Path; {
	case req.Method == http.MethodGet || req.Method == http.MethodHead:
		_, _ = io.WriteString(w, `{"version":{"number":"8.9.0"},"tagline":"You Know, for Search"}`)
	case strings.HasPrefix(path, "/loki"):
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/_bulk"):
		r.bulk(w, plain)
	case path == "/v1/logs" && req.Header.Get("Content-Type") == "application/x-protobuf":
		w.Header().Set("Content-Type", "application/x-protobuf")
	case strings.HasPrefix(path, "/services/"):
		_, _ = io.WriteString(w, `{"text":"Success","code":0}`)
	case strings.HasPrefix(path, "/ingest"):
		fmt.Fprintf(w, `{"accepted":%d,"rejected":0}`, len(marksIn(plain)))
	case path == "/gelf" || path == "/upload" || path == "/api/v2/logs":
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "{}")
	default:
		_, _ = io.WriteString(w, "{}")
	}
}

// bulk answers each action of a bulk request with success.
func (r *recorder) bulk(w io.Writer, body []byte) {
	var items []string
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var action map[string]any
		if json.Unmarshal(lines.Bytes(), &action) == nil {
			for name := range action {
				items = append(items, fmt.Sprintf(`{%q:{"_index":"x","_id":"1","status":201}}`, name))
			}
			lines.Scan()
		}
	}
	fmt.Fprintf(w, `{"took":1,"errors":false,"items":[%s]}`, strings.Join(items, ","))
}
