package newest

import (
	"context"
	"time"

	"blobtail/query"
	"blobtail/record"
)

// Blobs is the reader of blobs that the tests gave it.
func (r *Reader) Blobs() *query.Reader { return r.o.Blobs }

// Seen remembers what was given out, two times most records.
type Seen struct{ s *seen }

// NewSeen makes one.
func NewSeen(most int) Seen { return Seen{newSeen(most)} }

// Add notes a record at a time, and tells whether it is new.
func (s Seen) Add(e *record.Entry, at time.Time) bool { return s.s.add(e, at) }

// Forgotten is up to when records may have been forgotten.
func (s Seen) Forgotten() int64 { return s.s.forgotten }

// Len is how many it remembers.
func (s Seen) Len() int { return len(s.s.now) + len(s.s.old) + len(s.s.ahead) }

// Order holds records back.
type Order struct{ o order }

// NewOrder makes one that does so for a time.
func NewOrder(wait time.Duration) *Order { return &Order{order{wait: wait}} }

// Add takes a record.
func (o *Order) Add(e record.Entry, now time.Time) { o.o.add(e, now) }

// Take gives out what has waited.
func (o *Order) Take(now time.Time, store int64, all bool) (out []record.Entry) {
	for _, e := range o.o.take(now, store, all) {
		out = append(out, e.Entry)
	}
	return out
}

// CatchUp has a follower read what it owes from a time on when it has forgotten what
// it gave out up to another.
func (r *Reader) CatchUp(ctx context.Context, q query.Query, from time.Time, forgotten int64, emit func([]byte) error, note func(string)) error {
	f := &follower{r: r, o: FollowOptions{Query: q, Emit: emit, Note: note, Problem: func(error) {}}, seen: newSeen(seenMost), floor: query.Oldest}
	f.seen.forgotten = forgotten
	f.owe(from, "")
	return f.pay(ctx)
}
