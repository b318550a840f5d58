package record

import "encoding/binary"

// A shape is the keys of an earlier record, in order. Most records of a request have
// the same keys as the previous one. Then a comparison finds the end of each key,
// recognises it, and shows that none is repeated.
type shape struct {
	keys   []shapeKey
	text   []byte // the keys with their last quotes and colons
	on     bool   // the record has followed the shape so far
	misses int    // records in a row that did not
}

// A shapeKey is `key":`, without its first quote.
type shapeKey struct {
	word, mask uint64 // its first eight bytes
	at, n      int32  // all of it, in text
	hash       uint32
	tag        Tag
}

// maxMisses is how many records in a row may leave the shape before theirs replaces
// it: two kinds of records that alternate should not cost a new shape each time.
const maxMisses = 4

// follow copies the newest field's key from the shape, when the source has the same
// key at i, and returns the offset after the colon; otherwise 0.
func (p *Scanner) follow(src []byte, i int, f *Field) int {
	if !p.shape.on {
		return 0
	}
	at := len(p.Fields) - 1
	if at < len(p.shape.keys) {
		k := &p.shape.keys[at]
		end := i + int(k.n)
		if end <= len(src) && i+8 <= len(src) &&
			(binary.LittleEndian.Uint64(src[i:])^k.word)&k.mask == 0 &&
			(k.n <= 8 || string(src[i+8:end]) == string(p.shape.text[k.at+8:k.at+k.n])) {
			f.Key, f.KeyEnd = int32(i), int32(end-2)
			f.hash = k.hash
			if f.Tag = k.tag; k.tag != 0 {
				p.note(k.tag, at)
			}
			return end
		}
	}
	p.leaveShape(at)
	return 0
}

// leaveShape switches to scanning each key, after some that followed the shape.
func (p *Scanner) leaveShape(followed int) {
	p.shape.on = false
	for i := range p.Fields[:followed] {
		p.seen.add(p.Fields[i].hash)
	}
}

// learnShape is called for each accepted record.
func (p *Scanner) learnShape() {
	s := &p.shape
	if s.on && len(s.keys) > 0 {
		s.misses = 0
		return
	}
	if s.misses++; s.misses < maxMisses && len(s.keys) > 0 || len(p.Fields) > manyFields {
		return
	}
	s.misses, s.keys, s.text = 0, s.keys[:0], s.text[:0]
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.flags&keyDirty != 0 || p.Src[f.KeyEnd+1] != ':' || f.KeyEnd-f.Key > maxShapeKey {
			break
		}
		k := shapeKey{at: int32(len(s.text)), hash: f.hash, tag: f.Tag, mask: 1<<64 - 1}
		s.text = append(append(s.text, p.Src[f.Key:f.KeyEnd]...), '"', ':')
		k.n = int32(len(s.text)) - k.at
		k.word = firstWord(s.text[k.at:])
		if k.n < 8 {
			k.mask = 1<<(8*k.n) - 1
		}
		s.keys = append(s.keys, k)
	}
}

// maxShapeKey is the longest key in a shape: it limits the memory of a parser.
const maxShapeKey = 64
