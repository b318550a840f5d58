package loki_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"blobtail/source/httpsource"
	"blobtail/source/loki"
)

const perBody = 1000

// corpus makes records of about 320 bytes with eleven fields, as NDJSON, and as a push request
// in both forms. The level and the service are labels, as agents send them; all else is
// structured metadata.
func corpus() (lines, proto, push2 []byte) {
	r := rand.New(rand.NewPCG(42, 1))
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	levels := []string{"debug", "info", "warn", "error"}
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	entries := map[[2]string][][]byte{}
	streams := map[[2]string]*stream{}
	for range perBody {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		key := [2]string{services[r.IntN(6)], levels[r.IntN(4)]}
		msg := fmt.Sprintf("outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms", r.IntN(40), r.IntN(1e6), r.IntN(5), r.IntN(5000))
		meta := []string{
			"host", fmt.Sprintf("node-%02d", r.IntN(40)), "trace_id", fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()), "span_id", fmt.Sprintf("%016x", r.Uint64()),
			"user", fmt.Sprintf("user%d", r.IntN(1e4)), "status", fmt.Sprint(200 + r.IntN(300)), "duration_ms", fmt.Sprintf("%.3f", r.Float64()*1000), "bytes", fmt.Sprint(r.IntN(1e6)),
		}
		object := map[string]string{"ts": t.Format("2006-01-02T15:04:05.000000000Z"), "level": key[1], "service": key[0], "msg": msg}
		m := map[string]string{}
		for i := 0; i < len(meta); i += 2 {
			object[meta[i]], m[meta[i]] = meta[i+1], meta[i+1]
		}
		text, _ := json.Marshal(object)
		lines = append(append(lines, text...), '\n')
		entries[key] = append(entries[key], line(t.UnixNano(), msg, meta...))
		if streams[key] == nil {
			streams[key] = &stream{Stream: map[string]string{"service_name": key[0], "level": key[1]}}
		}
		streams[key].Values = append(streams[key].Values, []any{fmt.Sprint(t.UnixNano()), msg, m})
	}
	var all []*stream
	for key, e := range entries {
		proto = push(proto, fmt.Sprintf(`{level="%s", service_name="%s"}`, key[1], key[0]), e...)
		all = append(all, streams[key])
	}
	push2, _ = json.Marshal(map[string]any{"streams": all})
	return lines, s2.EncodeSnappy(nil, proto), push2
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPush compares the push requests with the same records as NDJSON.
func BenchmarkPush(b *testing.B) {
	lines, proto, push := corpus()
	for _, bb := range []struct {
		name, path, contentType string
		body                    []byte
	}{
		{"ndjson", "/ingest", "application/x-ndjson", lines},
		{"protobuf", "/loki/api/v1/push", "application/x-protobuf", proto},
		{"json", "/loki/api/v1/push", "application/json", push},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := httpsource.New(httpsource.Options{Accept: discard{}, Protocols: []httpsource.Protocol{loki.New()}})
			r := httptest.NewRequest(http.MethodPost, bb.path, nil)
			r.Header.Set("Content-Type", bb.contentType)
			r.ContentLength = int64(len(bb.body))
			w := httptest.NewRecorder()
			b.ReportAllocs()
			begun := cpu()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(bb.body))
				w.Body.Reset()
				s.ServeHTTP(w, r)
			}
			b.ReportMetric((cpu()-begun).Seconds()/(float64(b.N)*perBody)*1e6, "cpu-s/Mrec")
			if w.Code >= 300 {
				b.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
