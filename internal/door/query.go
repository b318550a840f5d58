package door

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// A query has a place, and a time for which the server works for it. The time does not pass while
// the client takes its answer, and a client that takes nothing keeps no place (see gate).
type query struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	place *stay

	left  time.Duration // of its time, from since on
	since time.Time
	over  *time.Timer
	late  time.Time // when an answer first wrote after its time; zero: not yet
}

// errDeadline is the cause of a context after its query has taken too long.
var errDeadline = errors.New("the query has taken too long")

// timed is a context that ends as one with a deadline does, though its time may pass later: Err is
// that of its cause, also for contexts that are made of it.
type timed struct {
	context.Context
	done chan struct{}
}

// Done implements [context.Context].
func (c *timed) Done() <-chan struct{} { return c.done }

// Err implements [context.Context].
func (c *timed) Err() error {
	if errors.Is(context.Cause(c.Context), errDeadline) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// AfterFunc is by which package context ends the contexts below.
func (c *timed) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }

func newQuery(ctx context.Context, place *stay, limit time.Duration, rc *http.ResponseController) *query {
	q := &query{place: place, left: limit, since: time.Now()}
	ctx, q.end = context.WithCancelCause(ctx)
	below := &timed{ctx, make(chan struct{})}
	below.AfterFunc(func() { close(below.done) })
	q.ctx = below
	q.over = time.AfterFunc(limit, func() { q.end(errDeadline) })
	place.end, place.cut = q.end, func() { _ = rc.SetWriteDeadline(time.Now()) }
	return q
}

// take has the client take bytes by a function. In this time the query is not worked for.
func (q *query) take(write func() error) error {
	if q == nil {
		return write()
	}
	q.over.Stop()
	q.left -= time.Since(q.since)
	q.place.wait()
	err := write()
	q.since = time.Now()
	q.over.Reset(max(0, q.left))
	return cmp.Or(err, q.place.goOn(q.ctx))
}

// finish ends the query, and returns the reason for which the server has ended it before; nil: it
// has not.
func (q *query) finish() error {
	q.over.Stop()
	why := context.Cause(q.ctx)
	q.end(nil)
	if errors.Is(why, errDeadline) || errors.Is(why, errStalled) {
		return why
	}
	return nil
}
