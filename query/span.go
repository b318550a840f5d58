package query

// Span returns the first and the last time of the records of the plan; ok is false if
// there are none. It uses metadata alone, so filtered records may span less.
func (p *Plan) Span() (first, last int64, ok bool) {
	first, last = Newest, Oldest
	add := func(from, to int64) {
		from, to = max(from, p.rng.From), min(to, p.rng.last())
		if from <= to {
			first, last, ok = min(first, from), max(last, to), true
		}
	}
	for i := range p.blobs {
		add(p.blobs[i].Meta.First, p.blobs[i].Meta.Last)
	}
	return first, last, ok
}

// last is the last time of the range.
func (r Range) last() int64 {
	if r.To == Newest {
		return Newest
	}
	return r.To - 1
}
