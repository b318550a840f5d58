package record

import (
	"encoding/binary"
	"strconv"
)

// A key that an object has twice: the first keeps its name, the next gets ".2", or the first
// free number from there. So it is at all depths.

// renameRepeats gives the repeated keys of the object scanned last other names.
func (p *Parser) renameRepeats() {
	if len(p.repeats) == 0 {
		return
	}
	taken := make(map[string]int, len(p.fields))
	for i := range p.fields {
		taken[string(p.key(p.src, &p.fields[i]))] = 1
	}
	for _, at := range p.repeats {
		f := &p.fields[at]
		from := len(p.names)
		p.names = append(p.names, freeName(taken, p.key(p.src, f))...)
		f.name, f.nameEnd, f.flags = int32(from), int32(len(p.names)), f.flags|keyDirty
	}
}

// freeName returns the name for a repeated key. taken has all keys, and for each the last
// number that was tried.
func freeName(taken map[string]int, key []byte) string {
	for n := taken[string(key)] + 1; ; n++ {
		name := string(key) + "." + strconv.Itoa(n)
		if taken[name] == 0 {
			taken[string(key)], taken[name] = n, 1
			return name
		}
	}
}

// appendUnique appends a value of a canonical line, with other names for the repeated keys in
// it.
func appendUnique(dst, value []byte) []byte {
	switch {
	case len(value) == 0:
		return dst
	case value[0] == '[':
		dst = append(dst, '[')
		for w, comma := Walk(value), false; ; {
			element, ok := w.Element()
			if !ok {
				return append(dst, ']')
			}
			if comma {
				dst = append(dst, ',')
			}
			dst, comma = appendUnique(dst, element), true
		}
	case value[0] == '{':
		return appendUniqueObject(dst, value)
	}
	return append(dst, value...)
}

func appendUniqueObject(dst, object []byte) []byte {
	taken := map[string]int{}
	for key := range Fields(object) {
		taken[string(key)] = 1
	}
	seen := make(map[string]bool, len(taken))
	dst = append(dst, '{')
	for key, value := range Fields(object) {
		if len(seen) > 0 {
			dst = append(dst, ',')
		}
		name := string(key)
		if seen[name] {
			name = freeName(taken, key)
		}
		seen[name] = true
		dst = append(dst, '"')
		dst = append(dst, name...)
		dst = appendUnique(append(dst, '"', ':'), value)
	}
	return append(dst, '}')
}

// nestedKeys finds keys that come twice in an object within a value. It may find one where
// there is none, and misses none.
type nestedKeys struct {
	hashes [mostNested]uint32  // of the keys of the open objects, the outermost first
	begins [MaxDepth + 1]int32 // where those of each open object begin
	used   int32               // of hashes
	depth  int32               // of begins; a value that is deeper is rejected
	maybe  bool                // a key came twice
}

// mostNested is how many keys the open objects may have together. A value with more is taken
// for one with a repeated key.
const mostNested = 128

// begin begins a value.
func (k *nestedKeys) begin() { k.used, k.depth, k.maybe = 0, 0, false }

// open opens an object.
func (k *nestedKeys) open() {
	if k.depth++; k.depth <= MaxDepth {
		k.begins[k.depth] = k.used
	}
}

// close closes the innermost object.
func (k *nestedKeys) close() {
	if k.depth <= MaxDepth {
		k.used = k.begins[k.depth]
	}
	k.depth--
}

// add adds the key src[i:end] of the innermost object. odd says that it has escapes, or bytes
// that are no UTF-8.
func (k *nestedKeys) add(src []byte, i, end int, odd bool) {
	if odd || k.used == mostNested || k.depth > MaxDepth {
		k.maybe = true
		return
	}
	hash := keyHash(src, i, end)
	for _, h := range k.hashes[k.begins[k.depth]:k.used] {
		if h == hash {
			k.maybe = true
			return
		}
	}
	k.hashes[k.used] = hash
	k.used++
}

// keyHash hashes the key src[i:end] by its length, its first bytes and its last ones.
func keyHash(src []byte, i, end int) uint32 {
	var word uint64
	switch n := end - i; {
	case n >= 8:
		word = binary.LittleEndian.Uint64(src[i:]) ^ binary.LittleEndian.Uint64(src[end-8:])*3 ^ uint64(n)
	case i+8 <= len(src):
		word = binary.LittleEndian.Uint64(src[i:]) & (1<<(8*n) - 1)
	default:
		word = firstWord(src[i:end])
	}
	return uint32(word * 0x9e3779b97f4a7c15 >> 32)
}
