package buffer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"blobtail/record"
	"blobtail/wal"
)

// ErrAside is what a [Sink] wraps when no repeat can ever store a batch: it is
// set aside then, counted, and what the log holds of it is kept.
var ErrAside = errors.New("the batch cannot be stored")

// ErrExpired is what a [Sink] wraps when the day of a batch has been dropped: it is
// never stored then, counted, and the log lets go of it.
var ErrExpired = errors.New("the batch has expired")

// RotError says that a batch cannot be rebuilt from the log: a run of it is
// damaged or gone, or its runs do not add up to what its record says.
type RotError struct {
	Batch  [16]byte
	Reason string
}

// Error names the batch and says what is wrong with it.
func (e *RotError) Error() string {
	return fmt.Sprintf("batch %x cannot be rebuilt from the log: %s", e.Batch, e.Reason)
}

// Unwrap makes a RotError an [ErrAside].
func (e *RotError) Unwrap() error { return ErrAside }

// entry is one line of a batch that is being sorted. rank is the order of its
// run's origin among those of the batch, so that comparing needs integers only.
type entry struct {
	time  int64
	off   uint32 // in loader.raw
	len   uint32
	rank  uint32
	index uint32
}

func (a *entry) less(b *entry) bool {
	if a.time != b.time {
		return a.time < b.time
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.index < b.index
}

// loader reads the runs of one batch and puts their lines in order. It keeps
// its memory for the next batch.
type loader struct {
	raw     []byte
	entries []entry
	spare   []entry
	bounds  []int // where each sorted sequence of entries begins
	origins []record.Origin
	renamed []renaming // of lines of the batch
}

// loadedRun is a run in the loader's memory.
type loadedRun struct {
	run
	origin record.Origin
	place  record.Origin // the origin that its own place in the log would give
	off    uint32        // of its lines in loader.raw
	rank   uint32
}

// load reads the runs of a batch and sorts their lines by (time, origin, index).
func (l *loader) load(log *wal.Log, r *batchRecord) error {
	runs, err := l.read(log, r)
	if err != nil {
		return err
	}
	runs = l.onePerOrigin(runs)
	l.fill(runs)
	l.sort()
	return nil
}

// maxGap is how many bytes of other batches a read may fetch in passing rather
// than ask the kernel once more.
const maxGap = 8 << 10

// near reports whether two runs, one after the other, are read together.
func near(a, b extent) bool {
	end := a.pos + wal.Pos(a.len)
	return a.pos.Segment() == b.pos.Segment() && b.pos-end <= maxGap
}

// room makes l.raw large enough for all that reading a list of runs will fetch,
// so that it is never copied as it grows.
func (l *loader) room(runs *extents) {
	total, last := 0, extent{}
	for e := range runs.all() {
		total += int(e.len)
		if near(last, e) {
			total += int(e.pos-last.pos) - int(last.len)
		}
		last = e
	}
	l.raw = sized(l.raw, total)
}

// sized returns an empty slice with room for n, s if it has it. A new one gets
// more: batches differ in size, and what the first touch of fresh memory costs
// is paid once. It is made rather than grown because growing clears, which the
// collector cannot interrupt and spins on.
func sized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:0]
	}
	return make([]T, 0, n+n/2)
}

// read fetches every run of r, checks it, and checks that they add up.
func (l *loader) read(log *wal.Log, r *batchRecord) ([]loadedRun, error) {
	l.room(&r.runs)
	runs := make([]loadedRun, 0, r.runs.n)
	var group []extent
	var err error
	for e := range r.runs.all() {
		if n := len(group); n > 0 && !near(group[n-1], e) {
			if runs, err = l.fetch(log, r, group, runs); err != nil {
				return nil, err
			}
			group = group[:0]
		}
		group = append(group, e)
	}
	if len(group) > 0 {
		if runs, err = l.fetch(log, r, group, runs); err != nil {
			return nil, err
		}
	}
	records, total := 0, int64(0)
	for i := range runs {
		records += runs[i].records
		total += int64(len(runs[i].lines))
	}
	if records != r.records || total != r.bytes {
		return nil, &RotError{r.id, fmt.Sprintf("its runs hold %d records and %d bytes, its record says %d and %d",
			records, total, r.records, r.bytes)}
	}
	return runs, nil
}

// fetch reads neighbouring runs at once and appends them to runs.
func (l *loader) fetch(log *wal.Log, r *batchRecord, group []extent, runs []loadedRun) ([]loadedRun, error) {
	first, last := group[0], group[len(group)-1]
	segment, ok := log.Segment(first.pos.Segment())
	if !ok {
		return nil, &RotError{r.id, fmt.Sprintf("segment %d is gone", first.pos.Segment())}
	}
	base, n := len(l.raw), int(last.pos-first.pos)+int(last.len)
	l.raw = l.raw[:base+n] // room has seen to it
	if err := readLog(log, l.raw[base:], first.pos, r.id); err != nil {
		return nil, err
	}
	for _, e := range group {
		at := base + int(e.pos-first.pos)
		run, n, err := parseRun(l.raw[at : at+int(e.len)])
		if err != nil || n != int(e.len) || run.key != r.key {
			return nil, &RotError{r.id, fmt.Sprintf("the run at %d in segment %d: %v", e.pos.Offset(), e.pos.Segment(), err)}
		}
		runs = append(runs, loadedRun{
			run: run, origin: run.identity(e.pos, segment), place: placeOf(e.pos, segment),
			off: uint32(at + n - len(run.lines)),
		})
	}
	return runs, nil
}

