package httpsource_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/record"
	"blobtail/source/httpsource"
)

// discard is a log without any cost.
type discard struct{}

func (discard) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

const perBody = 1000

// corpus makes a body of 1000 records of about 320 bytes, like those of services.
func corpus() []byte {
	r := rand.New(rand.NewPCG(42, 1))
	var b bytes.Buffer
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	levels := []string{"debug", "info", "warn", "error"}
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	for range perBody {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		fmt.Fprintf(&b, `{"ts":"%s","level":"%s","service":"%s","host":"node-%02d","msg":"outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms","trace_id":"%016x%016x","span_id":"%016x","user":"user%d","status":%d,"duration_ms":%.3f,"bytes":%d}`+"\n",
			t.Format("2006-01-02T15:04:05.000000000Z"), levels[r.IntN(4)], services[r.IntN(6)], r.IntN(40), r.IntN(40), r.IntN(1e6), r.IntN(5), r.IntN(5000),
			r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1e4), 200+r.IntN(300), r.Float64()*1000, r.IntN(1e6))
	}
	return b.Bytes()
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports in the unit of the targets: seconds per million records.
func reportCPU(b *testing.B, begun time.Duration) {
	b.ReportMetric((cpu()-begun).Seconds()/(float64(b.N)*perBody)*1e6, "cpu-s/Mrec")
}

// BenchmarkHandler measures the handler alone, without a connection.
func BenchmarkHandler(b *testing.B) {
	body := corpus()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	array := bytes.ReplaceAll(bytes.TrimSpace(body), []byte("\n"), []byte(","))
	for _, bb := range []struct {
		name, path, contentType, encoding string
		body                              []byte
	}{
		{"lines", "/ingest/web", ndjson, "", body},
		{"lines of many services", "/ingest", ndjson, "", body},
		{"sniffed", "/ingest/web", "", "", body},
		{"array", "/ingest/web", jsonCT, "", fmt.Appendf(nil, "[%s]", array)},
		{"text", "/ingest/web", text, "", bytes.ReplaceAll(body, []byte(`{"ts"`), []byte(`x{"ts"`))},
		{"gzip", "/ingest/web", ndjson, "gzip", []byte(compress(b, "gzip", string(body)))},
		{"zstd", "/ingest/web", ndjson, "zstd", enc.EncodeAll(body, nil)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := newSource(discard{})
			r := httptest.NewRequest(http.MethodPost, bb.path, nil)
			r.Header.Set("Content-Type", bb.contentType)
			r.Header.Set("Content-Encoding", bb.encoding)
			r.ContentLength = int64(len(bb.body))
			w := httptest.NewRecorder()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			begun := cpu()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(bb.body))
				w.Body.Reset()
				s.ServeHTTP(w, r)
			}
			reportCPU(b, begun)
			if want := fmt.Sprintf(`{"accepted":%d,"rejected":0}`+"\n", perBody); w.Body.String() != want {
				b.Errorf("answer %s", w.Body)
			}
		})
	}
}

// BenchmarkLoopback uses a real connection, and counts the sender's CPU time too.
func BenchmarkLoopback(b *testing.B) {
	body := corpus()
	addr := listen(b, newSource(discard{}))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	b.SetBytes(int64(len(body)))
	begun := cpu()
	for b.Loop() {
		res, err := client.Post("http://"+addr+"/ingest/web", ndjson, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	reportCPU(b, begun)
}

// BenchmarkGuard measures a body of many services with and without a guard.
func BenchmarkGuard(b *testing.B) {
	body := corpus()
	for name, guard := range map[string]httpsource.Guard{"without": nil, "with": everybody{}} {
		b.Run(name, func(b *testing.B) {
			s := newSource(discard{}, func(o *httpsource.Options) { o.Guard = guard })
			r := httptest.NewRequest(http.MethodPost, "/ingest", nil)
			r.Header.Set("Content-Type", ndjson)
			r.ContentLength = int64(len(body))
			w := httptest.NewRecorder()
			b.ReportAllocs()
			begun := cpu()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(body))
				w.Body.Reset()
				s.ServeHTTP(w, r)
			}
			reportCPU(b, begun)
		})
	}
}

// everybody is a guard that admits all.
type everybody struct{}

func (everybody) Admit(*http.Request) (httpsource.Sender, error) { return everybody{}, nil }
func (everybody) ID() string                                     { return "everybody" }
func (everybody) Charge(int64)                                   {}
func (everybody) Allow(string) (string, bool)                    { return "", false }
func (everybody) Open(string, int64, time.Duration) (time.Duration, error) {
	return 0, nil
}
