package newest

import (
	"context"
	"fmt"
	"time"

	"blobtail/query"
	"blobtail/record"
)

// aheadOfTime is how far ahead of the store's clock a record may be and still count as
// the last one emitted.
const aheadOfTime = time.Second

// pass emits a record that was read in order.
func (f *follower) pass(e *record.Entry) error {
	if f.o.After != nil && e.Compare(&f.o.After.Last) <= 0 || !f.seen.add(e, f.now()) {
		return nil
	}
	return f.put(e)
}

// put adds a record to the output. A record from a clock that is ahead does not move the
// cursor: another follower would skip all records before it.
func (f *follower) put(e *record.Entry) error {
	f.buf = append(f.buf, e.Line...)
	last := &f.cursor.Last
	if (last.Time == 0 || e.Compare(last) > 0) && e.Time <= f.now().Add(aheadOfTime).UnixNano() {
		*last = record.Entry{Time: e.Time, ID: e.ID}
	}
	if len(f.buf) > 1<<20 {
		return f.write()
	}
	return nil
}

func (f *follower) write() error {
	if len(f.buf) == 0 {
		return nil
	}
	err := f.o.Emit(f.buf)
	f.buf = f.buf[:0]
	return err
}

// release emits the records that have waited long enough.
func (f *follower) release(all bool) error {
	entries := f.order.take(time.Now(), f.now().UnixNano(), all)
	for i := range entries {
		if err := f.put(&entries[i].Entry); err != nil {
			return err
		}
	}
	if err := f.write(); err != nil {
		return err
	}
	for service, g := range f.gaps {
		if all || !g.due.After(time.Now()) {
			delete(f.gaps, service)
			f.o.Gap(g.Gap)
		}
	}
	return nil
}

// take accepts the records of an answer, which are in order. A large answer has waited
// long enough and is emitted at once.
func (f *follower) take(ctx context.Context, h *haul) error {
	if h.large == nil {
		now, store := time.Now(), f.now()
		for i := range h.entries {
			if f.seen.add(&h.entries[i], store) {
				f.order.add(h.entries[i], now)
			}
		}
		return nil
	}
	plan, err := query.Without(query.Options{}).Plan(ctx, query.Query{
		Services: h.large.Services(), Range: query.Always(), Unflushed: []*query.Unflushed{h.large},
	})
	if err != nil {
		return err
	}
	before := f.order.take(time.Now(), 0, true)
	between := func(e *record.Entry) error {
		for len(before) > 0 && (e == nil || before[0].Compare(e) < 0) {
			if err := f.put(&before[0].Entry); err != nil {
				return err
			}
			before = before[1:]
		}
		return nil
	}
	sum, err := plan.Entries(ctx, func(e *record.Entry) error {
		if !f.seen.add(e, f.now()) {
			return nil
		}
		if err := between(e); err != nil {
			return err
		}
		return f.put(e)
	})
	for _, p := range sum.Problems {
		f.problem(p)
	}
	if err := between(nil); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return f.write()
}

// haulMemory is how much of one answer is held in memory. The rest goes to a file, for
// example after a pause of the receiver.
const haulMemory = 32 << 20

// haul holds the records of one answer.
type haul struct {
	entries []record.Entry
	arena   []byte // lines of the last entries
	size    int
	large   *query.Unflushed // replaces entries if they are too many
}

func (h *haul) add(e *record.Entry) error {
	if h.large != nil {
		return h.large.Add(e)
	}
	if len(h.arena)+len(e.Line) > cap(h.arena) {
		h.arena = make([]byte, 0, max(16<<10, len(e.Line)))
	}
	at := len(h.arena)
	h.arena = append(h.arena, e.Line...)
	kept := *e
	kept.Line = h.arena[at:len(h.arena):len(h.arena)]
	h.entries = append(h.entries, kept)
	if h.size += len(e.Line) + 64; h.size <= haulMemory {
		return nil
	}
	h.large = query.NewUnflushed("live records")
	for i := range h.entries {
		if err := h.large.Add(&h.entries[i]); err != nil {
			return fmt.Errorf("keep what ingesters sent: %w", err)
		}
	}
	h.entries, h.arena = nil, nil
	return nil
}

func (h *haul) close() {
	if h.large != nil {
		h.large.Close()
	}
}
