package filter

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Limits of a Builder. Above them a blob has no words or no ids, and is read instead.
const (
	maxWords = 1 << 20 // bytes of different words
	maxPairs = 4 << 20 // pairs of a word, or of a key, and a block

	keptSlots = 1 << 16 // of a table that is used again
)

// A Builder collects the words and ids of the blocks of a blob. It keeps its memory for the
// next blob. Only one goroutine may use it.
//
// It takes 16 bytes for each key of a block, at most 64 MiB.
type Builder struct {
	block int

	table []slot // open addressing; a power of two
	used  int
	long  map[string]int32 // words that a slot has no room for
	text  []byte           // all different words, one after another
	words []wordAt
	pairs []pair // of words

	keys   []uint64 // a key of an id in the high half, its block in the low one
	spare  []uint64
	recent [1 << 8]uint32  // keys of this block, to leave out most repeats
	seen   [1 << 8]letters // words of this block

	noWords, noIDs bool // there are too many

	masks  [maxSlot + 1]letters // of words by their length
	folded []byte               // an id in lower case
	parts  []uint32
	coded  []byte // buckets
}

// maxSlot is the length of the longest word that a slot has room for.
const maxSlot = 16

// letters are a word of up to 16, with zeros behind them.
type letters struct{ first, rest uint64 }

