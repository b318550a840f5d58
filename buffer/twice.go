package buffer

import (
	"context"

	"blobtail/buffer/runlog"
	"blobtail/record"
)

// twice is about origins whose request was taken twice: because it came again before
// the replay knew it, when times that were given to its records may differ, or with
// another outcome. Where both stand in one batch, lines of the second may be known
// by their run's place. Who follows must be told the same, also when the batch is
// stored: so of each such origin the lines are kept, by those places.
type twice map[record.Origin]map[record.Origin]runlog.Lots

// add notes an origin.
func (t twice) add(o record.Origin) {
	if t[o] == nil {
		t[o] = map[record.Origin]runlog.Lots{}
	}
}

// note remembers what a batch knows by places.
func (b *Buffer) note(runs []runlog.Renaming) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range runs {
		if places := b.twice[r.Origin]; places != nil {
			places[r.Place] = r.Lots
		}
	}
}

// twiceReader finds out how such runs are known.
type twiceReader struct {
	ctx     context.Context
	b       *Buffer
	in      *runlog.Reading
	batches []*runlog.Unit
}

// lots are those of a run, as its batch has or will have them. Who follows is given
// copies as well: what they are copies of lies behind.
func (t *twiceReader) lots(run *runlog.Run) (runlog.Lots, error) {
	t.b.mu.Lock()
	places, twice := t.b.twice[run.Origin]
	found := places[run.Place]
	t.b.mu.Unlock()
	if !twice {
		return nil, nil
	}
	for _, u := range t.batches {
		if found != nil {
			break
		}
		if u.Bin == run.Bin {
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
