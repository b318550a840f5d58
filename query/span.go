package query

// Span returns the first and the last time of the records of the plan; ok is false if
// there are none. It uses metadata alone, so filtered records may span less.
func (p *Plan) Span() (first, last int64, ok bool) {
	first, last = Newest, Oldest
	for i := range p.blobs {
		m := &p.blobs[i].Meta
		first, last = min(first, m.First), max(last, m.Last)
	}
	first, last = max(first, p.rng.From), min(last, p.rng.last())
	return first, last, len(p.blobs) > 0 && first <= last
}

// last is the last time of the range.
func (r Range) last() int64 {
	if r.To == Newest {
		return Newest
	}
	return r.To - 1
}
