package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"

	"blobtail/record/times"
)

// RejectError is the reason that a record is rejected.
type RejectError struct {
	Offset int    // offset in the source
	Reason string // in plain words, for the client
	// Syntax says that it is not JSON at all. Too deep nesting, excessive length and a duplicate
	// key of a record by parts are no syntax errors. After a syntax error the record's end is not
	// known.
	Syntax bool
}

func (e *RejectError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Reason) }

// A Parser turns JSON objects and text into canonical lines. It keeps its memory
// from one record to the next; only one goroutine may use it at a time.
type Parser struct {
	src     []byte // the object scanned last, the caller's memory
	fields  []field
	names   []byte // canonical keys of the fields with other spellings of their keys
	slots   [numNames]int32
	found   present // by kind, bit n: a slot is the first field with the name n of it
	again   bool    // a recognised name came twice
	stack   []byte  // open brackets of a nested value
	nested  nestedKeys
	repeats []int32 // the fields with keys that came before

	reject *RejectError // the first error that is no syntax error
	seen   keyFilter
	shape  shape
	table  []int32 // keys of a record with very many, by hash
	seed   maphash.Seed

	last     head // of the line that was appended last, for Why
	notes    notes
	day      DayCache
	times    times.Reader
	clock    clock
	services map[string]*service
	recent   [recentServices]*service
	scratch  []byte
	repaired []byte // the object scanned last, if [repair] has made it valid
	value    []byte
	parts    Parts
	mapped   mapped
}

// NewParser returns a Parser that is ready for use.
func NewParser() *Parser {
	p := &Parser{seed: maphash.MakeSeed(), services: make(map[string]*service)}
	p.parts.parser = p
	return p
}

// A field is one member of the object, as offsets into the source. It is plain if
// everything from its key's first quote to the value's last byte is already in
// canonical form.
type field struct {
	key, keyEnd   int32 // inside the quotes
	val, valEnd   int32
	name, nameEnd int32  // the canonical key in names, when keyDirty
	hash          uint32 // of the key
	flags         uint8
	known         name
}

// Flags of a field; the first two are the string's own state.
const (
	valDirty   = uint8(stringDirty)   // the value must be rewritten
	valEscaped = uint8(stringEscaped) // the string has escapes
	valRepeats = uint8(1 << 5)        // a key may come twice within the value
	keyDirty   = uint8(1 << 6)        // the key must be escaped anew
	spaced     = uint8(1 << 7)        // there is white space around the colon

	notPlain = valDirty | keyDirty | spaced
)

const (
	manyFields  = 32   // with more, keys are compared by a hash table
	keepFields  = 4096 // kept by a parser for the next record
	keepScratch = 64 << 10
)

// Scan validates the JSON object (RFC 8259) at the start of src and remembers its
// fields for [Parser.AppendLine]. It returns the object's length; src must not change
// until the line is written. Bytes that are no valid UTF-8 are accepted, as in
// encoding/json, and so are the words NaN, Infinity and -Infinity, as texts, and control
// characters in strings but line feeds and carriage returns, of an object in one line.
//
// Any error is a *[RejectError]. For too deep nesting n is still the object's length, so that
// the rest of the source can be read; otherwise it is 0. Of two fields with one key the second
// gets ".2" appended to it, or the first number from there that is free; so it is in the objects
// within.
func (p *Parser) Scan(src []byte) (n int, err error) {
	p.reset()
	long := len(src) > MaxRecord
	if long {
		src = src[:MaxRecord]
	}
	n, bad := p.scanObject(src)
	read := n
	if bad != nil && repairable(src, bad) {
		if n, read = p.scanRepaired(src); read > 0 {
			src, bad = p.repaired, nil
		}
	}
	if bad != nil {
		p.fields, p.found = p.fields[:0], present{}
		if long && bad.Offset == len(src) {
			bad = &RejectError{Offset: MaxRecord, Reason: "longer than 1 MiB"}
		}
		return 0, bad
	}
	p.src = src[:n]
	if p.has(nameRealtime) {
		spreadJournal(p)
	}
	if len(p.fields) > manyFields && p.reject == nil {
		p.checkMany()
	}
	if p.reject != nil {
		p.fields, p.found = p.fields[:0], present{}
		p.reject.Offset = min(p.reject.Offset, read)
		return read, p.reject
	}
	p.renameRepeats()
	p.learnShape()
	return read, nil
}

