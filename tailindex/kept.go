package tailindex

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"unsafe"

	"blobtail/record"
)

// item is a kept line: everything of an Entry, with its bytes in the data of the
// set.
type item struct {
	time     int64
	id       record.ID
	off, len uint32
}

const itemSize = int(unsafe.Sizeof(item{}))

func compare(a, b *item) int {
	return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.id.Origin[:], b.id.Origin[:]), cmp.Compare(a.id.Index, b.id.Index))
}

// slack is how much of a set's data may be of lines that were let go.
const slack = 16 << 10

// kept is the newest of the lines that one row tells of. items are in order, from
// head on: lines come nearly sorted, so a new one goes to the end and the oldest
// from the front.
type kept struct {
	seen        int // lines that the row tells of
	first, last int64
	holes       bool // a line newer than the oldest of items is omitted
	items       []item
	head        int
	data        []byte
	live        int    // bytes of data that are of items
	spare       []byte // the other half of data, which it is moved to and fro
}

// sorted are the items, the oldest first.
func (k *kept) sorted() []item { return k.items[k.head:] }

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

// add keeps a line, and drops the oldest for it if it has to. It omits a line that
// is too long, or older than all of a full set.
func (k *kept) add(e *record.Entry) {
	it := item{time: e.Time, id: e.ID, off: uint32(len(k.data)), len: uint32(len(e.Line))}
	items := k.sorted()
	full := len(items) == MaxLines
	if full && compare(&it, &items[0]) <= 0 {
		return
	}
	if len(e.Line) > MaxLine {
		k.holes = true
		return
	}
	k.data = append(k.data, e.Line...)
	k.live += int(it.len)
	if full {
		k.live -= int(items[0].len)
		k.head++
	}
	k.insert(it)
	if len(k.data) > 2*k.live+slack {
		k.compact()
	}
}

// insert puts an item in its place.
func (k *kept) insert(it item) {
	if k.head > MaxLines {
		k.items = append(k.items[:0], k.items[k.head:]...)
		k.head = 0
	}
	items := k.sorted()
	at := len(items)
	if at > 0 && compare(&it, &items[at-1]) < 0 {
		at = sort.Search(at, func(i int) bool { return compare(&it, &items[i]) < 0 })
	}
	k.items = slices.Insert(k.items, k.head+at, it)
}

// compact moves what is live to the other half.
func (k *kept) compact() {
	to := k.spare[:0]
	items := k.sorted()
	for i := range items {
		it := &items[i]
		off := len(to)
		to = append(to, k.data[it.off:it.off+it.len]...)
		it.off = uint32(off)
	}
	k.data, k.spare = to, k.data
}

// shrink lets the oldest go until the set holds at most n bytes.
func (k *kept) shrink(n int) {
	items := k.sorted()
	room, from := n, len(items)
	for from > 0 && room >= int(items[from-1].len)+itemSize {
		from--
		room -= int(items[from].len) + itemSize
	}
	k.items, k.head = slices.Clip(slices.Clone(items[from:])), 0
	k.live = 0
	for i := range k.items {
		k.live += int(k.items[i].len)
	}
	k.spare = make([]byte, 0, k.live)
	k.compact()
	k.spare = nil
}

// entries are the lines in order. They are valid until the set is reset. They are
// [MaxLines] only if all that are omitted are older.
func (k *kept) entries() []record.Entry {
	items := k.sorted()
	if k.holes && len(items) == MaxLines {
		items = items[1:]
	}
	entries := make([]record.Entry, len(items))
	for i := range items {
		it := &items[i]
		entries[i] = record.Entry{Time: it.time, ID: it.id, Line: k.data[it.off : it.off+it.len]}
	}
	return entries
}

// reset empties the set; it keeps its memory.
func (k *kept) reset() {
	*k = kept{items: k.items[:0], data: k.data[:0], spare: k.spare}
}
