package buffer

import (
	"context"

	"blobtail/buffer/runlog"
	"blobtail/record"
)

// twice has the origins with a request that was accepted twice. The second had another outcome, or
// came before the replay knew the first one, when the times given to its records may differ. If
// one batch has both, lines of the second may be known by their run's place. A follower must get
// the same identities, even when the batch is stored. So twice keeps the decisions on the lines of
// each such origin, by those places.
type twice map[record.Origin]map[record.Origin]runlog.Lots

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

// lots finds the decisions on such runs, as their batch has or will have them; batches
// may have some of them. A follower gets copies too: the lines that were kept first are
// behind its position.
func (b *Buffer) lots(ctx context.Context, in *runlog.Reading, batches []runlog.Unit) func(*runlog.Run) (runlog.Lots, error) {
	return func(run *runlog.Run) (runlog.Lots, error) {
		b.mu.Lock()
		places, twice := b.repeats.twice[run.Origin]
		found := places[run.Place]
		b.mu.Unlock()
		if !twice {
			return nil, nil
		}
		for i := 0; i < len(batches) && found == nil; i++ {
			if u := &batches[i]; u.Bin == run.Bin {
				var err error
				if found, err = in.Lots(ctx, u, run); err != nil {
					return nil, err
				}
			}
		}
		if !found.HasRenamed() {
			return nil, nil
		}
		return found.Uncopied(), nil
	}
}
