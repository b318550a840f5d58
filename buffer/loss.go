package buffer

import (
	"cmp"
	"slices"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// Loss counts acknowledged records that the log no longer has.
type Loss struct {
	Since   time.Time // arrival of the oldest record that may be lost; zero: unknown
	Until   time.Time // when the loss was found
	Records int       // at least this many
}

// Lost returns the loss detected since the process started, ok is false for none. It
// has the loss that the start detects once the log is replayed.
func (b *Buffer) Lost() (Loss, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loss, b.loss.Records > 0
}

// lose adds a loss of at least that many records. b.mu is held.
func (b *Buffer) lose(records int, since time.Time) {
	if records == 0 {
		return
	}
	if b.loss.Records == 0 || since.Before(b.loss.Since) {
		b.loss.Since = since // the zero time is before all others
	}
	b.loss.Until = time.Now()
	b.loss.Records += records
	b.m.lost.Add(int64(records))
}

// damages are the spans of the log that a start could not read, with all that it learns
// about their records.
type damages struct {
	spans   []*damagedSpan // ascending
	missing map[*Batch]missing
}

type damagedSpan struct {
	from, to wal.Pos
	end      wal.Pos         // of the file, if the span reaches to it; else 0
	safe     []runlog.Extent // runs in it that blobs have, or a copy further on
}

// missing are the runs that a batch record names and the log lacks.
type missing struct {
	damaged []runlog.Extent // those in damaged spans
	runs    int             // all of them
	records int             // in all of them
}

// note adds a span of the log that cannot be read.
func (d *damages) note(c *wal.CorruptError) {
	if c.From == c.To {
		return
	}
	s := &damagedSpan{from: c.From, to: c.To}
	if c.Length > 0 && s.to != s.from+wal.Pos(c.Length) {
		s.end = s.from + wal.Pos(c.Length)
	}
	d.spans = append(d.spans, s)
}

// at returns the span in which the run at e begins, or nil.
func (d *damages) at(e runlog.Extent) *damagedSpan {
	i, found := slices.BinarySearchFunc(d.spans, e.Pos, func(s *damagedSpan, pos wal.Pos) int { return cmp.Compare(s.from, pos) })
	if !found {
		i--
	}
	if i < 0 || e.Pos >= d.spans[i].to {
		return nil
	}
	return d.spans[i]
}

// lacks notes the missing runs of a batch. It is called once, at the batch's record:
// its other runs may belong to a later batch.
func (d *damages) lacks(batch *Batch, named *runlog.Extents, found []foundRun) {
	there := make(map[wal.Pos]bool, len(found))
	m := missing{runs: named.Len() - len(found), records: batch.named.Records}
	for _, f := range found {
		there[f.Pos] = true
		m.records -= int(f.records)
	}
	for e := range named.All() {
		if !there[e.Pos] && d.at(e) != nil {
			m.damaged = append(m.damaged, e)
		}
	}
	if len(m.damaged) > 0 {
		d.missing[batch] = m
	}
}

// saved notes that a batch is not lost: it is stored, or there is a copy.
func (d *damages) saved(batch *Batch) {
	for _, e := range d.missing[batch].damaged {
		s := d.at(e)
		s.safe = append(s.safe, e)
	}
	delete(d.missing, batch)
}

// betweenRuns is the longest stretch between two runs that has no room for a runs
// record next to the head of the second run's record: two framings of 16 bytes, and 21
// of a record with the shortest run.
const betweenRuns = 53

// known reports whether the safe runs are all that the span can have held: no other runs
// record fits next to them. If the file ends in the span, it may have been longer, unless
// the last of them ends there too.
func (s *damagedSpan) known() bool {
	slices.SortFunc(s.safe, func(a, b runlog.Extent) int { return cmp.Compare(a.Pos, b.Pos) })
	at := s.from
	for _, e := range s.safe {
		if e.Pos > at+betweenRuns {
			return false
		}
		at = max(at, e.End())
	}
	if s.end != 0 {
		return at == s.end
	}
	return at+8 > s.to // records are at multiples of 8
}

// loseDamaged counts the loss that a start detected: the records that batches lack,
// and one for each other span that may have held some. b.mu is held.
func (b *Buffer) loseDamaged(d *damages) {
	since := func(s *damagedSpan) time.Time {
		segment, _ := b.log.Segment(s.from.Segment())
		return segment.Created
	}
	counted := map[*damagedSpan]bool{}
	for _, m := range d.missing {
		// Runs that were never durable are no loss. The record count of a single run is
		// unknown, but it had at least one.
		records := len(m.damaged)
		if records == m.runs {
			records = m.records
		}
		oldest := d.at(m.damaged[0])
		for _, e := range m.damaged {
			counted[d.at(e)] = true
		}
		b.lose(records, since(oldest))
	}
	for _, s := range d.spans {
		if !counted[s] && !s.known() {
			b.lose(1, since(s))
		}
	}
}
