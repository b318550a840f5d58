package filter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// AppendWords appends the list of words of all blocks; ok is false if there are too many.
func (b *Builder) AppendWords(dst []byte) (_ []byte, ok bool) {
	if b.noWords {
		return dst, false
	}
	ranks := make([]int32, len(b.words)) // of each word
	sorted := make([]int32, len(b.words))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	word := func(i int32) []byte { w := &b.words[i]; return b.text[w.from:][:w.len] }
	slices.SortFunc(sorted, func(i, j int32) int { return bytes.Compare(word(i), word(j)) })
	dst = binary.AppendUvarint(dst, uint64(b.block))
	dst = binary.AppendUvarint(dst, uint64(len(sorted)))
	dst = append(dst, '\n')
	for rank, i := range sorted {
		dst = append(append(dst, word(i)...), '\n')
		ranks[i] = int32(rank)
	}
	stride := (b.block + 7) / 8
	start := len(dst)
	dst = append(dst, make([]byte, stride*len(sorted))...)
	for _, p := range b.pairs {
		dst[start+int(ranks[p.word])*stride+int(p.block)/8] |= 1 << (p.block % 8)
	}
	return dst, true
}

// Words are the words of a blob's blocks.
type Words struct {
	blocks int
	list   []byte // "\n", and each word with "\n" behind it, ascending
	sets   []byte // a set of blocks for each word
}

// ParseWords parses a list that [Builder.AppendWords] made, of a blob of so many blocks.
func ParseWords(b []byte, blocks int) (*Words, error) {
	got, n := binary.Uvarint(b)
	count, m := binary.Uvarint(b[max(n, 0):])
	switch {
	case n <= 0 || m <= 0 || count > uint64(len(b)):
		return nil, errors.New("words: cut short")
	case got != uint64(blocks):
		return nil, errors.New("words: they are of another number of blocks")
	}
	b = b[n+m:]
	sets := int(count) * ((blocks + 7) / 8)
	if len(b) < sets+1 {
		return nil, errors.New("words: cut short")
	}
	w := &Words{blocks: blocks, list: b[:len(b)-sets], sets: b[len(b)-sets:]}
	if w.list[0] != '\n' || bytes.Count(w.list, []byte{'\n'}) != int(count)+1 || w.list[len(w.list)-1] != '\n' {
		return nil, errors.New("words: their number is wrong")
	}
	return w, nil
}

// Rule sets the blocks of in to false that have no word of that kind.
func (w *Words) Rule(in []bool, need Word) {
	text := need.Text
	if need.Left {
		text = "\n" + text
	}
	if need.Right {
		text += "\n"
	}
	stride := (w.blocks + 7) / 8
	have := make([]byte, stride)
	rank, counted := -1, 0
	for at := 0; ; {
		i := bytes.Index(w.list[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i
		// The newline before the word may be the first byte of the text.
		inside := at + 1
		rank += bytes.Count(w.list[counted:inside], []byte{'\n'})
		counted = inside
		for n, set := range w.sets[rank*stride:][:stride] {
			have[n] |= set
		}
		at = inside + bytes.IndexByte(w.list[inside:], '\n')
	}
	for i := range in {
		in[i] = in[i] && have[i/8]>>(i%8)&1 == 1
	}
}
