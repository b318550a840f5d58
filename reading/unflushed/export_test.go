package unflushed

import (
	"context"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
)

// Blobs is the reader of blobs from the options.
func (r *Reader) Blobs() *blobs.Reader { return r.o.Blobs }

// Seen remembers emitted records, at most two halves of most records.
type Seen struct{ s *seen }

// NewSeen makes one.
func NewSeen(most int) Seen { return Seen{newSeen(most)} }

// Add notes a record at a time, and reports whether it is new.
func (s Seen) Add(e *record.Entry, at time.Time) bool { return s.s.add(e, at) }

// Forgotten is the greatest time of records that may have been forgotten.
func (s Seen) Forgotten() int64 { return s.s.forgotten }

// Len is the number of records it remembers.
func (s Seen) Len() int { return len(s.s.now) + len(s.s.old) + len(s.s.ahead) }

// Order holds records back.
type Order struct{ o order }

// NewOrder makes one that holds records back for a time.
func NewOrder(wait time.Duration) *Order { return &Order{order{wait: wait}} }

// Add accepts a record.
func (o *Order) Add(e record.Entry, now time.Time) { o.o.add(e, now) }

// Take returns the records that have waited long enough.
func (o *Order) Take(now time.Time, store int64, all bool) (out []record.Entry) {
	for _, e := range o.o.take(now, store, all) {
		out = append(out, e.Entry)
	}
	return out
}

// CatchUp makes a follower pay a debt from a time on. The follower has forgotten the
// records it emitted up to another time.
func (r *Reader) CatchUp(ctx context.Context, q blobs.Query, from time.Time, forgotten int64, emit func([]byte) error, note func(string)) error {
	f := newFollower(r, FollowOptions{Query: q, Emit: emit, Report: func(r *Report) {
		for _, text := range r.Notes {
			note(text)
		}
	}})
	f.seen.forgotten, f.company = forgotten, r.survey(ctx, nil)
	f.owe(from, "")
	return f.pay(ctx)
}

// Askable lists names and globs as they are in a question to ingesters.
func Askable(services []string) (list string, wide bool) { return askable(services) }

// Sift returns a function that reports whether a line is of a service that a query asked for.
func Sift(services []string) (has func(line []byte) bool) { return newSift(services).has }
