package tailindex

import (
	"slices"
	"sort"
	"unsafe"

	"blobtail/record"
)

// kept is the newest lines of those that one row counts.
type kept struct {
	seen        int // lines that the row counts
	first, last int64
	holes       bool           // a line newer than the oldest entry is omitted
	entries     []record.Entry // in order; they own their lines
	bytes       int            // of memory for lines
}

// size is the memory of the set in bytes.
func (k *kept) size() int {
	return k.bytes + cap(k.entries)*int(unsafe.Sizeof(record.Entry{}))
}

// tell counts n lines with times from first to last.
func (k *kept) tell(n int, first, last int64) {
	if k.seen == 0 {
		k.first, k.last = first, last
	}
	k.seen += n
	k.first, k.last = min(k.first, first), max(k.last, last)
}

// add keeps a copy of a line, and drops the oldest if the set is full. It omits a line
// that is too long, or older than all of a full set.
func (k *kept) add(e *record.Entry) {
	full := len(k.entries) == MaxLines
	if full && e.Compare(&k.entries[0]) <= 0 {
		return
	}
	if len(e.Line) > MaxLine {
		k.holes = true
		return
	}
	var memory []byte
	if full {
		oldest := k.entries[0].Line
		k.entries = k.entries[1:]
		k.bytes -= cap(oldest)
		if cap(oldest) < 2*len(e.Line) {
			memory = oldest[:0]
		}
	}
	line := append(memory, e.Line...)
	k.bytes += cap(line)
	// Lines come nearly sorted.
	at := len(k.entries)
	if at > 0 && e.Compare(&k.entries[at-1]) < 0 {
		at = sort.Search(at, func(i int) bool { return e.Compare(&k.entries[i]) < 0 })
	}
	k.entries = slices.Insert(k.entries, at, record.Entry{Time: e.Time, ID: e.ID, Line: line})
}

// drop omits all lines, to free memory.
func (k *kept) drop() {
	*k = kept{seen: k.seen, first: k.first, last: k.last, holes: k.holes || len(k.entries) > 0}
}

// shown are the entries of the row: [MaxLines] only if all omitted lines are older.
func (k *kept) shown() []record.Entry {
	if k.holes && len(k.entries) == MaxLines {
		return k.entries[1:]
	}
	return k.entries
}
