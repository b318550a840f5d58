package door

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// writeWait is how long a write may take. A reader that takes nothing for so long is gone.
	writeWait = 30 * time.Second
	// longerWait is how much longer than a query may take a write may take.
	longerWait = 20 * time.Second
	// lateWait is how long an answer that has begun may go on after the time of its query.
	lateWait = 2 * time.Second
	// piece is the most that is written under one deadline, so that a slow reader that goes
	// on reading is not cut off.
	piece = 64 << 10
	// small is the size of answers that are not worth compressing.
	small = 1 << 10
)

// answer is the response of one request. It holds back the first bytes until it is known
// whether the answer is worth compressing.
type answer struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	r     *http.Request
	v     *visit
	query *query // nil: it needs no place, and has no deadline

	status   int // 0: not known yet
	held     []byte
	begun    bool // the header is sent
	swallow  bool // the handler's body, because another answer was sent
	coder    coder
	bytes    int64 // of bodies, before compression
	moved    time.Time
	hijacked *connection
}

func newAnswer(w http.ResponseWriter, r *http.Request, v *visit) *answer {
	a := &answer{w: w, rc: http.NewResponseController(w), r: r, v: v}
	a.move()
	return a
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.w.Header() }

// Unwrap lets [http.ResponseController] set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.w }

// late reports whether the time of the query is over.
func (a *answer) late() bool {
	return a.query != nil && errors.Is(context.Cause(a.query.ctx), errDeadline)
}

// WriteHeader implements [http.ResponseWriter]. Once the time of a handler is over, its error is
// replaced: it tells of an interrupted read.
func (a *answer) WriteHeader(status int) {
	if status < 200 {
		a.w.WriteHeader(status)
		return
	}
	if a.status != 0 || a.swallow {
		return
	}
	if status >= 499 && a.late() {
		limit := tooLate(a.v.reads.o.Deadline)
		a.query = nil
		a.refuse(a.r, limit)
		a.swallow = true
		return
	}
	a.status = status
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.swallow {
		return len(p), nil
	}
	a.bytes += int64(len(p))
	if !a.begun && len(a.held)+len(p) < small {
		a.held = append(a.held, p...)
		return len(p), nil
	}
	if err := a.begin(); err != nil {
		return 0, err
	}
	if a.coder != nil {
		return a.coder.Write(p)
	}
	return rawWriter{a}.Write(p)
}

// begin sends the header and the bytes that were held back.
func (a *answer) begin() error {
	if a.begun {
		return nil
	}
	a.begun = true
	if name := a.encoding(); name != "" {
		h := a.Header()
		h.Del("Content-Length")
		h.Set("Content-Encoding", name)
		a.coder = a.v.reads.coders.get(name, a.events(), rawWriter{a})
	}
	if a.compressible() {
		a.Header().Add("Vary", "Accept-Encoding")
	}
	a.move()
	a.w.WriteHeader(a.status)
	held := a.held
	a.held = nil
	if len(held) == 0 {
		return nil
	}
	if a.coder != nil {
		_, err := a.coder.Write(held)
		return err
	}
	_, err := rawWriter{a}.Write(held)
	return err
}

// FlushError sends all that was written. [http.ResponseController] calls it.
func (a *answer) FlushError() error {
	if a.hijacked != nil || a.swallow {
		return nil
	}
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if err := a.begin(); err != nil {
		return err
	}
	if a.coder != nil {
		if err := a.coder.Flush(); err != nil {
			return err
		}
	}
	a.move()
	return a.query.take(a.rc.Flush)
}

// Flush implements [http.Flusher].
func (a *answer) Flush() { _ = a.FlushError() }

// Hijack implements [http.Hijacker], for WebSockets. The guard keeps the connection, to drop
// it when the server ends.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if a.begun {
		return nil, nil, errors.New("the answer has begun")
	}
	conn, rw, err := a.rc.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.status, a.begun = http.StatusSwitchingProtocols, true
	a.hijacked = a.v.reads.open.add(conn)
	return conn, rw, nil
}

// move gives the next write its time.
func (a *answer) move() {
	if now := time.Now(); now.Sub(a.moved) > time.Second {
		a.moved = now
		end := now.Add(min(writeWait, a.v.reads.o.Deadline+longerWait))
		if a.late() {
			if a.query.late.IsZero() {
				a.query.late = now
			}
			end = a.query.late.Add(lateWait)
		}
		_ = a.rc.SetWriteDeadline(end) // a test's recorder has none
	}
}

// rawWriter writes the bytes of an answer as they go out.
type rawWriter struct{ a *answer }

// Write implements [io.Writer].
func (w rawWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		w.a.move()
		err = w.a.query.take(func() error {
			m, err := w.a.w.Write(p[:min(piece, len(p))])
			n, p = n+m, p[m:]
			return err
		})
	}
	return n, err
}

// close ends the answer. After a panic it ends nothing: a compressed answer that was cut off
// must not look whole.
func (a *answer) close() {
	if a.hijacked != nil {
		a.v.reads.open.remove(a.hijacked)
		return
	}
	defer a.v.reads.coders.put(a.coder)
	if a.v.panicked {
		return
	}
	if !a.begun && a.status != 0 {
		a.begun = true
		a.move()
		if a.compressible() {
			a.Header().Add("Vary", "Accept-Encoding")
		}
		a.w.WriteHeader(a.status)
		if len(a.held) > 0 {
			_, _ = a.w.Write(a.held)
		}
	}
	if a.coder != nil {
		_ = a.coder.Close() // the client is gone then
	}
	a.moved = time.Time{}
	a.move()
}
