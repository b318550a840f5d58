package blobfmt

import (
	"encoding/binary"
	"math"
	"slices"

	"blobtail/record"
)

// Origins has the origin of every record, and the record's index there.
type Origins struct {
	Dict   []record.Origin // ascending
	Blocks [][]Span        // for each block, in the order of its records
}

// A Span is a row of records with one origin and consecutive indexes.
type Span struct {
	Origin       int // in Origins.Dict
	First, Count uint32
}

// Keys returns a reader of the keys of a block's records.
func (o *Origins) Keys(block int) KeyReader {
	return KeyReader{dict: o.Dict, spans: o.Blocks[block]}
}

// A KeyReader returns the keys of a block's records one by one, without their times.
type KeyReader struct {
	dict  []record.Origin
	spans []Span
	taken uint32 // of the first span
}

// Next returns the next key; zero after the last one.
func (r *KeyReader) Next() (k record.Key) {
	if len(r.spans) == 0 {
		return k
	}
	s := r.spans[0]
	k.Origin, k.Index = r.dict[s.Origin], s.First+r.taken
	if r.taken++; r.taken == s.Count {
		r.spans, r.taken = r.spans[1:], 0
	}
	return k
}

// An origin begins with 48 bits of milliseconds, big endian. They are stored
// apart from the rest, as differences.
const (
	originTime = 6
	originRest = len(record.Origin{}) - originTime
)

// An originTable collects the origins of a blob during the writing. Its spans name an
// origin by the order of arrival; the ranks are known only at the end.
type originTable struct {
	ids   map[record.Origin]int
	hot   [16]int // recent ids, by the origin's last bits: saves most look-ups
	list  []record.Origin
	spans []Span
	ends  []int // the end of each block's spans

	fresh bool // the next record starts a span unconditionally
	order []int
	ranks []int
	next  []int64
}

// keepOrigins is the largest dictionary that keeps its memory for the next blob.
const keepOrigins = 1 << 16

func (o *originTable) reset() {
	if o.ids == nil || len(o.list) > keepOrigins {
		o.ids = make(map[record.Origin]int)
	} else {
		clear(o.ids)
	}
	o.list, o.spans, o.ends = o.list[:0], o.spans[:0], o.ends[:0]
	o.fresh = true
}

// add adds a record, which comes after last.
func (o *originTable) add(k, last *record.Key) {
	if !o.fresh && k.Origin == last.Origin && uint64(k.Index) == uint64(last.Index)+1 {
		o.spans[len(o.spans)-1].Count++
		return
	}
	o.spans = append(o.spans, Span{Origin: o.id(k.Origin), First: k.Index, Count: 1})
	o.fresh = false
}

func (o *originTable) id(origin record.Origin) int {
	hot := &o.hot[int(origin[len(origin)-1])%len(o.hot)]
	if *hot < len(o.list) && o.list[*hot] == origin {
		return *hot
	}
	id, ok := o.ids[origin]
	if !ok {
		id = len(o.list)
		o.ids[origin] = id
		o.list = append(o.list, origin)
	}
	*hot = id
	return id
}

// cut ends a block.
func (o *originTable) cut() {
	o.ends = append(o.ends, len(o.spans))
	o.fresh = true
}

// append appends the section. Its numbers are in columns, so that similar numbers are
// together. That makes them a third smaller after compression.
func (o *originTable) append(dst []byte) []byte {
	// order lists the ids by rank, ranks the rank of each id.
	o.order = o.order[:0]
	for id := range o.list {
		o.order = append(o.order, id)
	}
	slices.SortFunc(o.order, func(a, b int) int { return o.list[a].Compare(&o.list[b]) })
	o.ranks = slices.Grow(o.ranks[:0], len(o.order))[:len(o.order)]
	for rank, id := range o.order {
		o.ranks[id] = rank
	}
	dst = binary.AppendUvarint(dst, uint64(len(o.list)))
	last := uint64(0)
	for _, id := range o.order {
		ms := originMillis(o.list[id])
		dst = binary.AppendUvarint(dst, ms-last)
		last = ms
	}
	for _, id := range o.order {
		dst = append(dst, o.list[id][originTime:]...)
	}
	o.next = append(o.next[:0], make([]int64, len(o.list))...)
	start := 0
	for _, end := range o.ends {
		spans := o.spans[start:end]
		start = end
		dst = binary.AppendUvarint(dst, uint64(len(spans)))
		last := 0
		for _, s := range spans {
			rank := o.ranks[s.Origin]
			dst = binary.AppendVarint(dst, int64(rank-last))
			last = rank
		}
		for _, s := range spans {
			dst = binary.AppendUvarint(dst, uint64(s.Count-1))
		}
		for _, s := range spans {
			// Usually an origin continues at the end of its last span: then this is zero.
			dst = binary.AppendVarint(dst, int64(s.First)-o.next[s.Origin])
			o.next[s.Origin] = int64(s.First) + int64(s.Count)
		}
	}
	return dst
}

func originMillis(o record.Origin) uint64 {
	var ms [8]byte
	copy(ms[8-originTime:], o[:originTime])
	return binary.BigEndian.Uint64(ms[:])
}

// parseOrigins is the inverse of originTable.append.
func parseOrigins(r *sectionReader, blocks []Block) *Origins {
	o := &Origins{Dict: parseDict(r), Blocks: make([][]Span, len(blocks))}
	next := make([]int64, len(o.Dict))
	for i := range blocks {
		if r.err != nil {
			break
		}
		o.Blocks[i] = parseSpans(r, next, blocks[i].Records)
	}
	return o
}

// parseDict reads the origins of a blob, ascending.
func parseDict(r *sectionReader) []record.Origin {
	dict := make([]record.Origin, r.count(1+originRest))
	ms := uint64(0)
	for i := range dict {
		ms += r.upTo(1<<(8*originTime) - 1 - ms)
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], ms)
		copy(dict[i][:], b[8-originTime:])
	}
	for i := range dict {
		copy(dict[i][originTime:], r.bytes(originRest))
		if i > 0 && dict[i-1].Compare(&dict[i]) >= 0 {
			r.fail("origins are not in order")
		}
	}
	return dict
}

// parseSpans reads the spans of one block. They must add up to its records.
func parseSpans(r *sectionReader, next []int64, records int) []Span {
	spans := make([]Span, r.count(3))
	last := int64(0)
	for i := range spans {
		last += r.varint()
		if last < 0 || last >= int64(len(next)) {
			r.fail("a span's origin is not in the dictionary")
			return nil
		}
		spans[i].Origin = int(last)
	}
	left := uint64(records)
	for i := range spans {
		if left == 0 {
			r.fail("spans do not add up to the block's records")
			return nil
		}
		more := r.upTo(min(left, math.MaxUint32) - 1)
		spans[i].Count = uint32(more + 1)
		left -= more + 1
	}
	if left != 0 {
		r.fail("spans do not add up to the block's records")
	}
	for i := range spans {
		s := &spans[i]
		first := next[s.Origin] + r.varint()
		if first < 0 || first > math.MaxUint32+1-int64(s.Count) {
			r.fail("a span's indexes are out of range")
			return nil
		}
		s.First = uint32(first)
		next[s.Origin] = first + int64(s.Count)
	}
	return spans
}
