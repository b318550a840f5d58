package filter

import (
	"bytes"
	"encoding/binary"
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
	tail   span                 // the end of a text
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
	clear(b.recent[:])
	clear(b.seen[:])
	b.block, b.used = 0, 0
	b.text, b.words, b.pairs, b.keys = b.text[:0], b.words[:0], b.pairs[:0], b.keys[:0]
	b.noWords, b.noIDs = false, false
}

// near is the distance below which parts are read together with the text between them.
const near = 16

// Block adds the lines of the next block. If fresh is not nil, it has parts of the lines,
// ascending, each from its start to its end. The text between two parts repeats earlier text
// of the block. So only words and ids that touch a part are looked at. A part may be empty:
// one repeat ends there, and another one begins.
func (b *Builder) Block(lines []byte, fresh [][2]int32) {
	if fresh == nil {
		b.read(lines)
	}
	for i := 0; i < len(fresh); {
		from, to := int(fresh[i][0]), int(fresh[i][1])
		for from > 0 && isToken(lines[from-1]) {
			from--
		}
		// A part in the token that ends the text so far belongs to the text too, so that no
		// token is read twice.
		for {
			for ; i < len(fresh) && int(fresh[i][0]) < to+near; i++ {
				to = max(to, int(fresh[i][1]))
			}
			if to == len(lines) || !isToken(lines[to]) {
				break
			}
			for to < len(lines) && isToken(lines[to]) {
				to++
			}
		}
		b.read(lines[from:to])
	}
	b.readEscaped(lines)
	b.block++
	clear(b.recent[:])
	clear(b.seen[:])
}

// readEscaped adds what stands behind escapes, without their letters. It takes any backslash
// for the beginning of an escape, so it may add too much.
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
			b.read(lines[1:n])
		}
		if n > 5 && lines[0] == 'u' {
			b.read(lines[5:n])
		}
	}
}

// read adds the words and ids of a text. It goes on span by span; a token that reaches
// beyond its span begins the next one.
func (b *Builder) read(text []byte) {
	for len(text) > 0 {
		s := &b.tail
		if cap(text) >= len(s) {
			s = (*span)(text[:len(s)]) // the bytes behind the text do no harm
		} else {
			clear(s[copy(s[:], text):])
		}
		end := min(len(text), spanLen)
		m := classify(s, end)
		if len(text) > spanLen {
			end = spanLen - bits.LeadingZeros64(^m.tokens)
			if end == 0 {
				end = spanLen
				for end < len(text) && isToken(text[end]) {
					end++
				}
				b.addLong(text[:end])
				text = text[end:]
				continue
			}
		}
		within := ^uint64(0) >> (-end & 63) // of 1 to 64 bytes
		m.letters &= within
		m.tokens &= within
		b.addSpan(s, &m)
		text = text[end:]
	}
}

// addSpan adds the words and ids of a span. None of its tokens reaches beyond it.
func (b *Builder) addSpan(s *span, m *marks) {
	l, t := m.letters, m.tokens
	if !b.noWords {
		for at := (l & (l >> 1) & (l >> 2)) &^ (l << 1); at != 0; at &= at - 1 {
			i := bits.TrailingZeros64(at)
			b.addWord(s, i, runOf(l, i))
		}
	}
	two := t & (t >> 1)
	for at := (two & (two >> 2) & (two >> 4)) &^ (t << 1); at != 0; at &= at - 1 {
		i := bits.TrailingZeros64(at)
		n := runOf(t, i)
		if (t&^l)>>(i&63)<<(-n&63) != 0 {
			b.addID(s[i : i+n])
		}
	}
}

// addLong adds a token that is longer than a span.
func (b *Builder) addLong(token []byte) {
	for at := 0; at < len(token); at++ {
		from := at
		for at < len(token) && isLetter(token[at]) {
			at++
		}
		switch n := at - from; {
		case n < minWord:
		case n <= maxSlot:
			var s span
			copy(s[:], token[from:at])
			b.addWord(&s, 0, n)
		default:
			b.addLongWord(token[from:at])
		}
	}
	if bytes.ContainsAny(token, digits) {
		b.addID(token)
	}
}

// addWord adds the word of n letters at a place of a span.
func (b *Builder) addWord(s *span, at, n int) {
	if n > maxSlot {
		b.addLongWord(s[at : at+n])
		return
	}
	if b.noWords {
		return
	}
	// Without a branch on the length, which cannot be predicted.
	w := letters{binary.LittleEndian.Uint64(s[at:]), binary.LittleEndian.Uint64(s[at+8:])}
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
		if slot.word = b.newWord(s[at : at+n]); slot.word == 0 {
			return
		}
		slot.letters = w
		b.used++
	}
	b.note(slot.word)
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

// addID adds a token with a digit in it.
func (b *Builder) addID(token []byte) {
	if b.noIDs || isTime(token) {
		return
	}
	b.folded = appendLower(b.folded[:0], token)
	b.parts = appendKeys(b.parts[:0], b.folded)
	for _, key := range b.parts {
		if r := &b.recent[key>>24]; *r != key {
			*r = key
			b.keys = append(b.keys, uint64(key)<<32|uint64(b.block))
		}
	}
	if len(b.keys) > maxPairs {
		b.noIDs = true
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
