package query

import (
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
)

// first and last are the times of its oldest and newest record.
func (s *stream) first() int64 { return s.index.Blocks[0].First }
func (s *stream) last() int64  { return s.index.Blocks[len(s.index.Blocks)-1].Last }

// source makes the stream a source for a cursor.
func (s *stream) source(count *counters) *source {
	e := &catalog.Entry{Key: s.loose.name, Name: blobfmt.Name{Service: s.service}}
	e.Meta.First, e.Meta.Last = s.first(), s.last()
	return &source{Entry: e, count: count, stream: s, index: &s.index}
}

// loosen makes block n of a stream a block of the pass, as decode does for a blob.
func (l *loader) loosen(f *future, s *stream, n int) {
	var own bool
	var ids []record.ID
	var raw []byte
	b, d := &s.blocks[n], &s.index.Blocks[n]
	var spare []byte
	changes := l.match.hasText() || !l.match.wantsAll(&d.Levels)
	if b.spilled || changes {
		spare = l.buffer()
	}
	if raw, ids, own, f.err = b.load(s.loose, spare); f.err != nil {
		return
	}
	if !own && changes {
		raw, own = append(spare[:0], raw...), true
	}
	if own {
		f.buf = raw
	}
	if !l.keep(f, raw, d) {
		return
	}
	f.kept.ids = ids
	if own {
		l.shrink(f)
	}
}

// hourPart is the part of a stream in one UTC hour. All copies of a record are in one
// hour.
type hourPart struct {
	stream      *stream
	first, last int64 // times of its first and last record
}

// noteHour adds a line to the hours. It is never before the last of them.
func (s *stream) noteHour(line []byte) {
	t, _ := record.LineTime(line)
	by := tally{by: int64(time.Hour)}
	if n := len(s.hours); n > 0 && by.one(s.hours[n-1].first, t) {
		s.hours[n-1].last = t
		return
	}
	s.hours = append(s.hours, hourPart{s, t, t})
}

// origins returns the values in seen for the origins of the part, or of its
// neighbours.
func (p hourPart) origins(seen map[record.Origin]int) ([]int, error) {
	var met []int
	for i := range p.stream.blocks {
		b := &p.stream.index.Blocks[i]
		if b.First > p.last || b.Last < p.first {
			continue
		}
		_, ids, _, err := p.stream.blocks[i].load(p.stream.loose, nil)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			if i > 0 && id.Origin == ids[i-1].Origin {
				continue
			}
			if n, ok := seen[id.Origin]; ok {
				met = append(met, n)
			}
		}
	}
	return met, nil
}