// reset forgets the last record, and releases the memory of an unusual one.
func (p *Parser) reset() {
	if cap(p.fields) > keepFields {
		p.fields, p.table, p.stack, p.repeats = nil, nil, nil, nil
	}
	if cap(p.names)+cap(p.scratch)+cap(p.value) > keepScratch {
		p.names, p.scratch, p.value = nil, nil, nil
	}
	if cap(p.repaired) > keepScratch {
		p.repaired = nil
	}
	p.src, p.fields, p.names, p.repeats = nil, p.fields[:0], p.names[:0], p.repeats[:0]
	p.found, p.again, p.reject = present{}, false, nil
	p.mapped.before = p.mapped.before[:0]
	p.seen = keyFilter{}
	p.shape.on = true
}

// scanObject scans the top level.
func (p *Parser) scanObject(src []byte) (int, *RejectError) {
	if len(src) == 0 || src[0] != '{' {
		return 0, syntaxError(src, 0, "at the beginning of an object")
	}
	i := skipSpace(src, 1)
	if i < len(src) && src[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(src) || src[i] != '"' {
			return 0, syntaxError(src, i, "where a key should begin")
		}
		end, bad := p.scanField(src, i)
		if bad != nil {
			return 0, bad
		}
		if i = end; i < len(src) && isJSONSpace(src[i]) {
			i = skipSpace(src, i)
		}
		if i >= len(src) {
			return 0, syntaxError(src, i, "")
		}
		switch src[i] {
		case '}':
			return i + 1, nil
		case ',':
			if i++; i < len(src) && isJSONSpace(src[i]) {
				i = skipSpace(src, i)
			}
		default:
			return 0, syntaxError(src, i, "after a value")
		}
	}
}

// scanField scans one member and returns the offset after its value. src[i] is the
// first quote of its key.
func (p *Parser) scanField(src []byte, i int) (int, *RejectError) {
	if p.reject != nil {
		p.fields = p.fields[:0] // nobody will ask for them: a hostile object has many
	}
	p.fields = append(p.fields, field{})
	f := &p.fields[len(p.fields)-1]
	if next := p.follow(src, i+1, f); next > 0 {
		i = next
	} else {
		var bad *RejectError
		if i, bad = p.scanName(src, i+1, f); bad != nil {
			return 0, bad
		}
		if i >= len(src) || src[i] != ':' {
			if i = skipSpace(src, i); i >= len(src) || src[i] != ':' {
				return 0, syntaxError(src, i, "after a key")
			}
			f.flags |= spaced
		}
		i++
	}
	if i < len(src) && isJSONSpace(src[i]) {
		i = skipSpace(src, i)
		f.flags |= spaced
	}
	f.val = int32(i)
	if i < len(src) && src[i] == '"' {
		end, st := scanString(src, i+1)
		if st == stringBad {
			return 0, stringError(src, end)
		}
		i = end + 1
		f.flags |= uint8(st)
	} else {
		var flags uint8
		var bad *RejectError
		if i, flags, bad = p.scanOther(src, i); bad != nil {
			return 0, bad
		}
		f.flags |= flags
	}
	f.valEnd = int32(i)
	return i, nil
}

// scanName scans a key of the record from its first byte, and returns the offset
// after its closing quote. Nearly all keys are short and plain, so their first eight
// bytes suffice to find their end and to recognise them.
func (p *Parser) scanName(src []byte, i int, f *field) (int, *RejectError) {
	if i+8 <= len(src) {
		word := binary.LittleEndian.Uint64(src[i:])
		n := bits.TrailingZeros64(special(word)) &^ 7
		if end := i + n>>3; n < 64 && src[end] == '"' {
			f.key, f.keyEnd = int32(i), int32(end)
			p.addName(src, f, src[i:end], word&(1<<n-1))
			return end + 1, nil
		}
	}
	end, st := scanString(src, i)
	if st == stringBad {
		return 0, stringError(src, end)
	}
	f.key, f.keyEnd = int32(i), int32(end)
	key := src[i:end]
	if st&stringDirty != 0 {
		f.flags = keyDirty
		f.name = int32(len(p.names))
		p.names = appendCanonical(p.names, key)
		f.nameEnd = int32(len(p.names))
		key = p.names[f.name:]
	}
	p.addName(src, f, key, firstWord(key))
	return end + 1, nil
}