// readLog reads part of the log for a batch. What is not there any more does not
// come back: that is rot, and not worth another try.
func readLog(log *wal.Log, b []byte, pos wal.Pos, id [16]byte) error {
	err := log.ReadAt(b, pos)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrNotExist) {
		return &RotError{id, err.Error()}
	}
	if err != nil {
		return fmt.Errorf("read %d bytes of the log: %w", len(b), err)
	}
	return nil
}

// onePerOrigin leaves of each origin what stands in the batch, as copies.go has it,
// and ranks the origins.
func (l *loader) onePerOrigin(runs []loadedRun) []loadedRun {
	first := make(map[record.Origin]int, len(runs))
	var families map[record.Origin]family
	var parts []loadedRun
	kept := runs[:0]
	l.renamed = l.renamed[:0]
	for i := range runs {
		r := runs[i]
		j, ok := first[r.origin]
		switch {
		case !ok:
			first[r.origin] = len(kept)
			kept = append(kept, r)
			continue
		case r.isCopyOf(&kept[j].run):
			continue
		case families == nil:
			families = map[record.Origin]family{}
		}
		f := families[r.origin]
		if f == nil {
			f = family{}
			f.join(&kept[j].run)
			families[r.origin] = f
		}
		if lots := f.join(&r.run); lots == nil {
			parts = append(parts, r)
		} else {
			parts = l.split(parts, &r, lots)
		}
	}
	for _, p := range parts {
		if _, ok := first[p.origin]; !ok {
			first[p.origin] = len(kept)
		}
		kept = append(kept, p)
	}
	l.rank(kept, first)
	for i := len(kept) - len(parts); i < len(kept); i++ {
		kept[i].rank = kept[first[kept[i].origin]].rank
	}
	return kept
}

// split appends what is kept of a run: the lines that stand under its origin, and
// those that are known by its place.
func (l *loader) split(parts []loadedRun, r *loadedRun, lots lots) []loadedRun {
	for _, want := range [2]lot{stands, renamed} {
		if !slices.Contains(lots, want) {
			continue
		}
		origin := r.origin
		if want == renamed {
			origin = r.place
			l.renamed = append(l.renamed, renaming{r.origin, r.place, lots})
		}
		part := loadedRun{run: r.only(lots, want, origin), origin: origin, place: r.place, off: uint32(len(l.raw))}
		l.raw = append(l.raw, part.lines...)
		parts = append(parts, part)
	}
	return parts
}

// rank ranks the origins of runs, of each the first.
func (l *loader) rank(runs []loadedRun, first map[record.Origin]int) {
	l.origins = l.origins[:0]
	for o := range first {
		l.origins = append(l.origins, o)
	}
	slices.SortFunc(l.origins, func(a, b record.Origin) int { return bytes.Compare(a[:], b[:]) })
	for i, o := range l.origins {
		runs[first[o]].rank = uint32(i)
	}
}

// fill makes an entry for every line; each run is a sorted sequence, and runs
// that continue where the one before ended extend its sequence.
func (l *loader) fill(runs []loadedRun) {
	n := 0
	for i := range runs {
		n += runs[i].records
	}
	l.entries = sized(l.entries, n)
	l.bounds = l.bounds[:0]
	for i := range runs {
		r := &runs[i]
		d := decoder{r.table, true}
		t, off := r.time0, r.off
		start, index := len(l.entries), r.first
		for range r.records {
			t += int64(d.uvarint())
			n := uint32(d.uvarint())
			if r.places {
				index = d.index(index)
			}
			l.entries = append(l.entries, entry{t, off, n, r.rank, index})
			off += n
			index++
		}
		if start == 0 || l.entries[start].less(&l.entries[start-1]) {
			l.bounds = append(l.bounds, start)
		}
	}
}

// sort is a natural merge sort: it merges neighbouring sequences until one is
// left. Requests arrive nearly in order, so most of a merge is copying.
func (l *loader) sort() {
	l.spare = sized(l.spare, len(l.entries))[:len(l.entries)]
	for len(l.bounds) > 1 {
		next := l.bounds[:0]
		for i := 0; i < len(l.bounds); i += 2 {
			lo, mid, hi := l.bounds[i], len(l.entries), len(l.entries)
			if i+1 < len(l.bounds) {
				mid = l.bounds[i+1]
			}
			if i+2 < len(l.bounds) {
				hi = l.bounds[i+2]
			}
			mergeInto(l.spare[lo:hi], l.entries[lo:mid], l.entries[mid:hi])
			next = append(next, lo)
		}
		l.bounds = next
		l.entries, l.spare = l.spare, l.entries
	}
}

// mergeInto merges two sorted sequences; dst is as long as both together.
func mergeInto(dst, a, b []entry) {
	if len(b) > 0 {
		// What lies before all of b, or behind all of a, needs no comparing.
		head, _ := slices.BinarySearchFunc(a, &b[0], compareEntries)
		dst = dst[copy(dst, a[:head]):]
		a = a[head:]
	}
	for len(a) > 0 && len(b) > 0 {
		if b[0].less(&a[0]) {
			dst[0], b = b[0], b[1:]
		} else {
			dst[0], a = a[0], a[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, a):], b)
}

func compareEntries(a entry, b *entry) int {
	if a.less(b) {
		return -1
	}
	if b.less(&a) {
		return 1
	}
	return 0
}
