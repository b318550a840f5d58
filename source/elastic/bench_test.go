package elastic_test

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

	"blobtail/record"
	"blobtail/source/elastic"
	"blobtail/source/httpsource"
)

// discard is a log without any cost.
type discard struct{}

func (discard) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

const perBody = 1000

// corpus makes a body of 1000 records of about 320 bytes, like those of services. action
// makes the line before each; it may be empty.
func corpus(action func(r *rand.Rand) string) []byte {
	r, ids := rand.New(rand.NewPCG(42, 1)), rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	levels := []string{"debug", "info", "warn", "error"}
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	for range perBody {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		b.WriteString(action(ids))
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

// BenchmarkHandler measures the handler alone, without a connection, beside the same records
// as NDJSON.
func BenchmarkHandler(b *testing.B) {
	none := func(*rand.Rand) string { return "" }
	create := func(*rand.Rand) string { return `{"create":{}}` + "\n" }
	withID := func(r *rand.Rand) string {
		return fmt.Sprintf(`{"index":{"_index":"logs","_id":"%016x%04x"}}`+"\n", r.Uint64(), r.IntN(1<<16))
	}
	for _, bb := range []struct {
		name, path string
		action     func(*rand.Rand) string
	}{
		{"ndjson", "/ingest", none},
		{"create", "/logs/_bulk", create},
		{"ids", "/_bulk", withID},
		{"ids, as Filebeat asks", "/_bulk?filter_path=errors,items.*.error,items.*.status", withID},
		{"two indexes", "/_bulk", func(r *rand.Rand) string { return fmt.Sprintf(`{"create":{"_index":"logs-%d"}}`+"\n", r.IntN(2)) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := httpsource.New(httpsource.Options{Accept: discard{}, Protocols: []httpsource.Protocol{elastic.New(elastic.Options{})}})
			sent := corpus(bb.action)
			r := httptest.NewRequest(http.MethodPost, bb.path, nil)
			r.Header.Set("Content-Type", "application/x-ndjson")
			r.ContentLength = int64(len(sent))
			w := httptest.NewRecorder()
			b.ReportAllocs()
			begun := cpu()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(sent))
				w.Body.Reset()
				s.ServeHTTP(w, r)
			}
			b.ReportMetric((cpu()-begun).Seconds()/(float64(b.N)*perBody)*1e6, "cpu-s/Mrec")
			if items := bytes.Count(w.Body.Bytes(), []byte(`"status":201`)); bb.name != "ndjson" && items != perBody {
				b.Errorf("%d items: %.200s", items, w.Body)
			}
		})
	}
}
