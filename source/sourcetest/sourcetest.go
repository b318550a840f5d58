// Package sourcetest sends requests to a protocol in tests, and keeps the records that come of
// them.
package sourcetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/httpsource"
)

// Now is the clock of all sources.
func Now() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

// A Log is the place to which a source appends. It keeps the lines of the records.
type Log struct {
	Err error // the answer to each request, if it is not nil

	mu      sync.Mutex
	lines   []string
	origins []record.Origin
	ids     map[string]int
}

// Accept implements the Accepter of sources.
func (l *Log) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err != nil {
		return record.Receipt{}, l.Err
	}
	if l.ids == nil {
		l.ids = map[string]int{}
	}
	for i, line := range q.Lines {
		l.lines = append(l.lines, strings.TrimSuffix(string(q.Data[line.Off:line.Off+line.Len]), "\n"))
		l.ids[fmt.Sprintf("%s %d", q.Origin, q.Index(uint32(i)))]++
	}
	l.origins = append(l.origins, q.Origin)
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// Lines returns the canonical lines without their newlines.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

// Origins returns the origin of each request.
func (l *Log) Origins() []record.Origin {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.origins
}

// Identities returns the number of different records.
func (l *Log) Identities() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// Rejected counts the dead letters.
func (l *Log) Rejected() (n int) {
	for _, line := range l.Lines() {
		if strings.Contains(line, `"service":"_rejected"`) {
			n++
		}
	}
	return n
}

// Valid fails the test for each line that is no record.
func (l *Log) Valid(t *testing.T) {
	t.Helper()
	p := meaning.NewReader()
	for _, line := range l.Lines() {
		if n, err := p.Scan([]byte(line)); err != nil || n != len(line) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// Source returns a source of a protocol that appends to the log, and waits for nothing.
func (l *Log) Source(p httpsource.Protocol) *httpsource.Source {
	return httpsource.New(httpsource.Options{Accept: l, Patience: time.Millisecond, Protocols: []httpsource.Protocol{p}, Now: Now})
}

// Send sends a request. header are names and values.
func Send(s http.Handler, method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// Encode compresses a body: gzip, deflate, zstd, snappy, or "" for none.
func Encode(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	case "snappy":
		return s2.EncodeSnappy(nil, body)
	default:
		return body
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
