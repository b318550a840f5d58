package otlp_test

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

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/otlp"
)

// discard is a log without any cost.
type discard struct{}

func (discard) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

const perBody = 1000

// corpus makes 1000 records of about 320 bytes, like those of services, as NDJSON and as
// logs of OTLP.
func corpus() (lines []byte, logs plog.Logs) {
	r := rand.New(rand.NewPCG(42, 1))
	var b bytes.Buffer
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	levels := []string{"debug", "info", "warn", "error"}
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	logs = plog.NewLogs()
	var records []plog.LogRecordSlice
	for _, name := range services {
		rl := logs.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", name)
		records = append(records, rl.ScopeLogs().AppendEmpty().LogRecords())
	}
	for range perBody {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		level, service, host := levels[r.IntN(4)], r.IntN(6), fmt.Sprintf("node-%02d", r.IntN(40))
		msg := fmt.Sprintf("outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms",
			r.IntN(40), r.IntN(1e6), r.IntN(5), r.IntN(5000))
		var trace [16]byte
		for i := range trace {
			trace[i] = byte(1 + r.IntN(255))
		}
		span := [8]byte(trace[3:])
		user, status, took, size := fmt.Sprintf("user%d", r.IntN(1e4)), 200+r.IntN(300), float64(r.IntN(1e6))/1000, r.IntN(1e6)
		fmt.Fprintf(&b, `{"ts":"%s","level":"%s","service":"%s","host":"%s","msg":"%s","trace_id":"%x","span_id":"%x","user":"%s","status":%d,"duration_ms":%.3f,"bytes":%d}`+"\n",
			t.Format("2006-01-02T15:04:05.000000000Z"), level, services[service], host, msg, trace, span, user, status, took, size)
		l := records[service].AppendEmpty()
		l.SetTimestamp(pcommon.NewTimestampFromTime(t))
		l.SetSeverityText(level)
		l.Body().SetStr(msg)
		l.SetTraceID(trace)
		l.SetSpanID(span)
		l.Attributes().PutStr("host", host)
		l.Attributes().PutStr("user", user)
		l.Attributes().PutInt("status", int64(status))
		l.Attributes().PutDouble("duration_ms", took)
		l.Attributes().PutInt("bytes", int64(size))
	}
	return b.Bytes(), logs
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A load is a body that is sent again and again.
type load struct {
	name, path, contentType string
	body                    []byte
}

func loads(tb testing.TB) []load {
	tb.Helper()
	lines, logs := corpus()
	return []load{
		{"ndjson", "/ingest", "application/x-ndjson", lines},
		{"protobuf", "/v1/logs", protobuf, inProtobuf(tb, logs)},
		{"json", "/v1/logs", jsonType, inJSON(tb, logs)},
	}
}

// sender returns a function that sends the body once, and the recorder of its answer.
func (l load) sender() (once func(), w *httptest.ResponseRecorder) {
	s := httpsource.New(httpsource.Options{Accept: discard{}, Protocols: []httpsource.Protocol{otlp.New()}})
	r := httptest.NewRequest(http.MethodPost, l.path, nil)
	r.Header.Set("Content-Type", l.contentType)
	r.ContentLength = int64(len(l.body))
	w = httptest.NewRecorder()
	return func() {
		r.Body = io.NopCloser(bytes.NewReader(l.body))
		w.Body.Reset()
		s.ServeHTTP(w, r)
	}, w
}

// BenchmarkHandler measures the handler alone, with the same records in each form.
func BenchmarkHandler(b *testing.B) {
	for _, l := range loads(b) {
		b.Run(l.name, func(b *testing.B) {
			once, w := l.sender()
			b.SetBytes(int64(len(l.body)))
			b.ReportAllocs()
			begun := cpu()
			for b.Loop() {
				once()
			}
			b.ReportMetric((cpu()-begun).Seconds()/(float64(b.N)*perBody)*1e6, "cpu-s/Mrec")
			if w.Code != http.StatusOK {
				b.Errorf("answer %s", w.Body)
			}
		})
	}
}

// BenchmarkRatio sends the same records in turn as NDJSON and as OTLP, and reports how many
// times the cost of NDJSON the others are.
func BenchmarkRatio(b *testing.B) {
	all := loads(b)
	var sends []func()
	for _, l := range all {
		once, _ := l.sender()
		sends = append(sends, once)
	}
	spent := make([]time.Duration, len(all))
	for b.Loop() {
		for i, once := range sends {
			begun := cpu()
			for range 20 {
				once()
			}
			spent[i] += cpu() - begun
		}
	}
	for i, l := range all[1:] {
		b.ReportMetric(float64(spent[i+1])/float64(spent[0]), l.name+"/ndjson")
	}
}

// BenchmarkLibrary is for comparison: the library alone, before anything is stored.
func BenchmarkLibrary(b *testing.B) {
	for _, l := range loads(b)[1:] {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := unmarshal(l.contentType, l.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
