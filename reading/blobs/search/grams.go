package search

import (
	"bytes"
	"encoding/binary"
)

const (
	gramLen = 4
	// leastGrams is the length of a piece from which on its grams find it quicker than a rare byte.
	leastGrams = 32
	gramBits   = 11
)

// grams tell which four bytes a piece may have in a row: those whose hashes it has. A text is looked
// at where each row of a stride begins. The piece spans one of these wherever it is.
type grams struct {
	stride int
	has    [1 << gramBits]bool
}

// gramsOf returns the grams of a piece; nil: it is too short for them.
func gramsOf(piece []byte) *grams {
	if len(piece) < leastGrams {
		return nil
	}
	g := &grams{stride: len(piece) - gramLen + 1}
	for i := range g.stride {
		g.has[gram(piece[i:])] = true
	}
	return g
}

func gram(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) * 0x9E3779B1 >> (32 - gramBits)
}

// index is [bytes.Index] of the piece that has the grams.
func (g *grams) index(text, piece []byte) int {
	// The four bytes at the last place of the first stride are in the piece if it begins in that stride.
	for at := g.stride - 1; at <= len(text)-gramLen; at += g.stride {
		// Four looks at once do not wait for each other.
		for n := 4 * g.stride; at <= len(text)-n; at += n {
			if g.has[gram(text[at:])] || g.has[gram(text[at+g.stride:])] || g.has[gram(text[at+2*g.stride:])] || g.has[gram(text[at+3*g.stride:])] {
				break
			}
		}
		if at > len(text)-gramLen {
			break
		}
		if !g.has[gram(text[at:])] {
			continue
		}
		begin := at - g.stride + 1
		if i := bytes.Index(text[begin:min(at+len(piece), len(text))], piece); i >= 0 {
			return begin + i
		}
	}
	return -1
}
