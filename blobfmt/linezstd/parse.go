package linezstd

import (
	"math"
	"slices"
)

const (
	minSlow = 3 // bytes of a match
	never   = math.MaxInt32 / 2
	// spare is the price by which the way to a place must be better than the way to one
	// further on.
	spare = 2 * unit
)

// A move is literals and the match behind them.
type move struct{ literals, length, offset int32 }

// An arrival is the last step of the cheapest known way to a byte of the block.
type arrival struct {
	length   int32 // of the match that ends here; 0: there is a literal
	offset   int32
	literals int32 // at the end of the way
}

// A parser finds the cheapest way through a block.
type parser struct {
	// Of each byte of the block: the price of the way to it, its last step and, once the
	// parser goes on from there, the last offsets.
	price [maxBlock + 1]int32
	last  [maxBlock + 1]arrival
	reps  [maxBlock + 1][3]int32

	way    []move
	prices prices
	front  front
	// The best place that a match leads to.
	goal      int
	goalPrice int32
}

// parse sets the way through src[start:].
func (p *parser) parse(c *coder, src []byte, start int, f *finder) {
	n := len(src) - start
	for i := range p.price[:n+1] {
		p.price[i] = never
	}
	p.price[0], p.last[0] = 0, arrival{}
	p.front.n, p.goal = 0, 0
	for i := range n {
		for k := f.first[i]; k > 0; k = f.found[k-1].next {
			p.front.add(int(f.found[k-1].offset), int(f.found[k-1].end))
		}
		price := p.price[i]
		switch {
		case i >= p.goal:
			p.goalPrice = never
		case price >= p.goalPrice-spare:
			continue
		}
		p.arrive(c, i)
		literals := p.last[i].literals
		more := price + p.prices.literals[src[start+i]] + p.prices.ofLiterals(c, literals+1) - p.prices.ofLiterals(c, literals)
		if more < p.price[i+1] {
			p.price[i+1], p.last[i+1] = more, arrival{literals: literals + 1}
		}
		if start+i+minSlow < len(src) {
			p.repeat(c, src, start, i)
			p.match(c, start, i)
		}
	}
	p.back(n)
}

// arrive sets the last offsets of a place.
func (p *parser) arrive(c *coder, i int) {
	last := p.last[i]
	switch {
	case i == 0:
		p.reps[0] = [3]int32{int32(c.reps.first), int32(c.reps.second), int32(c.reps.third)}
	case last.length == 0:
		p.reps[i] = p.reps[i-1]
	default:
		from := i - int(last.length)
		r := p.reps[from]
		_, after := repeats{int(r[0]), int(r[1]), int(r[2])}.number(int(p.last[from].literals), int(last.offset))
		p.reps[i] = [3]int32{int32(after.first), int32(after.second), int32(after.third)}
	}
}

// repeat tries the matches by the last offsets.
func (p *parser) repeat(c *coder, src []byte, start, i int) {
	at, r := start+i, p.reps[i]
	if p.last[i].literals == 0 {
		r = [3]int32{r[1], r[2], r[0] - 1}
	}
	here := load32(src, at) << 8
	text := src[:min(len(src), at+maxLength)]
	for k, offset := range r {
		if q := at - int(offset); offset > 0 && q >= 0 && load32(src, q)<<8 == here {
			n := int32(minSlow + matchLen(text, at+minSlow, q+minSlow))
			p.try(c, i, offset, p.price[i]+p.prices.codes[offsets][min(k, 1)], minSlow, n)
		}
	}
}

// match tries the matches by the repeats of the front.
func (p *parser) match(c *coder, start, i int) {
	p.front.drop(start + i)
	least := int32(minSlow)
	for k := range p.front.n {
		r := &p.front.r[k]
		n := r.end - int32(start+i)
		p.try(c, i, r.offset, p.price[i]+p.prices.codes[offsets][r.code], least, n)
		least = n + 1
	}
}

// try goes from a place by a match of the least length, of one more, and of the full one. The
// price has all but the length.
func (p *parser) try(c *coder, i int, offset, price, least, full int32) {
	price += p.prices.litLen[0]
	for n := least; n <= full; n++ {
		if n == least+2 {
			n = full
		}
		to := i + int(n)
		if sum := price + p.prices.ofMatch(c, n); sum < p.price[to] {
			p.price[to], p.last[to] = sum, arrival{length: n, offset: offset}
		}
	}
	if end := i + int(full); p.price[end] < p.goalPrice {
		p.goal, p.goalPrice = end, p.price[end]
	}
}

// back follows the way to a place.
func (p *parser) back(i int) {
	p.way = p.way[:0]
	for i -= int(p.last[i].literals); i > 0; i -= int(p.last[i].literals) {
		last := p.last[i]
		i -= int(last.length)
		p.way = append(p.way, move{p.last[i].literals, last.length, last.offset})
	}
	slices.Reverse(p.way)
}