func (w letters) hash() uint64 {
	h := (w.first ^ w.rest*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	return h ^ h>>32
}

type slot struct {
	letters
	word int32 // number of the word, from 1; 0: the slot is free
}

type wordAt struct {
	from, len int32 // in Builder.text
	block     int32 // the last one that has it
}

type pair struct{ word, block int32 }

// NewBuilder returns a Builder that is ready for its first blob.
func NewBuilder() *Builder {
	b := &Builder{long: make(map[string]int32)}
	for n := range b.masks {
		m := &b.masks[n]
		m.first = 1<<(8*min(n, 8)) - 1
		m.rest = 1<<(8*max(n-8, 0)) - 1
	}
	return b
}

// Reset forgets all texts.
func (b *Builder) Reset() {
	if len(b.table) > keptSlots {
		b.table = nil // to clear it costs more than to fill another one
	}
	clear(b.table)
	clear(b.long)
	b.forget()
	clear(b.seen[:])
	b.block, b.used = 0, 0
	b.text, b.words, b.pairs, b.keys = b.text[:0], b.words[:0], b.pairs[:0], b.keys[:0]
	b.noWords, b.noIDs = false, false
}

// Block adds the lines of the next block. If fresh is not nil, it has a bit for each byte of the
// lines, from the lowest on, and one for the byte behind them. Bits are set for the parts that
// do not repeat earlier text of the block, and for the bytes at both ends of a repeat and of
// its neighbours. So only words and ids with such a byte are looked at.
func (b *Builder) Block(lines []byte, fresh []uint64) {
	b.scan(lines, fresh)
	b.readEscaped(lines)
	b.block++
	b.forget()
	clear(b.seen[:])
}

// scan adds the words and ids that have fresh bytes.
//
// It adds the fresh bytes of a class to all bytes of the class, as binary numbers. The carry
// of such a sum goes on from a fresh byte to the end of its run, also into the next span. So
// the sum has a one right behind each run with a fresh byte, where the class has none.
func (b *Builder) scan(lines []byte, fresh []uint64) {
	var was marks
	var letterCarry, tokenCarry, digitCarry uint64
	for at := 0; at <= len(lines); at += spanLen {
		var m marks
		if rest := lines[at:]; len(rest) >= spanLen {
			m = classify((*span)(rest))
		} else {
			var s span
			copy(s[:], rest)
			m = classify(&s)
		}
		l, t := m.letters, m.tokens
		touched := uint64(math.MaxUint64)
		if fresh != nil {
			touched = fresh[at/spanLen]
		}
		var letters, tokens, digits uint64
		letters, letterCarry = bits.Add64(l, l&touched, letterCarry)
		tokens, tokenCarry = bits.Add64(t, t&touched, tokenCarry)
		digits, digitCarry = bits.Add64(t, t&^l, digitCarry)
		three := (l<<2 | was.letters>>62) & (l<<3 | was.letters>>61)
		for ends := letters &^ l & three; ends != 0; ends &= ends - 1 {
			i := bits.TrailingZeros64(ends)
			b.addWord(lines, at+i, runBefore(was.letters, l, i))
		}
		two := t & (t<<1 | was.tokens>>63)
		wasTwo := was.tokens & (was.tokens << 1)
		six := (two<<1 | wasTwo>>63) & (two<<3 | wasTwo>>61) & (two<<5 | wasTwo>>59)
		for ends := tokens & digits &^ t & six; ends != 0; ends &= ends - 1 {
			i := bits.TrailingZeros64(ends)
			b.addIDBefore(lines, at+i, runBefore(was.tokens, t, i))
		}
		was = m
	}
}

// runBefore is the length of the run of ones before bit i of now, up to 64. Was has the bits
// before those of now.
func runBefore(was, now uint64, i int) int {
	return bits.LeadingZeros64(^(now<<1<<(63-i&63) | was>>(i&63)))
}

// readEscaped adds the words behind escapes, without the letters of the escapes. It takes any
// backslash for the beginning of an escape, so it may add too much.
func (b *Builder) readEscaped(lines []byte) {
	for {
		at := bytes.IndexByte(lines, '\\')
		if at < 0 {
			return
		}
		lines = lines[at+1:]
		n := 0
		for n < len(lines) && isToken(lines[n]) {
			n++
		}
		if n > 1 {
			b.addToken(lines[1:n])
		}
		if n > 5 && lines[0] == 'u' {
			b.addToken(lines[5:n])
		}
	}
}

// addToken adds the words and the id of a token.
func (b *Builder) addToken(token []byte) {
	n := 0
	for i := 0; i <= len(token); i++ {
		if i < len(token) && isLetter(token[i]) {
			n++
			continue
		}
		if n >= minWord {
			b.addWord(token, i, n)
		}
		n = 0
	}
	if len(token) >= minID && bytes.ContainsAny(token, digits) {
		b.addID(token)
	}
}

// addWord adds the word of n letters, or more if n is 64, before a place.
func (b *Builder) addWord(text []byte, end, n int) {
	if b.noWords {
		return
	}
	if n > maxSlot {
		for n < end && isLetter(text[end-n-1]) {
			n++
		}
		b.addLongWord(text[end-n : end])
		return
	}
	// Without a branch on the length, which cannot be predicted.
	w := lettersAt(text, end-n)
	m := &b.masks[n]
	w.first = (w.first | lowerCase) & m.first
	w.rest = (w.rest | lowerCase) & m.rest
	h := w.hash()
	if seen := &b.seen[h>>56]; *seen == w || !beyondF(w.first) && !beyondF(w.rest) {
		return
	} else {
		*seen = w
	}
	if 2*b.used >= len(b.table) {
		b.grow()
	}
	slot := b.find(w, h)
	if slot.word == 0 {
		if slot.word = b.newWord(text[end-n : end]); slot.word == 0 {
			return
		}
		slot.letters = w
		b.used++
	}
	b.note(slot.word)
}

// lettersAt loads the 16 bytes at a place, or fewer at the end of the text.
func lettersAt(text []byte, at int) letters {
	p := text[at:]
	if len(p) < maxSlot {
		var s [maxSlot]byte
		copy(s[:], p)
		p = s[:]
	}
	return letters{binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])}
}

// addLongWord adds a word that has no slot.
func (b *Builder) addLongWord(word []byte) {
	if b.noWords || !isWord(word) {
		return
	}
	b.folded = appendLower(b.folded[:0], word)
	n, ok := b.long[string(b.folded)]
	if !ok {
		n = b.newWord(b.folded)
		b.long[string(b.folded)] = n
	}
	b.note(n)
}

