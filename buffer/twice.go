package buffer

import "blobtail/record"

// twice is about keys whose request was taken twice, because it came again before
// the replay knew it. Times that were given to its records differ then, so the
// second is no copy, and where both stand in one batch it is known by its place. Who
// follows must be told the same, also when the batch is stored.
type twice struct {
	origins map[record.Origin]bool // never written after adopt
	places  map[record.Origin]bool // of runs that are known by theirs
}

// renamed is a run that is known by its place.
type renamed struct{ origin, place record.Origin }

// note remembers the places that runs of a batch are known by.
func (b *Buffer) note(runs []renamed) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range runs {
		if b.twice.origins[r.origin] {
			b.twice.places[r.place] = true
		}
	}
}

// twiceReader finds out how such runs are known.
type twiceReader struct {
	in      liveReader
	origins map[record.Origin]bool
	batches []*unit
}

// identify gives the run its place for an origin where its batch will.
func (t *twiceReader) identify(h *heldRun, place record.Origin) error {
	if t == nil || !t.origins[h.origin] {
		return nil
	}
	b := t.in.b
	b.mu.Lock()
	known := b.twice.places[place]
	b.mu.Unlock()
	for _, u := range t.batches {
		if known {
			break
		}
		if u.key != h.key {
			continue
		}
		if !u.read {
			if err := t.in.scan(u, func(*heldRun) error { return nil }); err != nil {
				return err
			}
		}
		known = u.renamed[h.pos]
	}
	if known {
		h.origin = place
	}
	return nil
}
