package record

import (
	"encoding/binary"
	"strconv"
)

// A key that an object has twice: the first keeps its name, the next gets ".2", or the first
// free number from there. So it is at all depths.

// names are the keys of an object. An object may have a hundred thousand, and all of them the same.
type names struct {
	at    map[string]int32 // of tried
	tried []int32          // the last number of each key: 1 for the first that has it, 0 for none yet
}

// add adds a key, unless it is there, and returns its place in tried.
func (n *names) add(key []byte) int32 {
	at, ok := n.at[string(key)]
	if !ok {
		at = int32(len(n.tried))
		n.at[string(key)], n.tried = at, append(n.tried, 0)
	}
	return at
}

// append appends the name of the next field with a key, once all keys of the object were added. Names
// of two fields are never the same: both would be of one key, and have two numbers.
func (n *names) append(dst, key []byte) []byte {
	from, tried := len(dst), &n.tried[n.at[string(key)]]
	if *tried++; *tried == 1 {
		return append(dst, key...)
	}
	for {
		dst = strconv.AppendInt(append(append(dst[:from], key...), '.'), int64(*tried), 10)
		if _, taken := n.at[string(dst[from:])]; !taken {
			return dst
		}
		*tried++
	}
}

// renameRepeats gives the repeated keys of the object scanned last other names.
func (p *Scanner) renameRepeats() {
	if len(p.repeats) == 0 {
		return
	}
	all := names{at: make(map[string]int32, len(p.Fields)-len(p.repeats))}
	for i := range p.Fields {
		all.tried[all.add(p.Key(&p.Fields[i]))] = 1
	}
	for _, at := range p.repeats {
		f := &p.Fields[at]
		from := len(p.names)
		p.names = all.append(p.names, p.Key(f))
		f.name, f.nameEnd, f.flags = int32(from), int32(len(p.names)), f.flags|keyDirty
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
	all := names{at: map[string]int32{}}
	for key := range Fields(object) {
		all.add(key)
	}
	first := true
	dst = append(dst, '{')
	for key, value := range Fields(object) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = all.append(append(dst, '"'), key)
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
