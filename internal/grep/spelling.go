package grep

import (
	"bytes"

	"blobtail/record"
)

// spelt are the spellings of a literal in stored lines. All of them have one piece of the
// literal, so that one search finds them all.
type spelt struct {
	piece     []byte // nil: they have none in common
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
// the text. It looks for the piece in a way.
func (s *spelt) find(text []byte, pos int, by way) int {
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
		at := by.index(text[from:], s.piece)
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

// A way is how a piece is looked for in a text: by grams, or else by its byte at anchor, or below 0
// by [bytes.Index].
type way struct {
	grams  *grams
	anchor int
}

// index is [bytes.Index] in a way. In lines most first bytes are frequent, and to look for a rare one
// first is several times as quick.
func (w way) index(text, piece []byte) int {
	switch {
	case w.grams != nil:
		return w.grams.index(text)
	case w.anchor < 0:
		return bytes.Index(text, piece)
	}
	for at := w.anchor; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], piece[w.anchor])
		if i < 0 {
			break
		}
		at += i
		if bytes.HasPrefix(text[at-w.anchor:], piece) {
			return at - w.anchor
		}
	}
	return -1
}

const (
	sampled = 4 << 10 // bytes of a block by which a way is chosen
	rare    = sampled / 16
	// Costs, in looks at one gram: of a window that has a gram of the piece, of a byte like the
	// anchor, and of the rest of such a search in a sample.
	metCost, anchorCost, restCost = 60, 20, 130
)

// way chooses the quickest way for a block, by a sample of it and the number of each byte in that: by
// the rarest byte of the piece, or by grams if that byte is not rare enough.
func (s *spelt) way(sample []byte, count *[256]int) way {
	best, least := -1, rare
	for i, c := range s.piece {
		if n := count[c]; n < least {
			best, least = i, n
		}
	}
	most := restCost + least*anchorCost
	if g := gramsOf(s.piece, len(sample), most); g != nil && len(sample)/g.step+g.met(sample)*metCost < most {
		return way{grams: g}
	}
	return way{anchor: best}
}

// A Finder finds the spellings of a pattern in a block.
type Finder struct {
	block    []byte
	literals []spelt
	ways     []way // of the literals
	next     []int // place of each literal at or behind the last question
}

// Finder searches a block, folded if the pattern folds.
func (p *Pattern) Finder(block []byte) *Finder {
	f := &Finder{block: block, literals: p.literals, ways: make([]way, len(p.literals)), next: make([]int, len(p.literals))}
	var count [256]int
	sample := block[:min(len(block), sampled)]
	for _, c := range sample {
		count[c]++
	}
	for i := range f.next {
		f.ways[i], f.next[i] = p.literals[i].way(sample, &count), -1
	}
	return f
}

// From returns the first place of a spelling at pos or behind, or the length of the block.
// Questions come in ascending order.
func (f *Finder) From(pos int) int {
	first := len(f.block)
	for i := range f.literals {
		if f.next[i] < pos {
			f.next[i] = f.literals[i].find(f.block, pos, f.ways[i])
		}
		first = min(first, f.next[i])
	}
	return first
}
