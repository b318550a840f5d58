package blobs

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"
)

// Bucket has the numbers of records of each level from Start, in ns, to the start of
// the next possible bucket.
type Bucket struct {
	Start  int64
	Levels [record.NumLevels]int64
}

// Histogram counts the records of the query by time and level, and ignores its limit. It
// returns only buckets with records, in order. If buckets begin at whole minutes it decodes
// no more than Count does: the indexes' counts by the minute suffice.
func (p *Plan) Histogram(ctx context.Context, by Buckets) ([]Bucket, Summary, error) {
	if by.Length <= 0 {
		return nil, Summary{}, badQuery("a bucket must be longer than nothing")
	}
	c := p.counting(by)
	err := c.run(ctx)
	out := make([]Bucket, 0, len(c.tally.buckets))
	for start, levels := range c.tally.buckets {
		out = append(out, Bucket{start, *levels})
	}
	slices.SortFunc(out, func(a, b Bucket) int { return cmp.Compare(a.Start, b.Start) })
	return out, c.sum, err
}

// A tally counts wanted records: in all, and if by has a length, by time and level.
type tally struct {
	by      Buckets
	total   int64
	buckets map[int64]*[record.NumLevels]int64
	// The bucket of the time asked for last: most times are in that too.
	from, to int64
}

// start returns the start of the bucket of a time.
func (t *tally) start(ns int64) int64 {
	if t.by.Length == 0 {
		return 0
	}
	if ns < t.from || ns >= t.to {
		t.from = t.by.Start(ns)
		t.to = t.by.Next(t.from)
	}
	return t.from
}

// one reports whether all times from first to last are in one bucket.
func (t *tally) one(first, last int64) bool { return t.start(first) == t.start(last) }

func (t *tally) bucket(start int64) *[record.NumLevels]int64 {
	b := t.buckets[start]
	if b == nil {
		if t.buckets == nil {
			t.buckets = make(map[int64]*[record.NumLevels]int64)
		}
		b = new([record.NumLevels]int64)
		t.buckets[start] = b
	}
	return b
}

// addLevels adds those of some records' level counts that are in set, to the bucket
// of a time.
func addLevels[N int | int64](t *tally, at int64, set LevelSet, levels *[record.NumLevels]N) {
	n := wanted(set, levels)
	t.total += n
	if t.by.Length == 0 || n == 0 {
		return
	}
	b := t.bucket(t.start(at))
	for l, count := range levels {
		if set.Has(record.Level(l)) {
			b[l] += int64(count)
		}
	}
}

func (t *tally) lines(raw []byte) error {
	if t.by.Length == 0 {
		t.total += int64(bytes.Count(raw, newline))
		return nil
	}
	for line := range bytes.Lines(raw) {
		ns, ok := record.LineTime(line)
		if !ok {
			return errLine
		}
		t.bucket(t.start(ns))[record.LineLevel(line)]++
		t.total++
	}
	return nil
}

// fold makes a tally of the same buckets of lines.
func (t *tally) fold() Fold {
	by, id := t.by, ""
	if by.zone() == time.UTC {
		id = "tally " + by.Length.String()
	}
	return Fold{ID: id, Of: func(lines []byte) (any, int64, error) {
		of := &tally{by: by}
		err := of.lines(lines)
		return of, int64(len(of.buckets)+1) * tallyBytes, err
	}}
}

// tallyBytes is about the memory of a bucket of a tally.
const tallyBytes = 150

func (t *tally) add(o *tally) {
	t.total += o.total
	for start, levels := range o.buckets {
		b := t.bucket(start)
		for l, n := range levels {
			b[l] += n
		}
	}
}

// block counts the records of a block in the range by its index. That is exact if the
// ends of the range, and of buckets, fall between two of its minutes. If it is not
// exact, nothing is counted; higher is then a lower bound.
func (t *tally) block(b *blobfmt.Block, rng Range, match *Matcher) (higher int64, exact bool) {
	if rng.covers(b.First, b.Last) && t.one(b.First, b.Last) {
		addLevels(t, b.First, match.levels, &b.Levels)
		return wanted(match.high, &b.Levels), true
	}
	exact = len(b.Minutes) > 0 // bodies have none
	for i := range b.Minutes {
		m := &b.Minutes[i]
		first, last := minuteTimes(m, b)
		switch {
		case !rng.touches(first, last):
		case rng.covers(first, last) && t.one(first, last):
			higher += wanted(match.high, &m.Levels)
		default:
			exact = false
		}
	}
	for i := 0; exact && i < len(b.Minutes); i++ {
		m := &b.Minutes[i]
		if first, last := minuteTimes(m, b); rng.touches(first, last) {
			addLevels(t, first, match.levels, &m.Levels)
		}
	}
	return higher, exact
}

// minuteTimes returns the times between which a block has the records of a minute.
func minuteTimes(m *blobfmt.MinuteCount, b *blobfmt.Block) (first, last int64) {
	const minute = int64(time.Minute)
	return max(m.Minute*minute, b.First), min(m.Minute*minute+(minute-1), b.Last)
}
