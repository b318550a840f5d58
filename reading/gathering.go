package reading

import (
	"context"
	"fmt"
	"sync"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/storage/fanout"
)

// A gathering is the unflushed records that some queries share: one question to ingesters, one
// look at the horizons and at the rows of the ingesters. It begins after all of them came. It
// has no records of services that one of them does not ask for.
type gathering struct {
	members []*member

	begin sync.Once
	done  chan struct{}
	got   *unflushed.Gathered
	err   error
	fault *fanout.Panic // each member has it
	end   context.CancelFunc

	mu   sync.Mutex
	left int
}

func newGathering() *gathering { return &gathering{done: make(chan struct{})} }

// key is equal for queries that may share a gathering; "" for one that shares none. A query for
// the newest records shares none: it asks ingesters for those alone, and the newest of two
// ranges are not the newest of each.
func (m *member) key() string {
	q := &m.query
	if q.Limit > 0 {
		return ""
	}
	return fmt.Sprintf("%d %d %d %q", m.mode, hours(q.Range.From), end(q.Range.To), q.Services)
}

// lately is how long ago the end of a range may be that reaches the floor of no ingester.
const lately = 10 * time.Minute

// end is equal for ends of ranges that the same ingesters matter to. A range that ended
// earlier may need none, while one with a later end does.
func end(to int64) int64 {
	if to < time.Now().Add(-lately).UnixNano() {
		return to
	}
	return hours(to)
}

// hours is the number of whole hours to a time. Ranges with their ends in the same hours are near
// enough to be gathered for at once.
func hours(ns int64) int64 { return ns / int64(time.Hour) }

// question is one query for the unflushed records of all members, with any choice of services.
func (g *gathering) question() blobs.Query {
	q := g.members[0].query
	all := blobs.Query{Services: q.Services, Range: q.Range, Filter: blobs.Filter{Levels: q.Filter.Levels}}
	for _, m := range g.members[1:] {
		all.Range.From, all.Range.To = min(all.Range.From, m.query.Range.From), max(all.Range.To, m.query.Range.To)
		if levels := m.query.Filter.Levels; all.Filter.Levels != 0 && levels != 0 {
			all.Filter.Levels |= levels
		} else {
			all.Filter.Levels = 0 // all of them
		}
	}
	return all
}

// gather returns the query of a member, completed by the records that it shares. It must
// leave afterwards, with or without an error.
func (g *gathering) gather(ctx context.Context, logs *unflushed.Reader, m *member) (blobs.Query, unflushed.Report, error) {
	if len(g.members) == 1 {
		if g.got, g.err = logs.Gather(ctx, m.query, m.mode); g.err != nil {
			return blobs.Query{}, unflushed.Report{}, g.err
		}
		return g.got.Query, g.got.Report, nil
	}
	g.begin.Do(func() {
		var ours context.Context
		ours, g.end = context.WithCancel(budget.Without(context.WithoutCancel(ctx)))
		go func() {
			defer close(g.done)
			g.fault = fanout.Keep(func() { g.got, g.err = logs.Gather(ours, g.question(), m.mode) })
		}()
	})
	select {
	case <-g.done:
		g.fault.Again()
	case <-ctx.Done():
		return blobs.Query{}, unflushed.Report{}, ctx.Err()
	}
	if g.err != nil {
		return blobs.Query{}, unflushed.Report{}, g.err
	}
	q := m.query
	q.Unflushed, q.Stored, q.Expired = g.got.Query.Unflushed, g.got.Query.Stored, g.got.Query.Expired
	return q, g.got.Report, nil
}

// leave releases the records when the last member has left.
func (g *gathering) leave() {
	g.mu.Lock()
	g.left++
	last := g.left == len(g.members)
	g.mu.Unlock()
	if !last {
		return
	}
	g.begin.Do(func() { close(g.done) }) // nobody has begun it
	if g.end != nil {
		g.end()
	}
	<-g.done
	if g.got != nil {
		g.got.Close()
	}
}
