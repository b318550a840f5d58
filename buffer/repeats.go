package buffer

import (
	"context"

	"blobtail/record"
	"blobtail/wal"
)

// acceptKnown answers a request while the log is full: a repeat takes no room.
func (b *Buffer) acceptKnown(r *record.Request) (record.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if receipt, known, err := b.known(r); known {
		return receipt, err
	}
	b.m.refused.Inc()
	return record.Receipt{}, record.ErrFull
}

// known answers a request that came before, as the first one was answered. A request
// with another outcome is a new one. b.mu is held.
func (b *Buffer) known(r *record.Request) (receipt record.Receipt, known bool, err error) {
	if r.Reply != "" {
		m, err := b.repeated(r)
		if m == nil {
			return receipt, err != nil, err
		}
		return record.Receipt{Duplicate: true, Expired: int(m.expired), Wait: b.waitRepeat(0)}, true, nil
	}
	first, ok := b.origins.find(r)
	if !ok {
		return receipt, false, nil
	}
	if known, err = first.repeatOf(r); !known || err != nil {
		return receipt, known, err
	}
	b.m.duplicates.Inc()
	return record.Receipt{Duplicate: true, Expired: int(first.expired), Wait: b.waitRepeat(first.pos)}, true, nil
}

// rememberOrigin makes a request known that has been appended at pos. Where one of
// its origin was taken before, it has another outcome. b.mu is held.
func (b *Buffer) rememberOrigin(r *record.Request, pos wal.Pos, expired int) {
	again, oldest := b.origins.add(rememberedOrigin{
		origin: r.Origin, pos: pos, sum: r.Sum, outcome: r.Outcome, defaultTime: r.DefaultTime, expired: uint32(expired),
	})
	if again {
		b.twice.add(r.Origin)
	}
	if len(b.twice) > 0 && !b.origins.knows(oldest) {
		delete(b.twice, oldest)
	}
}

// waitRepeat returns the Wait of a request that came before: it is as safe as
// the first one is. Which batches hold that is not remembered, so it waits for
// all there are.
func (b *Buffer) waitRepeat(pos wal.Pos) func(context.Context, bool) error {
	return func(ctx context.Context, stored bool) error {
		if pos != 0 { // messages need not be durable
			if err := b.log.Sync(pos); err != nil {
				return err
			}
		}
		if !stored {
			return nil
		}
		for _, f := range b.fates(pos) {
			if err := f.wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// fates are those of all batches that are not stored yet and may hold the request
// at pos. The open ones are cut with the next tick that cuts for who waits.
func (b *Buffer) fates(pos wal.Pos) []*fate {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*fate
	for _, ob := range b.open {
		ob.wanted = true
		all = append(all, ob.fate)
	}
	for _, batch := range b.queue {
		if !batch.aside || batch.named.MayHold(pos) {
			all = append(all, batch.fate)
		}
	}
	return all
}
