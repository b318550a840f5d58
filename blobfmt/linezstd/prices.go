package linezstd

import (
	"math"
	"math/bits"
)

// Prices are the bits that the parts of a block take, in units of 1/256 bit.
type prices struct {
	literals [256]int32
	codes    [kinds][maxCodes]int32 // with the bits that a code leaves open
	litLen   [256]int32             // by the length
	matchLen [256]int32             // by the length less 3
}

const (
	unit    = 256
	longest = 11 // bits of a literal
)

// guess sets prices for a block of which nothing is known.
func (p *prices) guess() {
	for i := range p.literals {
		p.literals[i] = 5 * unit
	}
	for i := range p.codes[offsets] {
		p.codes[offsets][i] = int32(4+i) * unit
	}
	p.codes[offsets][0], p.codes[offsets][1] = 2*unit, 3*unit
	for i := range maxCodes {
		p.codes[litLengths][i] = int32(3*unit + i*unit/8)
		p.codes[matchLengths][i] = int32(4*unit + i*unit/8)
	}
	for i := range p.litLen {
		p.litLen[i] = int32(3*unit + unit/8*bits.Len(uint(i)))
		p.matchLen[i] = int32(4*unit + unit/4*bits.Len(uint(i)))
	}
}

// learn sets the prices to those of src[start:] as it was parsed.
func (p *prices) learn(way []move, c *coder, src []byte, start int) {
	var literals [256]int
	var counts [kinds][maxCodes]int
	r, from := c.reps, start
	for _, s := range way {
		at := from + int(s.literals)
		for _, b := range src[from:at] {
			literals[b]++
		}
		from = at + int(s.length)
		var number int
		number, r = r.number(int(s.literals), int(s.offset))
		counts[litLengths][c.codeOfLiterals(int(s.literals))]++
		counts[matchLengths][c.codeOfMatch(int(s.length)-3)]++
		counts[offsets][bits.Len32(uint32(number))-1]++
	}
	for _, b := range src[from:] {
		literals[b]++
	}
	set(p.literals[:], literals[:])
	for i, price := range p.literals {
		p.literals[i] = min(max(price, unit), longest*unit)
	}
	for kind := range p.codes {
		set(p.codes[kind][:], counts[kind][:])
	}
	for i := range maxCodes {
		p.codes[litLengths][i] += int32(c.litExtra[i]) * unit
		p.codes[matchLengths][i] += int32(c.matchExtra[i]) * unit
		p.codes[offsets][i] += int32(i) * unit
	}
	for i := range p.litLen {
		p.litLen[i] = p.codes[litLengths][c.codeOfLiterals(i)]
		p.matchLen[i] = p.codes[matchLengths][c.codeOfMatch(i)]
	}
}

// set sets the prices of symbols by their counts. One that did not occur counts a quarter.
func set(prices []int32, counts []int) {
	total := 0.0
	for _, n := range counts {
		total += float64(n) + 0.25
	}
	for i, n := range counts {
		prices[i] = int32(unit * math.Log2(total/(float64(n)+0.25)))
	}
}

// ofLiterals is the price of a number of literals.
func (p *prices) ofLiterals(c *coder, n int32) int32 {
	if int(n) < len(p.litLen) {
		return p.litLen[n]
	}
	return p.codes[litLengths][c.codeOfLiterals(int(n))]
}

// ofMatch is the price of the length of a match.
func (p *prices) ofMatch(c *coder, n int32) int32 {
	if n -= minSlow; int(n) < len(p.matchLen) {
		return p.matchLen[n]
	}
	return p.codes[matchLengths][c.codeOfMatch(int(n))]
}
