package unflushed

import (
	"bytes"
	"context"
	"time"

	"blobtail/reading/blobs"
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
	f.mark.moved = true
	if f.o.Visit != nil {
		if err := f.o.Visit(e); err != nil {
			return err
		}
	} else {
		f.buf = append(f.buf, e.Line...)
	}
	last := &f.cursor.Last
	if (last.Time == 0 || e.Compare(last) > 0) && e.Time <= f.now().Add(aheadOfTime+f.late).UnixNano() {
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
	for again := true; again; {
		entries := f.order.take(time.Now(), f.now().UnixNano(), all)
		for i := range entries {
			if err := f.put(&entries[i].Entry); err != nil {
				return err
			}
		}
		err := f.write()
		if err == nil {
			again, err = f.marked()
		}
		if err != nil {
			return err
		}
	}
	if all || !f.gapsDue.After(time.Now()) {
		for _, g := range f.gaps {
			f.o.Report(&Report{Gaps: []Gap{g}})
		}
		clear(f.gaps)
	}
	return nil
}

// take accepts the records of an answer. The lines of a large one, for example after a
// pause of the receiver, have waited long enough.
func (f *follower) take(ctx context.Context, h *haul) error {
	held, now, store := 0, time.Now(), f.now()
	each := func(e *record.Entry) error {
		if !f.seen.add(e, store) {
			return nil
		}
		f.pending().add(*e, now)
		if held += len(e.Line); held < haulMemory {
			return nil
		}
		held = 0
		return f.release(true)
	}
	for i := range h.entries {
		if err := each(&h.entries[i]); err != nil {
			return err
		}
	}
	services := h.rest.Services()
	if len(services) == 0 {
		return nil
	}
	plan, err := blobs.Without(blobs.Options{}).Plan(ctx, blobs.Query{
		Services: services, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{h.rest},
	})
	if err != nil {
		return err
	}
	sum, err := plan.Entries(ctx, func(e *record.Entry) error {
		kept := *e
		kept.Line = bytes.Clone(e.Line)
		return each(&kept)
	})
	for _, p := range sum.Problems {
		f.problem(p)
	}
	return err
}

// haulMemory is how many bytes of lines of the answers to one poll are held in memory.
const haulMemory = 24 << 20

// haul holds the records of one answer, which come in order.
type haul struct {
	entries []record.Entry
	size    int
	room    int              // for their lines
	rest    *blobs.Unflushed // those after entries
}

func (h *haul) add(e *record.Entry) error {
	if h.size += len(e.Line); h.size > h.room {
		return h.rest.Add(e)
	}
	kept := *e
	kept.Line = bytes.Clone(e.Line)
	h.entries = append(h.entries, kept)
	return nil
}
