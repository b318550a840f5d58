package httpsource

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	// spare is room behind the last byte for Read to say that it was the last.
	spare = 512
	// maxKept is the largest buffer that is used again.
	maxKept = 16 << 20
)

// work is what one request needs of memory, used again by the next.
type work struct {
	wire    []byte // as it came
	decoded []byte // decompressed; unused when the body came plain
	builder builder
}

func (s *Source) getWork() *work {
	if k, ok := s.works.Get().(*work); ok {
		return k
	}
	k := &work{}
	k.builder.init()
	return k
}

func (s *Source) putWork(k *work) {
	if cap(k.wire) > maxKept {
		k.wire = nil
	}
	if cap(k.decoded) > maxKept {
		k.decoded = nil
	}
	k.builder.forget()
	s.works.Put(k)
}

// readWire reads the body as it comes.
func (k *work) readWire(r *http.Request, p *pace, enc encoding, h *hold) ([]byte, error) {
	limit := enc.wireLimit()
	buf := k.wire[:0]
	defer func() { k.wire = buf }()
	for {
		// What is not counted yet is not filled, even if the buffer has it.
		room := int(min(int64(cap(buf)), h.n))
		if len(buf) == room {
			want := nextSize(len(buf), int(h.n), r.ContentLength, limit)
			if err := h.atLeast(want); err != nil {
				return nil, err
			}
			buf = slices.Grow(buf, int(want)-len(buf))
			room = int(want)
		}
		p.extend(len(buf))
		n, err := r.Body.Read(buf[len(buf):room])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, tooLarge(enc, limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, readFailed(err, len(buf))
		}
	}
}

// nextSize says how long a buffer of n bytes that is full should become: what is
// reserved already, else double, but no more than the body can have.
func nextSize(n, reserved int, contentLength, limit int64) int64 {
	most := limit + spare
	if contentLength >= 0 {
		most = min(most, contentLength+spare)
	}
	want := int64(2 * n)
	if n < reserved {
		want = int64(reserved)
	}
	return max(min(want, most), int64(n)+spare)
}

func readFailed(err error, n int) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &refusal{status: http.StatusRequestTimeout, hangUp: true, cause: err,
			reason: "the body came too slowly: less than 1 KiB/s, or nothing for too long; nothing of it was taken"}
	}
	f := refuse(http.StatusBadRequest, "the body broke off after %d bytes (%v); nothing of it was taken", n, err)
	f.hangUp, f.cause = true, err
	return f
}

// A pace cuts off clients that send too slowly: whoever holds memory has to keep
// going. The deadline of the connection is the earlier of two: grace from now,
// and grace from the start plus a second for each KiB that came.
type pace struct {
	rc    *http.ResponseController // nil where there is no connection
	grace time.Duration
	begun time.Time
	last  time.Time
}

// newPace goes on from the deadline that ServeHTTP has set.
func newPace(w http.ResponseWriter, grace time.Duration) *pace {
	now := time.Now()
	return &pace{rc: http.NewResponseController(w), grace: grace, begun: now, last: now}
}

func (p *pace) set(t time.Time) {
	if p.rc != nil && p.rc.SetReadDeadline(t) != nil {
		p.rc = nil
	}
}

func (p *pace) extend(n int) {
	now := time.Now()
	if now.Sub(p.last) < p.grace/32 {
		return
	}
	p.last = now
	deadline := p.begun.Add(p.grace + time.Duration(n)*time.Second/minRate)
	if quiet := now.Add(p.grace); quiet.Before(deadline) {
		deadline = quiet
	}
	p.set(deadline)
}

// done lifts the deadline. net/http goes on reading behind the body to notice
// that the client goes away, and would take a deadline for that.
func (p *pace) done() { p.set(time.Time{}) }
