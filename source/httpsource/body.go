package httpsource

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"blobtail/source/body"
)

// readWire reads the body, still compressed. The buffer is the caller's, even if the
// body was not read to its end.
func (s *Source) readWire(r *http.Request, p *pace, enc body.Encoding, h *hold) ([]byte, error) {
	limit := enc.WireLimit()
	buf := s.buffers.get(least)
	for {
		if len(buf) == cap(buf) || len(buf) >= least/2 && cap(buf) == least && r.ContentLength > least {
			want := nextSize(len(buf), r.ContentLength, limit)
			if want > smallBody+body.Spare {
				if err := h.leave(r.Context(), s.o.Patience); err != nil {
					return buf, err
				}
			}
			if err := h.atLeast(int64(sizeFor(want))); err != nil {
				return buf, err
			}
			buf = s.buffers.grow(buf, want)
		}
		p.extend(len(buf))
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf, enc.TooLarge()
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, readFailed(err, len(buf))
		}
	}
}

// nextSize is the new size of a full buffer of n bytes, but no more than the body can
// have. An announced length is not trusted until much of the body has come; then
// large steps avoid copying.
func nextSize(n int, contentLength, limit int64) int {
	most := limit + body.Spare
	if contentLength >= 0 {
		most = min(most, contentLength+body.Spare)
	}
	want := 2 * n
	switch {
	case n <= least:
		want = 16 * n
	case n < 64<<10:
		want = 4 * n
	case n < 512<<10:
		want = 8 * n
	}
	return max(min(want, int(most)), n+body.Spare)
}

func readFailed(err error, n int) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Refusal{Status: http.StatusRequestTimeout, HangUp: true,
			Reason: "the body came too slowly: less than 1 KiB/s, or nothing for too long (at the beginning 5 s); nothing of it was taken"}
	}
	f := Refuse(http.StatusBadRequest, "the body broke off after %d bytes (%v); nothing of it was taken", n, err)
	f.HangUp = true
	return f
}

// A pace cuts off clients that send too slowly, since a client that holds memory has
// to keep sending. The deadline of the connection is the earlier of two: grace from
// now, and grace from the start plus a second for each KiB that came. A client that
// has sent next to nothing gets less than grace from now.
type pace struct {
	rc    *http.ResponseController // nil without a connection
	grace time.Duration
	quiet time.Duration // the longest silence now
	begun time.Time
	last  time.Time
}

func newPace(w http.ResponseWriter, grace time.Duration) *pace {
	now := time.Now()
	p := &pace{rc: http.NewResponseController(w), grace: grace, quiet: min(grace, firstGrace), begun: now, last: now}
	p.set(now.Add(p.quiet))
	return p
}

func (p *pace) set(t time.Time) {
	if p.rc != nil && p.rc.SetReadDeadline(t) != nil {
		p.rc = nil
	}
}

// extend moves the deadline on when n bytes have come.
func (p *pace) extend(n int) {
	now := time.Now()
	if n >= least && p.quiet < p.grace {
		p.quiet = p.grace
	} else if now.Sub(p.last) < p.quiet/32 {
		return
	}
	p.last = now
	deadline := p.begun.Add(p.grace + time.Duration(n)*time.Second/minRate)
	if quiet := now.Add(p.quiet); quiet.Before(deadline) {
		deadline = quiet
	}
	p.set(deadline)
}

// done lifts the deadline. net/http goes on reading behind the body to notice that
// the client closes, and would mistake a deadline for that.
func (p *pace) done() { p.set(time.Time{}) }
