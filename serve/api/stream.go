package api

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobtail/reading/form"
)

const (
	streamBuffer = 64 << 10
	// flushEvery is how long a written byte waits in the buffer at most.
	flushEvery = 100 * time.Millisecond
	// patience is how long a stream waits for its first record before it sends its header.
	// Until then an error can have a status of its own.
	patience = time.Second
)

// stream writes an answer of a length that nobody knows yet. Its buffer is all that it keeps: a
// client that reads slowly holds the read back.
type stream struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	header  func(http.Header) // sets the header of the answer
	// idle is called now and then, with the lock, to say that the stream lives; nil: it is not.
	idle func() error

	mu       sync.Mutex
	buf      *bufio.Writer
	begun    bool // the header is written
	err      error
	stop     chan struct{}
	stopping sync.WaitGroup
}

// newStream returns a stream that flushes nothing by itself until start is called.
func newStream(w http.ResponseWriter, header func(http.Header), idle func() error) *stream {
	return &stream{w: w, flusher: http.NewResponseController(w), header: header, idle: idle, buf: bufio.NewWriterSize(w, streamBuffer), stop: make(chan struct{})}
}

// start begins the flushes, until halt is called. The caller has set all that header and idle read:
// from now on another goroutine may call them.
func (s *stream) start() { s.stopping.Go(s.tick) }

// tick flushes the buffer, until stop is closed.
func (s *stream) tick() {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		if !s.begun && time.Duration(n)*flushEvery >= patience {
			s.begin()
		}
		if s.begun {
			if s.idle != nil && s.err == nil {
				s.err = s.idle()
			}
			s.flush()
		}
		s.mu.Unlock()
	}
}

// begin writes the header.
func (s *stream) begin() {
	s.begun = true
	s.header(s.w.Header())
	s.w.WriteHeader(http.StatusOK)
}

// flush sends the bytes in the buffer, and the header.
func (s *stream) flush() {
	if s.err == nil {
		s.err = s.buf.Flush()
	}
	if err := s.flusher.Flush(); err != nil && s.err == nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
	}
}

// write has part write to the buffer. The first bytes are sent at once.
func (s *stream) write(part func(to *bufio.Writer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.begun
	if first {
		s.begin()
	}
	if s.err == nil {
		s.err = part(s.buf)
	}
	if first {
		s.flush()
	}
	return s.err
}

// halt ends the flushes. It reports whether the header has been written.
func (s *stream) halt() bool {
	close(s.stop)
	s.stopping.Wait()
	return s.begun
}

// cut sends the rest of the buffer and breaks the connection off, so that the answer has no
// end: in HTTP/1.1 the last chunk is missing, in HTTP/2 the stream is reset. It does not
// return.
func (s *stream) cut() {
	if !s.begun {
		s.begin()
	}
	s.flush()
	panic(http.ErrAbortHandler)
}

// end sends the rest of the buffer and the trailers, and breaks off if it cannot.
func (s *stream) end(end *form.End) {
	if !s.begun {
		s.begin()
	}
	if s.flush(); s.err != nil {
		s.cut()
	}
	s.w.Header().Set(form.TrailerComplete, bit(end.Complete))
	s.w.Header().Set(form.TrailerMore, bit(end.More))
	for _, trailer := range []struct {
		name, between string
		texts         []string
	}{{form.TrailerProblems, "; ", end.Problems}, {form.TrailerWarnings, "; ", end.Warnings}, {form.TrailerAbsent, ", ", end.Absent}} {
		if len(trailer.texts) > 0 {
			s.w.Header().Set(trailer.name, headerText(strings.Join(trailer.texts, trailer.between)))
		}
	}
}

// declare names the trailers in a header.
func declare(h http.Header) {
	h.Set("Trailer", strings.Join([]string{form.TrailerComplete, form.TrailerMore, form.TrailerProblems, form.TrailerWarnings, form.TrailerAbsent}, ", "))
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// headerText makes a text fit a header: ASCII in one line, and not too long.
func headerText(text string) string {
	const most = 2000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	quoted := strconv.QuoteToASCII(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
