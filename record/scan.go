package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
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

// A Tag is the number that the caller of a [Scanner] gives to a key that it knows; 0 is none.
type Tag uint16

// Tags are of some kinds, each with so many numbers.
const (
	TagKinds    = 7
	TagsPerKind = 64
)

// Tags are those that the keys of a record have: by kind, bit n is of the tag n of it.
type Tags [TagKinds]uint64

// Has reports whether a key has a tag.
func (t *Tags) Has(n Tag) bool { return t[n/TagsPerKind]>>(n%TagsPerKind)&1 != 0 }

// Add adds a tag.
func (t *Tags) Add(n Tag) { t[n/TagsPerKind] |= 1 << (n % TagsPerKind) }

// A Scanner checks a JSON object and remembers where its fields are, and has the memory of a record
// by parts. It keeps that from one record to the next; only one goroutine may use it at a time.
type Scanner struct {
	Src    []byte  // the object scanned last
	Fields []Field // of it; a caller may append further ones with Add
	Found  Tags    // of the fields
	Slots  [TagKinds * TagsPerKind]int32
	Again  bool // a tag came twice: that of Slots is the first

	known   func(key []byte, hash uint64) Tag
	names   []byte // canonical keys of the fields with other spellings of their keys
	stack   []byte // open brackets of a nested value
	nested  nestedKeys
	repeats []int32 // the fields with keys that came before

	reject *RejectError // the first error that is no syntax error
	seen   keyFilter
	shape  shape
	table  []int32 // keys of a record with very many, by hash
	seed   maphash.Seed

	scratch  []byte
	repaired []byte // the object scanned last, if [repair] has made it valid
	value    []byte
}

// NewScanner returns a Scanner that gives tags to keys. known is asked for a key in its canonical form,
// and for its [Hash].
func NewScanner(known func(key []byte, hash uint64) Tag) *Scanner {
	return &Scanner{seed: maphash.MakeSeed(), known: known}
}

// A Field is one member of the object, as offsets into the source. It is plain if
// everything from its key's first quote to the value's last byte is already in
// canonical form.
type Field struct {
	Key, KeyEnd   int32 // inside the quotes
	Val, ValEnd   int32
	name, nameEnd int32  // the canonical key in names, when keyDirty
	hash          uint32 // of the key
	flags         uint8
	Tag           Tag
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
// fields. It returns the object's length; src must not change while they are used. Bytes that are no valid UTF-8 are accepted, as in
// encoding/json, and so are the words NaN, Infinity and -Infinity, as texts, and control
// characters in strings but line feeds and carriage returns, of an object in one line.
//
// Any error is a *[RejectError]. For too deep nesting n is still the object's length, so that
// the rest of the source can be read; otherwise it is 0. Of two fields with one key the second
// gets ".2" appended to it, or the first number from there that is free; so it is in the objects
// within.
func (p *Scanner) Scan(src []byte) (n int, err error) {
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
		p.Fields, p.Found = p.Fields[:0], Tags{}
		if long && bad.Offset == len(src) {
			bad = &RejectError{Offset: MaxRecord, Reason: "longer than 1 MiB"}
		}
		return 0, bad
	}
	p.Src = src[:n]
	if len(p.Fields) > manyFields && p.reject == nil {
		p.checkMany()
	}
	if p.reject != nil {
		p.Fields, p.Found = p.Fields[:0], Tags{}
		p.reject.Offset = min(p.reject.Offset, read)
		return read, p.reject
	}
	p.renameRepeats()
	p.learnShape()
	return read, nil
}

// ScanLine is [Scanner.Scan] for a canonical line, which may be longer than [MaxRecord]. ok is false for
// any other text.
func (p *Scanner) ScanLine(line []byte) (ok bool) {
	p.reset()
	n, bad := p.scanObject(line)
	if bad != nil || p.reject != nil {
		p.Fields = p.Fields[:0]
		return false
	}
	p.Src = line[:n]
	p.learnShape()
	return true
}

// reset forgets the last record, and releases the memory of an unusual one.
func (p *Scanner) reset() {
	if cap(p.Fields) > keepFields {
		p.Fields, p.table, p.stack, p.repeats = nil, nil, nil, nil
	}
	if cap(p.names)+cap(p.scratch)+cap(p.value) > keepScratch {
		p.names, p.scratch, p.value = nil, nil, nil
	}
	if cap(p.repaired) > keepScratch {
		p.repaired = nil
	}
	p.Src, p.Fields, p.names, p.repeats = nil, p.Fields[:0], p.names[:0], p.repeats[:0]
	p.Found, p.Again, p.reject = Tags{}, false, nil
	p.seen = keyFilter{}
	p.shape.on = true
}

