package sourcetest

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
)

// Discard is a log without any cost.
type Discard struct{}

// Accept implements the Accepter of sources.
func (Discard) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// PerBody is the number of records of a benchmark's body.
const PerBody = 1000

// A Record is one of a service, of about 320 bytes as JSON.
type Record struct {
	Time                            time.Time
	Level, Service, Host, Msg, User string
	Trace                           [16]byte
	Span                            [8]byte
	Status, Bytes                   int
	Took                            float64 // milliseconds
}

// Records makes the records of a body, the same ones each time.
func Records() []Record {
	r := rand.New(rand.NewPCG(42, 1))
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	levels := []string{"debug", "info", "warn", "error"}
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	all := make([]Record, PerBody)
	for i := range all {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		all[i] = Record{
			Time: t, Level: levels[r.IntN(4)], Service: services[r.IntN(6)], Host: fmt.Sprintf("node-%02d", r.IntN(40)),
			Msg: fmt.Sprintf("outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms",
				r.IntN(40), r.IntN(1e6), r.IntN(5), r.IntN(5000)),
			User: fmt.Sprintf("user%d", r.IntN(1e4)), Status: 200 + r.IntN(300), Took: float64(r.IntN(1e6)) / 1000, Bytes: r.IntN(1e6),
		}
		for j := range all[i].Trace {
			all[i].Trace[j] = byte(1 + r.IntN(255))
		}
		copy(all[i].Span[:], all[i].Trace[3:])
	}
	return all
}

// AppendJSON appends the record as a line of NDJSON.
func (r *Record) AppendJSON(b []byte) []byte {
	return fmt.Appendf(b, `{"ts":"%s","level":"%s","service":"%s","host":"%s","msg":"%s","trace_id":"%x","span_id":"%x","user":"%s","status":%d,"duration_ms":%.3f,"bytes":%d}`+"\n",
		r.Time.Format("2006-01-02T15:04:05.000000000Z"), r.Level, r.Service, r.Host, r.Msg, r.Trace, r.Span, r.User, r.Status, r.Took, r.Bytes)
}

// NDJSON is the body of all records.
func NDJSON() (b []byte) {
	for _, r := range Records() {
		b = r.AppendJSON(b)
	}
	return b
}

// A Load is a body that is sent again and again.
type Load struct {
	Path, ContentType, Encoding string
	Body                        []byte
}

// Sender returns a function that sends the load once to a handler, and the recorder of the last
// answer.
func (l Load) Sender(s http.Handler) (once func(), w *httptest.ResponseRecorder) {
	r := httptest.NewRequest(http.MethodPost, l.Path, nil)
	r.Header.Set("Content-Type", l.ContentType)
	r.Header.Set("Content-Encoding", l.Encoding)
	r.ContentLength = int64(len(l.Body))
	w = httptest.NewRecorder()
	return func() {
		r.Body = io.NopCloser(bytes.NewReader(l.Body))
		w.Body.Reset()
		s.ServeHTTP(w, r)
	}, w
}

// Bench measures a handler without a connection, in CPU seconds for a million records.
func (l Load) Bench(b *testing.B, s http.Handler) *httptest.ResponseRecorder {
	once, w := l.Sender(s)
	b.SetBytes(int64(len(l.Body)))
	b.ReportAllocs()
	begun := CPU()
	for b.Loop() {
		once()
	}
	b.ReportMetric((CPU()-begun).Seconds()/(float64(b.N)*PerBody)*1e6, "cpu-s/Mrec")
	return w
}

// CPU is the time that the process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
