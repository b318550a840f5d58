package httpsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"blobtail/internal/door"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/source/body"
)

// statusGone is counted for a client that did not wait for its answer.
const statusGone = 499

// A Result counts the records of a request by their outcome. Its JSON is the answer of the
// native protocol.
type Result struct {
	Accepted  int         `json:"accepted"`
	Rejected  int         `json:"rejected"`
	Expired   int         `json:"expired,omitempty"` // neither: their day has been dropped
	Duplicate bool        `json:"duplicate,omitempty"`
	Errors    []LineError `json:"errors,omitempty"`
	Note      string      `json:"note,omitempty"`  // the sender may have meant something else
	Error     string      `json:"error,omitempty"` // nothing could be read

	forbidden error        // nothing may be sent by the sender
	asked     ack.Level    // the strictest level that anybody asks for
	reached   ack.Level    // the level of all records
	lines     int          // accepted and expired ones
	lacks     record.Lacks // of them
}

// A LineError is the reason for rejecting a record, with its number in the request.
type LineError struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// Failed returns the status of a request that is refused, or of which nothing could be read, and the
// reason with that of the first record, for protocols that have no place for the reasons of records.
// The status of any other is 0.
func (r *Result) Failed(refused *Refusal) (status int, reason string) {
	switch {
	case refused != nil:
		return refused.Status, refused.Reason
	case r.Error != "" && len(r.Errors) > 0:
		return http.StatusBadRequest, fmt.Sprintf("%s; record %d: %s", r.Error, r.Errors[0].Index, r.Errors[0].Reason)
	case r.Error != "":
		return http.StatusBadRequest, r.Error
	}
	return 0, ""
}

// ReplyPlain answers with a reason in text, or with a status and a text for success, "" for none.
func (r *Result) ReplyPlain(h http.Header, refused *Refusal, status int, text string) (int, []byte) {
	if failed, reason := r.Failed(refused); failed > 0 {
		return Plain(h, failed, reason)
	}
	if text == "" {
		return status, nil
	}
	return Plain(h, status, text)
}

// Plain makes an answer in text.
func Plain(h http.Header, status int, text string) (int, []byte) {
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	return status, []byte(text + "\n")
}

// A Refusal is the answer to a request that is rejected as a whole. Without a time to come
// again the source decides that, for 429 and 503.
type Refusal = door.Refusal

// Refuse makes a refusal.
func Refuse(status int, format string, args ...any) *Refusal {
	return door.Refuse(status, format, args...)
}

// RefuseMethod makes the refusal of a method, for a path that takes others, as "GET, HEAD".
func RefuseMethod(allow, format string, args ...any) *Refusal {
	return door.RefuseMethod(allow, format, args...)
}

// retry reports whether the answer has a Retry-After.
func retry(f *Refusal) bool {
	return f.Status == http.StatusTooManyRequests || f.Status == http.StatusServiceUnavailable
}

// refusalOf returns the refusal in err, or makes one for an unacceptable body;
// otherwise nil.
func refusalOf(err error) *Refusal {
	var f *Refusal
	var e *body.Error
	switch {
	case errors.As(err, &f):
		return f
	case !errors.As(err, &e):
		return nil
	case errors.Is(err, body.ErrTooLarge):
		return Refuse(http.StatusRequestEntityTooLarge, "%s", e.Reason)
	case errors.Is(err, body.ErrUnsupported):
		return Refuse(http.StatusUnsupportedMediaType, "%s", e.Reason)
	}
	return Refuse(http.StatusBadRequest, "%s", e.Reason)
}

// explain turns an error into a refusal, unless it is one; nil into nil.
func (s *Source) explain(r *http.Request, err error) *Refusal {
	f := refusalOf(err)
	switch {
	case err == nil:
		return nil
	case f != nil: // first: net/http reports a truncated body as a client that has gone
		return f
	case r.Context().Err() != nil:
		return &Refusal{Status: statusGone, HangUp: true,
			Reason: "the connection was closed before the answer; what became of the records is not known: send them again"}
	case errors.Is(err, record.ErrFull):
		return Refuse(http.StatusTooManyRequests, "%v: blobs are not stored as fast as records come; send it again later", err)
	case errors.Is(err, record.ErrUnheld):
		return Refuse(http.StatusServiceUnavailable, "%v; send it again later", err)
	case errors.Is(err, record.ErrKeyReused):
		return Refuse(http.StatusUnprocessableEntity,
			"%v; use a new Idempotency-Key for each new body, and for each path it is sent to", err)
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("it took too long")
	}
	s.failures.Error().Err(err).Str("path", body.Short(r.URL.Path)).Msg("request not taken")
	return Refuse(http.StatusServiceUnavailable, "the records are not safe yet (%v); send them again", err)
}

// retryAfter is longer the longer every request has been refused, and different for
// each client, so that they do not all come back at once.
func (s *Source) retryAfter() time.Duration {
	now := time.Now()
	since := &now
	if !s.refused.CompareAndSwap(nil, since) {
		since = cmp.Or(s.refused.Load(), since)
	}
	most := max(2, min(int(now.Sub(*since)/time.Second), 30))
	return time.Duration(1+rand.IntN(most)) * time.Second
}
