package blobs

// mostProbable is how many blobs a read of the newest records opens at once, before the merge
// comes to them.
const mostProbable = 16

// probable returns how many of the blobs, in the order of the merge, a read comes to before
// it reaches its limit, if the records of each are spread evenly over its time. These are
// opened at once, and their first blocks decoded: the merge would wait for one after another
// if many ingesters stored the same hour. It returns 0 if the filter decides, because the
// metadata do not show how many records match.
func (t *task) probable(order []*cursor, match *Matcher) int {
	if t.limit == 0 || match.readsLines() {
		return 0
	}
	for k := range min(len(order), mostProbable) {
		before := 0.0
		for _, c := range order[:k] {
			before += t.before(order[k].key, c.src, match)
		}
		if before >= float64(t.limit) {
			return k
		}
	}
	return min(len(order), mostProbable)
}

// before estimates how many wanted records of a blob, which comes first, the merge comes to
// before a key.
func (t *task) before(key int64, s *source, match *Matcher) float64 {
	m := &s.Meta
	first, last := max(m.First, t.rng.From), min(m.Last, t.rng.last())
	if t.desc {
		first = max(first, key)
	} else {
		last = min(last, key)
	}
	share := (float64(last) - float64(first)) / max(1, float64(m.Last)-float64(m.First))
	return 1 + max(0, share)*float64(wanted(match.levels, &m.Levels)-1)
}