// scanObject scans the top level.
func (p *Scanner) scanObject(src []byte) (int, *RejectError) {
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
func (p *Scanner) scanField(src []byte, i int) (int, *RejectError) {
	if p.reject != nil {
		p.Fields = p.Fields[:0] // nobody will ask for them: a hostile object has many
	}
	p.Fields = append(p.Fields, Field{})
	f := &p.Fields[len(p.Fields)-1]
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
	f.Val = int32(i)
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
	f.ValEnd = int32(i)
	return i, nil
}

// scanName scans a key of the record from its first byte, and returns the offset
// after its closing quote. Nearly all keys are short and plain, so their first eight
// bytes suffice to find their end and to recognise them.
func (p *Scanner) scanName(src []byte, i int, f *Field) (int, *RejectError) {
	if i+8 <= len(src) {
		word := binary.LittleEndian.Uint64(src[i:])
		n := bits.TrailingZeros64(special(word)) &^ 7
		if end := i + n>>3; n < 64 && src[end] == '"' {
			f.Key, f.KeyEnd = int32(i), int32(end)
			p.addName(src, f, src[i:end], word&(1<<n-1))
			return end + 1, nil
		}
	}
	end, st := scanString(src, i)
	if st == stringBad {
		return 0, stringError(src, end)
	}
	f.Key, f.KeyEnd = int32(i), int32(end)
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
func (p *Scanner) addName(src []byte, f *Field, key []byte, word uint64) {
	at, h := len(p.Fields)-1, hashKey(key, word)
	if at <= manyFields {
		f.hash = uint32(h >> 32)
		if p.seen.add(f.hash) {
			p.compareName(src, f, key)
		}
	}
	if p.known == nil {
		return
	}
	if f.Tag = p.known(key, h); f.Tag != 0 {
		p.note(f.Tag, at)
	}
}

// note notes that a field has a tag.
func (p *Scanner) note(n Tag, at int) {
	if found, bit := &p.Found[n/TagsPerKind], uint64(1)<<(n%TagsPerKind); *found&bit == 0 {
		*found |= bit
		p.Slots[n] = int32(at)
	} else {
		p.Again = true
	}
}

// compareName compares a key with those of all previous fields.
func (p *Scanner) compareName(src []byte, f *Field, key []byte) {
	for i := range p.Fields[:len(p.Fields)-1] {
		if g := &p.Fields[i]; g.hash == f.hash && bytes.Equal(p.key(src, g), key) {
			p.repeated(src, f, key)
			return
		}
	}
}

// repeated notes that the key of a field came before. A record by parts, which has no source,
// is rejected.
func (p *Scanner) repeated(src []byte, f *Field, key []byte) {
	if src == nil {
		p.rejectDuplicate(f, key)
		return
	}
	p.repeats = append(p.repeats, int32(len(p.Fields)-1))
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

// key is [Scanner.Key] while an object is scanned.
func (p *Scanner) key(src []byte, f *Field) []byte {
	if f.flags&keyDirty != 0 {
		return p.names[f.name:f.nameEnd]
	}
	return src[f.Key:f.KeyEnd]
}

func (p *Scanner) rejectDuplicate(f *Field, key []byte) {
	const shown = 64
	if p.reject != nil {
		return
	}
	more := ""
	if len(key) > shown {
		key, more = CutText(key, shown), "..."
	}
	p.reject = &RejectError{Offset: int(f.Key) - 1, Reason: fmt.Sprintf("duplicate key \"%s%s\"", key, more)}
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
func (p *Scanner) checkMany() {
	size := 64
	for size < 2*len(p.Fields) {
		size *= 2
	}
	if cap(p.table) < size {
		p.table = make([]int32, size)
	}
	p.table = p.table[:size]
	clear(p.table)
	p.repeats = p.repeats[:0]
search:
	for i := range p.Fields {
		f := &p.Fields[i]
		key := p.Key(f)
		at := maphash.Bytes(p.seed, key) & uint64(size-1)
		for ; p.table[at] != 0; at = (at + 1) & uint64(size-1) {
			if bytes.Equal(p.Key(&p.Fields[p.table[at]-1]), key) {
				if p.Src == nil {
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
