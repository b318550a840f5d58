package search

import (
	"bytes"
	"slices"

	"blobtail/record"
)

// spelt are the spellings of a literal in stored lines. All of them have one piece of the
// literal, so that one search finds them all.
type spelt struct {
	piece     []byte // nil: they have none in common
	grams     *grams // of the piece; nil: it is too short
	spellings []spelling
}

// A spelling is a literal as a stored line may have it, with the place of the piece in it.
type spelling struct {
	text []byte
	at   int
}

// spell lists the forms that a text may have in stored lines.
func spell(text []byte) spelt {
	from, to := longestPiece(text)
	var s spelt
	add := func(text []byte, at int) {
		s.spellings = append(s.spellings, spelling{text, at})
	}
	add(text, from)
	escaped := func(text []byte) []byte { return record.AppendEscaped(nil, text) }
	if e := escaped(text); !bytes.Equal(e, text) {
		add(e, len(escaped(text[:from])))
	}
	for i, c := range text {
		if c != '=' {
			continue
		}
		key, value := append(escaped(text[:i]), `":`...), text[i+1:]
		bare, quoted := len(escaped(text[:min(from, i)])), 0
		if from > i {
			bare, quoted = len(key)+from-i-1, 1
		}
		add(bytes.Join([][]byte{key, value}, nil), bare)
		if len(value) > 0 {
			add(bytes.Join([][]byte{key, value}, []byte{'"'}), bare+quoted)
		}
	}
	switch {
	case len(s.spellings) == 1:
		s.piece, s.spellings[0].at = text, 0
	case from < to:
		s.piece = text[from:to]
	}
	s.grams = gramsOf(s.piece)
	return s
}

// longestPiece returns the longest part of a text that all its spellings have as it is.
func longestPiece(text []byte) (from, to int) {
	for at := 0; at < len(text); at++ {
		end := at
		for end < len(text) && text[end] != '=' && len(record.AppendEscaped(nil, text[end:end+1])) == 1 && text[end] < 0x7f {
			end++
		}
		if end-at > to-from {
			from, to = at, end
		}
		at = end
	}
	return from, to
}

// find returns the first place of a spelling in a text, at pos or behind, or the length of
// the text. It looks for the byte of the piece at anchor first; below 0 for none of them.
func (s *spelt) find(text []byte, pos, anchor int) int {
	if s.piece == nil {
		first := len(text)
		for _, one := range s.spellings {
			if at := bytes.Index(text[pos:first], one.text); at >= 0 {
				first = pos + at
			}
		}
		return first
	}
	for from := pos; ; {
		at := s.index(text[from:], anchor)
		if at < 0 {
			return len(text)
		}
		at += from
		for _, one := range s.spellings {
			if start := at - one.at; start >= pos && bytes.HasPrefix(text[start:], one.text) {
				return start
			}
		}
		from = at + 1
	}
}

// index is [bytes.Index] of the piece, which looks for the first byte of a piece. In lines most first
// bytes are frequent, and a rare one is several times as quick. The grams of a long piece are quicker.
func (s *spelt) index(text []byte, anchor int) int {
	piece := s.piece
	switch {
	case s.grams != nil:
		return s.grams.index(text, piece)
	case anchor < 0:
		return bytes.Index(text, piece)
	}
	for at := anchor; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], piece[anchor])
		if i < 0 {
			break
		}
		at += i
		if bytes.HasPrefix(text[at-anchor:], piece) {
			return at - anchor
		}
	}
	return -1
}

const (
	sampled = 4 << 10 // bytes of a block that are counted for frequencies
	rare    = sampled / 16
)

// anchor chooses the rarest byte of the piece by a sample of the text; -1 if none is rare.
func (s *spelt) anchor(count *[256]int) int {
	best, least := -1, rare
	for i, c := range s.piece {
		if n := count[c]; n < least {
			best, least = i, n
		}
	}
	return best
}

// A Finder finds the spellings of a pattern in a block.
type Finder struct {
	block    []byte
	literals []spelt
	anchors  []int // of the literals
	next     []int // place of each literal at or behind the last question
}

// Finder searches a block, folded if the pattern folds.
func (p *Pattern) Finder(block []byte) *Finder {
	f := &Finder{block: block, literals: p.literals, anchors: make([]int, len(p.literals)), next: make([]int, len(p.literals))}
	var count [256]int
	if slices.ContainsFunc(p.literals, func(s spelt) bool { return s.grams == nil }) {
		for _, c := range block[:min(len(block), sampled)] {
			count[c]++
		}
	}
	for i := range f.next {
		f.anchors[i], f.next[i] = p.literals[i].anchor(&count), -1
	}
	return f
}

// From returns the first place of a spelling at pos or behind, or the length of the block.
// Questions come in ascending order.
func (f *Finder) From(pos int) int {
	first := len(f.block)
	for i := range f.literals {
		if f.next[i] < pos {
			f.next[i] = f.literals[i].find(f.block, pos, f.anchors[i])
		}
		first = min(first, f.next[i])
	}
	return first
}
