package runlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"blobtail/buffer/wal"
	"blobtail/record"
)

// Loader reads the runs of one batch, strictly, and sorts their lines. Only one goroutine
// may use it at a time; it keeps its memory for the next batch.
type Loader struct {
	reader   Reader
	families families
	sorter   // raw has the runs, as read
	renamed  []Renaming
}

// Renaming is a run with lines that are known by its place.
type Renaming struct {
	Origin, Place record.Origin
	Lots          Lots
}

// NewLoader returns a loader of batches of a log.
func NewLoader(log *wal.Log) *Loader {
	return &Loader{reader: Reader{log: log, keep: true}}
}

// Renamed are the runs of the batch loaded last that have lines known by their
// place; valid until the next batch.
func (l *Loader) Renamed() []Renaming { return l.renamed }

// Load reads the runs of a batch and sorts their lines by time, origin and index.
// The error is a [*RotError] if the log no longer has the batch as it was cut.
func (l *Loader) Load(ctx context.Context, r *BatchRecord) error {
	runs, err := l.read(ctx, r)
	if err != nil {
		return err
	}
	l.fill(runs)
	l.sort()
	return nil
}

// Each calls f for the lines of the loaded batch, in order, each with its newline.
// A line is valid during the call.
func (l *Loader) Each(f func(line []byte, t int64, origin record.Origin, index uint32) error) error {
	for i := range l.lines {
		e := &l.lines[i]
		if err := f(l.bytes(e), e.time, l.origins[e.rank], e.index); err != nil {
			return err
		}
	}
	return nil
}

// Copy reads the runs of a batch and adds to p the runs that its blob would have. Errors
// are those of Load.
func (l *Loader) Copy(ctx context.Context, r *BatchRecord, p *Parked) error {
	runs, err := l.read(ctx, r)
	if err != nil {
		return err
	}
	p.body = make([]byte, 0, len(l.raw)+32*len(runs))
	for i := range runs {
		p.Add(&runs[i])
	}
	return nil
}

// read reads every run of r and checks that they add up. It returns the parts with the
// lines that the batch keeps.
func (l *Loader) read(ctx context.Context, r *BatchRecord) ([]Run, error) {
	l.room(&r.Runs)
	runs := make([]Run, 0, r.Runs.Len())
	records, total := 0, int64(0)
	err := l.reader.Read(ctx, &r.Runs, r.Bin, func(run *Run) error {
		records += run.Records
		total += int64(len(run.lines))
		runs = append(runs, *run)
		return nil
	}, nil)
	if err != nil {
		return nil, rot(r.ID, err)
	}
	if records != r.Records || total != r.Bytes {
		return nil, &RotError{r.ID, fmt.Sprintf("its runs hold %d records and %d bytes, its record says %d and %d",
			records, total, r.Records, r.Bytes)}
	}
	l.raw = l.reader.window
	return l.onePerOrigin(runs), nil
}

// onePerOrigin reduces the runs to the lines that the batch keeps.
func (l *Loader) onePerOrigin(runs []Run) []Run {
	kept := runs[:0]
	var parts []Run
	l.families.begin(func(e Extent) *Run {
		i, _ := slices.BinarySearchFunc(kept, e.Pos, func(r Run, pos wal.Pos) int { return cmp.Compare(r.Pos, pos) })
		return &kept[i]
	})
	l.renamed = l.renamed[:0]
	for i := range runs {
		switch lots, keep := l.families.join(&runs[i]); {
		case !keep:
		case lots == nil:
			kept = append(kept, runs[i])
		default:
			if lots.HasRenamed() {
				l.renamed = append(l.renamed, Renaming{runs[i].Origin, runs[i].Place, lots})
			}
			_ = runs[i].split(lots, func(part *Run) error {
				part.at = len(l.raw)
				parts = append(parts, *part)
				l.raw = append(l.raw, part.lines...)
				return nil
			})
		}
	}
	return append(kept, parts...)
}

// room makes the reader's memory large enough for everything that a list of runs needs, so that
// it is never copied as it grows.
func (l *Loader) room(runs *Extents) {
	total, last := 0, Extent{}
	for e := range runs.All() {
		total += int(e.Len)
		if near(last, e) {
			total += int(e.Pos - last.End())
		}
		last = e
	}
	l.reader.window = sized(l.reader.window, total)
}

// fill lists the lines of the runs.
func (l *Loader) fill(runs []Run) {
	n := 0
	for i := range runs {
		n += runs[i].Records
	}
	l.lines, l.origins = sized(l.lines, n), sized(l.origins, len(runs))
	for i := range runs {
		r := &runs[i]
		off, rank := uint32(r.at), l.rankOf(r.Origin)
		d, t, index := decoder{r.table, true}, r.time0, r.first // like rows, but inlined: here each call counts
		for range r.Records {
			t += int64(d.uvarint())
			n := uint32(d.uvarint())
			if r.places {
				index = d.index(index)
			}
			l.lines = append(l.lines, line{t, off, n, rank, index})
			off += n
			index++
		}
	}
}
