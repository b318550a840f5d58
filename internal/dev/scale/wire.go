package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// request is a request that was read whole.
type request struct {
	method string
	path   string // without the first slash
	query  url.Values
	header http.Header
	body   []byte
}

// read reads a request. The SDK writes some names of headers in lower case, which a connection
// would mend.
func read(r *http.Request) (*request, error) {
	q := &request{method: r.Method, path: strings.TrimPrefix(r.URL.Path, "/"), query: r.URL.Query(), header: make(http.Header, len(r.Header))}
	for name, values := range r.Header {
		q.header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Body == nil || r.Body == http.NoBody {
		return q, nil
	}
	defer r.Body.Close()
	var b bytes.Buffer
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := b.ReadFrom(r.Body)
	q.body = b.Bytes()
	return q, err
}

// answer is an answer in the making.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// refuse makes it an error, in the form of the service.
func (w *answer) refuse(tables bool, status int, code string) {
	w.status = status
	w.header.Set("x-ms-error-code", code)
	if tables {
		w.header.Set("Content-Type", "application/json")
		w.body = fmt.Appendf(nil, `{"odata.error":{"code":%q,"message":{"lang":"en-US","value":"refused"}}}`, code)
		return
	}
	w.header.Set("Content-Type", "application/xml")
	w.body = fmt.Appendf(nil, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>refused</Message></Error>`, code)
}

// busy refuses what is beyond a limit, with the time to wait.
func (w *answer) busy(tables bool) {
	w.refuse(tables, http.StatusServiceUnavailable, "ServerBusy")
	w.header.Set("Retry-After", "1")
}

func (w *answer) json(status int, v any) {
	w.status = status
	w.header.Set("Content-Type", "application/json;odata=minimalmetadata;charset=utf-8")
	w.body, _ = json.Marshal(v) // of maps of texts: it cannot fail
}

func (w *answer) send(to http.ResponseWriter, method string) {
	h := to.Header()
	for name, values := range w.header {
		h[name] = values
	}
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("x-ms-request-id", "00000000-0000-0000-0000-000000000000")
	h.Set("x-ms-version", "2025-01-05")
	if h.Get("Content-Length") == "" {
		h.Set("Content-Length", strconv.Itoa(len(w.body)))
	}
	to.WriteHeader(w.status)
	if method != http.MethodHead && w.status != http.StatusNoContent {
		_, _ = to.Write(w.body)
	}
}

// recorder is an answer without a connection.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (w *recorder) Header() http.Header    { return w.header }
func (w *recorder) WriteHeader(status int) { w.status = status }

func (w *recorder) Write(b []byte) (int, error) {
	if w.body == nil {
		w.body = b // the handler writes once and does not change it
	} else {
		w.body = append(w.body, b...)
	}
	return len(b), nil
}

func (w *recorder) response(r *http.Request) *http.Response {
	length, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = int64(len(w.body))
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(bytes.NewReader(w.body)), ContentLength: length, Request: r,
	}
}

// sleep waits, and reports whether ctx lets it.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
