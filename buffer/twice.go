package buffer

import (
	"slices"

	"blobtail/record"
)

// twice is about origins whose request was taken twice: because it came again before
// the replay knew it, when times that were given to its records may differ, or with
// another outcome. Where both stand in one batch, lines of the second may be known
// by their run's place. Who follows must be told the same, also when the batch is
// stored: so of each such origin the lines are kept, by those places.
type twice map[record.Origin]map[record.Origin]lots

// add notes an origin.
func (t twice) add(o record.Origin) {
	if t[o] == nil {
		t[o] = map[record.Origin]lots{}
	}
}

// renaming is a run with lines that are known by its place.
type renaming struct {
	origin, place record.Origin
	lots          lots
}

// note remembers what a batch knows by places.
func (b *Buffer) note(runs []renaming) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range runs {
		if places := b.twice[r.origin]; places != nil {
			places[r.place] = r.lots
		}
	}
}

// twiceReader finds out how such runs are known.
type twiceReader struct {
	in      liveReader
	batches []*unit
}

// lots are those of a run that lies at place, as its batch has or will have them.
// Who follows is given copies as well: what they are copies of lies behind.
func (t *twiceReader) lots(h *heldRun, place record.Origin) (lots, error) {
	if t == nil {
		return nil, nil
	}
	b := t.in.b
	b.mu.Lock()
	places, twice := b.twice[h.origin]
	found := places[place]
	b.mu.Unlock()
	if !twice {
		return nil, nil
	}
	for _, u := range t.batches {
		if found != nil {
			break
		}
		if u.key != h.key {
			continue
		}
		if !u.read {
			if err := t.in.scan(u, func(*heldRun) error { return nil }); err != nil {
				return nil, err
			}
		}
		found = u.lots[h.pos]
	}
	if !slices.Contains(found, renamed) {
		return nil, nil
	}
	given := slices.Clone(found)
	for i := range given {
		if given[i] == copied {
			given[i] = stands
		}
	}
	return given, nil
}