// find returns the slot of a word, or a free one for it.
func (b *Builder) find(w letters, h uint64) *slot {
	for i := h; ; i++ {
		s := &b.table[i&uint64(len(b.table)-1)]
		if s.word == 0 || s.letters == w {
			return s
		}
	}
}

func (b *Builder) grow() {
	old := b.table
	b.table = make([]slot, max(1<<10, 2*len(old)))
	for _, s := range old {
		if s.word != 0 {
			*b.find(s.letters, s.hash()) = s
		}
	}
}

// newWord returns the number of a word that is new.
func (b *Builder) newWord(word []byte) int32 {
	if len(b.text)+len(word) > maxWords {
		b.noWords = true
	}
	if b.noWords {
		return 0
	}
	b.words = append(b.words, wordAt{from: int32(len(b.text)), len: int32(len(word)), block: -1})
	b.text = appendLower(b.text, word)
	return int32(len(b.words))
}

// note notes that the current block has a word.
func (b *Builder) note(word int32) {
	if word == 0 {
		return
	}
	w := &b.words[word-1]
	if w.block == int32(b.block) {
		return
	}
	w.block = int32(b.block)
	if len(b.pairs) == maxPairs {
		b.noWords = true
		return
	}
	b.pairs = append(b.pairs, pair{word - 1, int32(b.block)})
}

// addIDBefore adds the id of n letters and digits, or more if n is 64, before a place.
func (b *Builder) addIDBefore(text []byte, end, n int) {
	if n == spanLen {
		for n < end && isToken(text[end-n-1]) {
			n++
		}
	}
	b.addID(text[end-n : end])
}

// addID adds a token with a digit in it.
func (b *Builder) addID(token []byte) {
	if b.noIDs || isTime(token) {
		return
	}
	if len(token) < longID {
		b.addKey(hash(token))
	} else {
		b.folded = appendLower(b.folded[:0], token)
		b.parts = appendKeys(b.parts[:0], b.folded)
		for _, key := range b.parts {
			b.addKey(key)
		}
	}
	if len(b.keys) > maxPairs {
		b.noIDs = true
	}
}

// forget makes all slots of recent empty.
func (b *Builder) forget() {
	clear(b.recent[:])
	b.recent[0] = 1 << 24 // no key of the first slot, which has the key 0
}

// addKey adds a key of the current block.
func (b *Builder) addKey(key uint32) {
	if r := &b.recent[key>>24]; *r != key {
		*r = key
		b.keys = append(b.keys, uint64(key)<<32|uint64(b.block))
	}
}

// appendLower appends a token in lower case by [lowerCase].
func appendLower(dst, token []byte) []byte {
	n := len(dst)
	dst = append(dst, token...)
	b := dst[n:]
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)|lowerCase)
	}
	for i := range b {
		b[i] |= 0x20
	}
	return dst
}

// sortKeys sorts the keys, and of each key its blocks, and leaves out repeats.
func (b *Builder) sortKeys() {
	b.spare = slices.Grow(b.spare[:0], len(b.keys))[:len(b.keys)]
	from, to := b.keys, b.spare
	// The blocks are in order already, and each pass keeps the order of equal digits. Three
	// passes of 11 bits are quicker than four of 8, and end in the other slice.
	const digit = 11
	for shift := 32; shift < 64; shift += digit {
		var at [1<<digit + 1]int32
		for _, k := range from {
			at[k>>shift%(1<<digit)+1]++
		}
		for i := range 1 << digit {
			at[i+1] += at[i]
		}
		for _, k := range from {
			i := k >> shift % (1 << digit)
			to[at[i]] = k
			at[i]++
		}
		from, to = to, from
	}
	b.keys, b.spare = from, to
	b.keys = slices.Compact(b.keys)
}
