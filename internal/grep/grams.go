package grep

import (
	"bytes"
	"encoding/binary"
)

const (
	gram     = 4   // bytes
	gramBits = 12  // of a hash of a gram
	window   = 128 // bytes of a text, of which some grams are looked up at once
)

// grams finds a piece in a text by looks at a few rows of four bytes, its grams. Those that begin at
// multiples of step are looked up, and each place of the piece has one of them.
type grams struct {
	piece []byte
	step  int
	// table has 1 for the hash of each gram that begins in the first step bytes of the piece.
	table [1 << gramBits]uint8
}

// gramsOf returns nil for a piece that is too short to be found so. It does too if a text of so many
// bytes would take most looks or more.
func gramsOf(piece []byte, size, most int) *grams {
	step := 16
	if step+gram-1 > len(piece) {
		step = 8
	}
	if step+gram-1 > len(piece) || size/step >= most {
		return nil
	}
	g := &grams{piece: piece, step: step}
	for i := range step {
		g.table[gramAt(piece[i:])] = 1
	}
	return g
}

// gramAt is the hash of the first gram of a text.
func gramAt(text []byte) uint32 {
	return binary.LittleEndian.Uint32(text) * 0x9E3779B1 >> (32 - gramBits)
}

// index is [bytes.Index] of the piece.
func (g *grams) index(text []byte) int {
	at := 0
	for ; ; at += window {
		if at = g.meet(text, at); at+window > len(text) {
			break
		}
		for row := at; row < at+window; row += g.step {
			if g.table[gramAt(text[row:])] == 0 {
				continue
			}
			// The piece begins here, or up to a step before.
			from := max(0, row-g.step+1)
			if i := bytes.Index(text[from:min(row+len(g.piece), len(text))], g.piece); i >= 0 {
				return from + i
			}
		}
	}
	from := max(0, at-g.step+1)
	if i := bytes.Index(text[from:], g.piece); i >= 0 {
		return from + i
	}
	return -1
}

// met returns in how many windows of a text a gram of the table is.
func (g *grams) met(text []byte) (n int) {
	for at := g.meet(text, 0); at+window <= len(text); at = g.meet(text, at+window) {
		n++
	}
	return n
}

// meet returns the first window of a text, at a place or behind, that has a gram of the table. If no
// whole window has one, it returns the place behind the last one. It is written out for each step,
// because it looks at all of a text: so the places are constants, and no branch is for one gram.
func (g *grams) meet(text []byte, at int) int {
	t := &g.table
	switch g.step {
	case 16:
		for ; at+window <= len(text); at += window {
			w := (*[window]byte)(text[at:])
			if t[gramAt(w[0:])]|t[gramAt(w[16:])]|t[gramAt(w[32:])]|t[gramAt(w[48:])]|
				t[gramAt(w[64:])]|t[gramAt(w[80:])]|t[gramAt(w[96:])]|t[gramAt(w[112:])] != 0 {
				break
			}
		}
	case 8:
		for ; at+window <= len(text); at += window {
			w := (*[window]byte)(text[at:])
			if t[gramAt(w[0:])]|t[gramAt(w[8:])]|t[gramAt(w[16:])]|t[gramAt(w[24:])]|
				t[gramAt(w[32:])]|t[gramAt(w[40:])]|t[gramAt(w[48:])]|t[gramAt(w[56:])]|
				t[gramAt(w[64:])]|t[gramAt(w[72:])]|t[gramAt(w[80:])]|t[gramAt(w[88:])]|
				t[gramAt(w[96:])]|t[gramAt(w[104:])]|t[gramAt(w[112:])]|t[gramAt(w[120:])] != 0 {
				break
			}
		}
	}
	return at
}
