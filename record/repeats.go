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
		for rest := value[1:]; len(rest) > 0 && rest[0] != ']'; {
			n := ValueLen(rest)
			dst = appendUnique(dst, rest[:n])
			if rest = rest[n:]; rest[0] == ',' {
				dst, rest = append(dst, ','), rest[1:]
			}
		}
		return append(dst, ']')
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
	slots   [nestedSlots]nestedKey
	round   uint32 // of the value: the slots of earlier ones are free
	objects uint32 // in this value so far
	used    int
	open    []uint32 // the objects that are open, 0 for an array
	maybe   bool     // a key came twice
}

type nestedKey struct{ round, hash uint32 }

const nestedSlots = 1 << 9

// begin begins a value.
func (k *nestedKeys) begin() {
	if k.round++; k.round == 0 {
		k.slots, k.round = [nestedSlots]nestedKey{}, 1
	}
	k.objects, k.used, k.open, k.maybe = 0, 0, k.open[:0], false
}

// push opens an object or an array.
func (k *nestedKeys) push(bracket byte) {
	id := uint32(0)
	if bracket == '{' {
		k.objects++
		id = k.objects
	}
	k.open = append(k.open, id)
}

// pop closes the innermost.
func (k *nestedKeys) pop() { k.open = k.open[:len(k.open)-1] }

// add adds the key src[i:end] of the innermost object. odd says that it has escapes, or bytes
// that are no UTF-8.
func (k *nestedKeys) add(src []byte, i, end int, odd bool) {
	if odd || k.used > nestedSlots*3/4 {
		k.maybe = true
		return
	}
	var word uint64
	switch n := end - i; {
	case n >= 8:
		word = binary.LittleEndian.Uint64(src[i:]) ^ binary.LittleEndian.Uint64(src[end-8:])*3 ^ uint64(n)
	case i+8 <= len(src):
		word = binary.LittleEndian.Uint64(src[i:]) & (1<<(8*n) - 1)
	default:
		word = firstWord(src[i:end])
	}
	word = (word ^ uint64(k.open[len(k.open)-1])<<40) * 0x9e3779b97f4a7c15
	hash := uint32(word >> 32)
	for at := hash % nestedSlots; ; at = (at + 1) % nestedSlots {
		s := &k.slots[at]
		if s.round != k.round {
			*s = nestedKey{k.round, hash}
			k.used++
			return
		}
		if s.hash == hash {
			k.maybe = true
			return
		}
	}
}