// addName recognises the key of the newest field, and searches the previous ones for
// it.
func (p *Parser) addName(src []byte, f *field, key []byte, word uint64) {
	at, h := len(p.fields)-1, hashKey(key, word)
	if at <= manyFields {
		f.hash = uint32(h >> 32)
		if p.seen.add(f.hash) {
			p.compareName(src, f, key)
		}
	}
	if f.known = nameAt(key, h); f.known != 0 {
		p.note(f.known, at)
	}
}

// note notes that a field has a recognised name.
func (p *Parser) note(n name, at int) {
	if found, bit := &p.found[n/perKind], uint64(1)<<(n%perKind); *found&bit == 0 {
		*found |= bit
		p.slots[n] = int32(at)
	} else {
		p.again = true
	}
}

// compareName compares a key with those of all previous fields.
func (p *Parser) compareName(src []byte, f *field, key []byte) {
	for i := range p.fields[:len(p.fields)-1] {
		if g := &p.fields[i]; g.hash == f.hash && bytes.Equal(p.key(src, g), key) {
			p.repeated(src, f, key)
			return
		}
	}
}

// repeated notes that the key of a field came before. A record by parts, which has no source,
// is rejected.
func (p *Parser) repeated(src []byte, f *field, key []byte) {
	if src == nil {
		p.rejectDuplicate(f, key)
		return
	}
	p.repeats = append(p.repeats, int32(len(p.fields)-1))
}

// firstWord equals a little-endian load of the first eight bytes.
func firstWord(key []byte) (word uint64) {
	if len(key) >= 8 {
		return binary.LittleEndian.Uint64(key)
	}
	for i, c := range key {
		word |= uint64(c) << (8 * i)
	}
	return word
}

// key is the canonical key of a field.
func (p *Parser) key(src []byte, f *field) []byte {
	if f.flags&keyDirty != 0 {
		return p.names[f.name:f.nameEnd]
	}
	return src[f.key:f.keyEnd]
}

func (p *Parser) rejectDuplicate(f *field, key []byte) {
	const shown = 64
	if p.reject != nil {
		return
	}
	more := ""
	if len(key) > shown {
		key, more = CutText(key, shown), "..."
	}
	p.reject = &RejectError{Offset: int(f.key) - 1, Reason: fmt.Sprintf("duplicate key \"%s%s\"", key, more)}
}

// A keyFilter can tell that a key is certainly new, so that the few keys of a usual
// record are hardly ever compared.
type keyFilter [4]uint64

// add adds the hash of a key and reports whether a similar one was there.
func (s *keyFilter) add(hash uint32) bool {
	h := uint8(hash >> 24)
	word, bit := &s[h>>6], uint64(1)<<(h&63)
	had := *word&bit != 0
	*word |= bit
	return had
}

// checkMany finds duplicates among very many keys with a hash table. Its seed is
// secret, so that no choice of keys makes it slow.
func (p *Parser) checkMany() {
	size := 64
	for size < 2*len(p.fields) {
		size *= 2
	}
	if cap(p.table) < size {
		p.table = make([]int32, size)
	}
	p.table = p.table[:size]
	clear(p.table)
	p.repeats = p.repeats[:0]
search:
	for i := range p.fields {
		f := &p.fields[i]
		key := p.key(p.src, f)
		at := maphash.Bytes(p.seed, key) & uint64(size-1)
		for ; p.table[at] != 0; at = (at + 1) & uint64(size-1) {
			if bytes.Equal(p.key(p.src, &p.fields[p.table[at]-1]), key) {
				if p.src == nil {
					p.rejectDuplicate(f, key)
					return
				}
				p.repeats = append(p.repeats, int32(i))
				continue search
			}
		}
		p.table[at] = int32(i + 1)
	}
}
