package buffer

import (
	"errors"
	"fmt"
)

// rescue takes apart a batch that the log does not hold any more as it was cut.
// Runs that are whole are opened again, to become part of another batch; the
// others are lost: that is told and counted, and their segments are kept in
// quarantine. Should the batch have been stored before, readers drop what stands
// twice. It reports whether the batch is done with.
func (b *Buffer) rescue(batch *Batch, cause error) bool {
	var rot *RotError
	if !errors.As(cause, &rot) || batch.base != 0 {
		return false
	}
	whole, segments, err := b.wholeRuns(batch)
	if err != nil {
		return false
	}
	for n := range segments {
		b.log.Quarantine(n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	records := 0
	for _, f := range whole {
		records += int(f.records)
		b.pending[f.pos.Segment()]++
		b.held += int64(f.len)
	}
	b.reopen(batch.key, whole)
	b.remove(batch)
	b.services.giveBack(batch.key.service)
	b.forget(batch.place)
	b.dropMessages(batch.messages)
	batch.aside, batch.fate.err = true, cause
	close(batch.fate.done)
	b.m.salvaged.Inc()
	b.m.lost.Add(float64(batch.records - records))
	b.o.Log.Error().Err(cause).Str("service", batch.Service()).Time("period", batch.Period()).
		Int("records", records).Int("lost", batch.records-records).
		Msg("part of a batch is damaged in the log; the rest is cut anew, the segment is in quarantine")
	return true
}

// wholeRuns reads the runs of a batch one by one. segments are those of the runs
// that are not whole.
func (b *Buffer) wholeRuns(batch *Batch) (whole []foundRun, segments map[uint32]bool, err error) {
	rec, err := batch.readRecord()
	if err != nil {
		return nil, nil, err
	}
	segments = map[uint32]bool{}
	var buf []byte
	for e := range rec.runs.all() {
		buf = sized(buf, int(e.len))[:e.len]
		err := readLog(b.log, buf, e.pos, batch.id)
		var r run
		if err == nil {
			n := 0
			if r, n, err = parseRun(buf); err == nil && (n != len(buf) || r.key != batch.key) {
				err = fmt.Errorf("%w: it is another", errRun)
			}
		}
		if err != nil {
			segments[e.pos.Segment()] = true
			continue
		}
		whole = append(whole, foundRun{extent: e, records: uint32(r.records), bytes: uint32(len(r.lines))})
	}
	return whole, segments, nil
}
