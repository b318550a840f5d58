package buffer

import (
	"fmt"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// Audit recounts the places of the open batches and the messages, and checks that the
// log has all that is unstored. It may be called at any moment after the replay.
func (b *Buffer) Audit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.Replayed() {
		return nil
	}
	open, left := map[*message]int{}, map[*message]int{}
	for k, ob := range b.index.open {
		if ob.bin != k || ob.runs.Len() == 0 {
			return fmt.Errorf("open batch of %v with %d runs under %v", ob.bin, ob.runs.Len(), k)
		}
		if ob.named.Bytes >= b.o.Size {
			return fmt.Errorf("an open batch of %d bytes", ob.named.Bytes)
		}
		last, named := runlog.Extent{}, runlog.Place{}
		for e := range ob.runs.All() {
			if e.Pos <= last.Pos {
				return fmt.Errorf("run at %d behind that at %d", e.Pos, last.Pos)
			}
			last = e
			named.Hold(e)
		}
		if named != ob.named.Place {
			return fmt.Errorf("counted %+v, kept %+v", named, ob.named.Place)
		}
		for _, m := range ob.messages {
			open[m]++
			left[m]++
		}
	}
	for _, batch := range b.allCut() {
		for _, m := range batch.messages {
			left[m]++
		}
		if done := isDone(batch); done != batch.try.aside {
			return fmt.Errorf("batch %x: aside %v, done %v", batch.named.ID, batch.try.aside, done)
		}
		if _, there := b.log.Segment(batch.named.Record.Segment()); !there {
			return fmt.Errorf("the record of batch %x is gone", batch.named.ID)
		}
	}
	for _, batch := range b.index.unstored() {
		if segment := batch.named.First.Segment(); segment < b.log.Front() {
			return fmt.Errorf("segment %d is gone, and holds what is not stored", segment)
		}
	}
	if err := b.auditIndex(); err != nil {
		return err
	}
	return b.auditMessages(open, left)
}

// auditIndex compares the lists and sums of the index.
func (b *Buffer) auditIndex() error {
	x := &b.index
	open, all, held := 0, x.unstored(), int64(0)
	for _, batch := range all {
		held += batch.named.Held
		if _, there := x.segments[batch.named.First.Segment()][batch]; !there {
			return fmt.Errorf("batch %x is not under segment %d", batch.named.ID, batch.named.First.Segment())
		}
		if batch.isOpen() {
			open++
			if p := batch.places; x.due.all[p.due] != batch || batch.service.open[p.open] != batch || x.open[batch.bin] != batch {
				return fmt.Errorf("an open batch of %v is not at its places", batch.bin)
			}
		}
		if p := batch.places; x.oldest.all[p.oldest] != batch || x.earliest.all[p.earliest] != batch || x.services[batch.bin.Service] != batch.service {
			return fmt.Errorf("a batch of %v is not at its places", batch.bin)
		}
	}
	inSegments := 0
	for _, batches := range x.segments {
		inSegments += len(batches)
	}
	if held != x.held || inSegments != len(all) || x.oldest.Len() != len(all) || x.earliest.Len() != len(all) ||
		x.due.Len() != open || len(x.open) != open || len(x.entries)-x.gone != len(x.services) {
		return fmt.Errorf("counted %d batches, %d open, %d bytes; the index has %d, %d in segments, %d open, %d bytes, %d services of %d",
			len(all), open, held, x.oldest.Len(), inSegments, len(x.open), x.held, len(x.services), len(x.entries)-x.gone)
	}
	return nil
}

func (b *Buffer) auditMessages(open, left map[*message]int) error {
	known := map[record.Origin]bool{}
	for m, n := range left {
		if n != m.left && !m.gone || open[m] != m.open && !m.gone {
			return fmt.Errorf("message %q: counted %d left, %d open, kept %+v", m.reply, n, open[m], *m)
		}
		if !m.gone && !m.origin.IsZero() {
			known[m.origin] = true
		}
	}
	if len(open) != b.messages.open {
		return fmt.Errorf("counted %d open messages, kept %d", len(open), b.messages.open)
	}
	for origin, m := range b.messages.byOrigin {
		if !known[origin] || m.gone || m.left == 0 || left[m] == 0 {
			return fmt.Errorf("message %q is remembered and not here", m.reply)
		}
	}
	return nil
}

// allCut returns the batches of the queue.
func (b *Buffer) allCut() (all []*Batch) {
	for _, batch := range b.index.unstored() {
		if !batch.isOpen() {
			all = append(all, batch)
		}
	}
	return all
}

func isDone(batch *Batch) bool {
	select {
	case <-batch.done:
		return true
	default:
		return false
	}
}

// Parked counts the batches that are copies.
func (b *Buffer) Parked() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range b.allCut() {
		if batch.named.IsCopy() {
			n++
		}
	}
	return n
}

// GuardedTwice runs one record twice through a replay that panics over every runs record.
// It returns both errors.
func GuardedTwice(b *Buffer, rec wal.Record) (first, second error) {
	p := &replay{b: b, passed: map[wal.Pos]bool{}} // its other maps are nil
	return p.guarded(rec), p.guarded(rec)
}
