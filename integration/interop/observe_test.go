package interop_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A spool is a pipe. Its writer never waits, because a reader beside a connection must not
// hold up the client.
type spool struct {
	mu   sync.Mutex
	more *sync.Cond
	buf  bytes.Buffer
	done bool
}

func newSpool() *spool {
	s := &spool{}
	s.more = sync.NewCond(&s.mu)
	return s
}

// Write takes all of b.
func (s *spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.more.Broadcast()
	return s.buf.Write(b)
}

// Close ends the bytes for the reader.
func (s *spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.more.Broadcast()
	return nil
}

// Read waits for at least one byte, or the end.
func (s *spool) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.buf.Len() == 0 {
		if s.done {
			return 0, io.EOF
		}
		s.more.Wait()
	}
	return s.buf.Read(b)
}

// read follows the requests and answers of a connection.
func (p *proxy) read(asked, told io.Reader) {
	defer io.Copy(io.Discard, told)
	defer io.Copy(io.Discard, asked)
	requests, answers := bufio.NewReader(asked), bufio.NewReader(told)
	if !p.http {
		_, _ = p.scan(requests)
		return
	}
	for {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		body, err := p.scan(r.Body)
		if err != nil {
			return
		}
		marks := marksIn(unpacked(r.Header, body))
		p.note(p.seen, marks)
		begun := time.Now()
		a, err := http.ReadResponse(answers, r)
		for err == nil && a.StatusCode < 200 {
			a, err = http.ReadResponse(answers, r)
		}
		if err != nil {
			return
		}
		text, err := io.ReadAll(a.Body)
		if err != nil {
			return
		}
		p.answered(r, marks, a.StatusCode, text, time.Since(begun))
	}
}

// answered notes an answer that the client got.
func (p *proxy) answered(r *http.Request, marks map[string]bool, code int, text []byte, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code]++
	p.slowest = max(p.slowest, took.Seconds())
	if code < 300 {
		maps.Copy(p.delivered, marks)
		return
	}
	key := fmt.Sprint(r.Method, " ", r.URL.Path, " ", code)
	if _, known := p.samples[key]; !known {
		p.samples[key] = fmt.Sprintf("%s (%s, %s, %d records): %d %.300s", r.URL.RequestURI(),
			r.Header.Get("Content-Type"), r.Header.Get("User-Agent"), len(marks), code, text)
	}
}

// scan reads all, and notes marks as they come.
func (p *proxy) scan(r io.Reader) ([]byte, error) {
	var all []byte
	part := make([]byte, 32<<10)
	for {
		n, err := r.Read(part)
		all = append(all, part[:n]...)
		p.note(p.seen, marksIn(all[max(0, len(all)-n-len("mark-000000")):]))
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

func (p *proxy) note(in, marks map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(in, marks)
}

// sawAtLeast reports whether so many records were sent at least once.
func (p *proxy) sawAtLeast(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen) >= n
}

// unpacked decompresses a body. If it cannot, it returns the body.
func unpacked(h http.Header, body []byte) []byte {
	var r io.Reader
	var err error
	switch h.Get("Content-Encoding") {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "zstd":
		r, err = zstd.NewReader(bytes.NewReader(body))
	case "deflate":
		if r, err = zlib.NewReader(bytes.NewReader(body)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	default:
		if h.Get("Content-Type") != "application/x-protobuf" {
			return body
		}
		if plain, err := s2.Decode(nil, body); err == nil { // Loki's block of snappy
			return plain
		}
		return body
	}
	if err != nil {
		return body
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return body
	}
	return plain
}
