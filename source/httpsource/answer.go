package httpsource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"blobtail/record"
	"blobtail/source/body"
)

// statusGone is counted for a client that did not wait for its answer.
const statusGone = 499

// An answer counts the records of a request by their outcome.
type answer struct {
	Accepted  int         `json:"accepted"`
	Rejected  int         `json:"rejected"`
	Expired   int         `json:"expired,omitempty"` // neither: their day has been dropped
	Duplicate bool        `json:"duplicate,omitempty"`
	Errors    []lineError `json:"errors,omitempty"`
	Error     string      `json:"error,omitempty"` // nothing could be read
}

// A lineError is the reason for rejecting a record, with its number in the request.
type lineError struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// A refusal is the answer to a request that is rejected as a whole.
type refusal struct {
	status int
	reason string // the fault, its place, and a remedy
	retry  bool   // with Retry-After
	hangUp bool   // the connection is of no more use
	cause  error
}

func (f *refusal) Error() string { return f.reason }
func (f *refusal) Unwrap() error { return f.cause }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, reason: fmt.Sprintf(format, args...)}
}

// refusalOf returns the refusal in err, or makes one for an unacceptable body;
// otherwise nil.
func refusalOf(err error) *refusal {
	var f *refusal
	var e *body.Error
	switch {
	case errors.As(err, &f):
		return f
	case !errors.As(err, &e):
		return nil
	case errors.Is(err, body.ErrTooLarge):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: e.Reason}
	case errors.Is(err, body.ErrUnsupported):
		return &refusal{status: http.StatusUnsupportedMediaType, reason: e.Reason}
	}
	return &refusal{status: http.StatusBadRequest, reason: e.Reason}
}

// explain turns an error on the way to the log into a refusal, unless it is one.
func (s *Source) explain(r *http.Request, err error) error {
	f := refusalOf(err)
	switch {
	case f != nil: // first: net/http reports a truncated body as a client that has gone
		return f
	case r.Context().Err() != nil:
		return &refusal{status: statusGone, cause: err, hangUp: true,
			reason: "the connection was closed before the answer; what became of the records is not known: send them again"}
	case errors.Is(err, record.ErrFull):
		return &refusal{status: http.StatusTooManyRequests, retry: true, cause: err,
			reason: err.Error() + ": blobs are not stored as fast as records come; send it again later"}
	case errors.Is(err, record.ErrUnheld):
		return &refusal{status: http.StatusServiceUnavailable, retry: true, cause: err, reason: err.Error() + "; send it again later"}
	case errors.Is(err, record.ErrKeyReused):
		return &refusal{status: http.StatusUnprocessableEntity, cause: err,
			reason: err.Error() + "; use a new Idempotency-Key for each new body, and for each path it is sent to"}
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("it took too long")
	}
	s.failures.Error().Err(err).Str("path", body.Short(r.URL.Path)).Msg("request not taken")
	return &refusal{status: http.StatusServiceUnavailable, retry: true, cause: err,
		reason: fmt.Sprintf("the records are not safe yet (%v); send them again", err)}
}

// pressure makes Retry-After longer the longer every request has been refused, and
// different for each client, so that they do not all come back at once.
type pressure struct {
	mu    sync.Mutex
	since time.Time // of the first refusal in a row
}

func (p *pressure) refused(now time.Time) (seconds int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	most := max(2, min(int(now.Sub(p.since)/time.Second), 30))
	return 1 + rand.IntN(most)
}

func (p *pressure) relieved() {
	p.mu.Lock()
	p.since = time.Time{}
	p.mu.Unlock()
}
