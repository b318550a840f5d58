package buffer

import (
	"context"

	"blobtail/buffer/runlog"
	"blobtail/record"
)

// twice has the origins whose request was accepted twice. The second had another outcome,
// or came before the replay knew the first one, when the times given to its records may
// differ. If one batch has both, lines of the second may be known by their run's place. A
// follower must get the same identities, even when the batch is stored. So twice keeps
// the decisions on the lines of each such origin, by those places.
type twice map[record.Origin]map[record.Origin]runlog.Lots

// add notes an origin.
func (t twice) add(o record.Origin) {
	if t[o] == nil {
		t[o] = map[record.Origin]runlog.Lots{}
	}
}

// note remembers the runs of a batch that have lines known by their place.
func (b *Buffer) note(runs []runlog.Renaming) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range runs {
		if places := b.repeats.twice[r.Origin]; places != nil {
			places[r.Place] = r.Lots
		}
	}
}

// twiceReader finds the decisions on such runs.
type twiceReader struct {
	ctx     context.Context
	b       *Buffer
	in      *runlog.Reading
	batches []runlog.Unit
}

// lots are the decisions on a run, as its batch has or will have them. A follower gets
// copies too: the lines that were kept first are behind its position.
func (t *twiceReader) lots(run *runlog.Run) (runlog.Lots, error) {
	t.b.mu.Lock()
	places, twice := t.b.repeats.twice[run.Origin]
	found := places[run.Place]
	t.b.mu.Unlock()
	if !twice {
		return nil, nil
	}
	for i := 0; i < len(t.batches) && found == nil; i++ {
		if u := &t.batches[i]; u.Bin == run.Bin {
			var err error
			if found, err = t.in.Lots(t.ctx, u, run); err != nil {
				return nil, err
			}
		}
	}
	if !found.HasRenamed() {
		return nil, nil
	}
	return found.Uncopied(), nil
}
