package tailindex

import (
	"bytes"
	"cmp"
	"slices"
	"unsafe"

	"blobtail/record"
)

// item is a kept line: everything of an Entry, with its bytes in the data of the
// set.
type item struct {
	time     int64
	id       record.ID
	off, len uint32
	cut      bool
}

const itemSize = int(unsafe.Sizeof(item{}))

func compare(a, b *item) int {
	return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.id.Origin[:], b.id.Origin[:]), cmp.Compare(a.id.Index, b.id.Index))
}

// slack is how much of a set's data may be of lines that were let go.
const slack = 16 << 10

// kept is the newest of the lines that one row tells of. items is a heap with the
// oldest on top, so that a line costs nothing when it is older than all.
type kept struct {
	seen        int // lines that the row tells of
	first, last int64
	items       []item
	data        []byte
	live        int    // bytes of data that are of items
	spare       []byte // the other half of data, which it is moved to and fro
}

// size is what the set holds of memory.
func (k *kept) size() int { return cap(k.data) + cap(k.spare) + cap(k.items)*itemSize }

// tell counts lines from first to last.
func (k *kept) tell(n int, first, last int64) {
	if k.seen == 0 {
		k.first, k.last = first, last
	}
	k.seen += n
	k.first, k.last = min(k.first, first), max(k.last, last)
}

// add keeps a line, and lets the oldest go for it if it has to. It reports false
// when the line, and so each that is older, is not among the newest.
func (k *kept) add(e *record.Entry) bool {
	it := item{time: e.Time, id: e.ID, cut: e.Cut}
	full := len(k.items) == MaxLines
	if full && compare(&it, &k.items[0]) <= 0 {
		return false
	}
	it.off = uint32(len(k.data))
	if len(e.Line) > MaxLine {
		it.cut = true
		k.data = appendCut(k.data, e.Line)
	} else {
		k.data = append(k.data, e.Line...)
	}
	if it.len = uint32(len(k.data)) - it.off; it.len == 0 {
		return true // no line at all: it stays counted
	}
	k.live += int(it.len)
	if !full {
		k.items = append(k.items, it)
		k.up(len(k.items) - 1)
		return true
	}
	k.live -= int(k.items[0].len)
	k.items[0] = it
	k.down()
	if len(k.data) > 2*k.live+slack {
		k.compact()
	}
	return true
}

func (k *kept) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if compare(&k.items[i], &k.items[parent]) >= 0 {
			return
		}
		k.items[i], k.items[parent] = k.items[parent], k.items[i]
		i = parent
	}
}

func (k *kept) down() {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(k.items); c++ {
			if compare(&k.items[c], &k.items[least]) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		k.items[i], k.items[least] = k.items[least], k.items[i]
		i = least
	}
}

// compact moves what is live to the other half.
func (k *kept) compact() {
	to := k.spare[:0]
	for i := range k.items {
		it := &k.items[i]
		off := len(to)
		to = append(to, k.data[it.off:it.off+it.len]...)
		it.off = uint32(off)
	}
	k.data, k.spare = to, k.data
}

// shrink lets the oldest go until the set holds at most n bytes.
func (k *kept) shrink(n int) {
	k.sort()
	room, from := n, len(k.items)
	for from > 0 && room >= int(k.items[from-1].len)+itemSize {
		from--
		room -= int(k.items[from].len) + itemSize
	}
	k.items = slices.Clip(slices.Clone(k.items[from:])) // in order, so a heap
	k.live = 0
	for i := range k.items {
		k.live += int(k.items[i].len)
	}
	k.spare = make([]byte, 0, k.live)
	k.compact()
	k.spare = nil
}

func (k *kept) sort() {
	slices.SortFunc(k.items, func(a, b item) int { return compare(&a, &b) })
}

// entries are the lines in order. They are valid until the set is reset.
func (k *kept) entries() []record.Entry {
	k.sort()
	entries := make([]record.Entry, len(k.items))
	for i := range k.items {
		it := &k.items[i]
		entries[i] = record.Entry{Time: it.time, ID: it.id, Line: k.data[it.off : it.off+it.len], Cut: it.cut}
	}
	return entries
}

// reset empties the set; it keeps its memory.
func (k *kept) reset() {
	*k = kept{items: k.items[:0], data: k.data[:0], spare: k.spare}
}
