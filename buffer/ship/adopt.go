package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/storage"
)

// Adoption says how logs of other ingesters are adopted. All must be given.
type Adoption struct {
	Tables storage.TableStore
	Store  string // as rows name it
	// Accept is the gate of this ingester: its row says that it holds the records before it has them.
	Accept func(ctx context.Context, r *record.Request) (record.Receipt, error)
	Ask    lease.Ask
	Now    func() time.Time // the store's clock
}

// Adopt takes over what a silent ingester has shipped, so that its records are read again. Each step can
// be repeated: after a failure the same adopter, or another, does all of them anew. Records that two
// ingesters have are shown once, because they keep their identities.
//
// The mark comes first: behind it the silent one ships nothing, should it run after all. Its row goes
// last, and only if nobody has written it meanwhile: while there are parts, somebody adopts them.
func (s *Shipper) Adopt(ctx context.Context, id string, a Adoption) error {
	store, err := s.o.StoreID()
	if err != nil {
		return err
	}
	if id == s.o.ID() {
		return fmt.Errorf("ingester %s is this one", id)
	}
	row, err := lease.Silent(ctx, a.Tables, a.Store, id, a.Now(), a.Ask)
	if err != nil {
		return err
	}
	if row.StoreID != store {
		return fmt.Errorf("ingester %s ships to the store %s, and this is %s: adopt it there", id, row.StoreID, store)
	}
	parts, err := s.mark(ctx, id, store)
	if err != nil {
		return err
	}
	requests, until := 0, row.Started
	for _, o := range parts {
		until = o.until
		if err := s.take(ctx, id, o, a, &requests); err != nil {
			return err
		}
	}
	end := s.o.Log.Durable() - 1
	if err := s.persist(ctx, func() error { return s.Wait(ctx, end) }); err != nil {
		return err
	}
	// Nobody looks for them behind the end of this, so what fails now is repeated.
	gone := make([]storage.Blob, len(parts))
	for i, o := range parts {
		gone[i].Key = o.key(id)
	}
	for some := range slices.Chunk(gone, mostReaped) {
		if err := s.o.Blobs.Delete(ctx, some...); err != nil {
			err = fmt.Errorf("delete the parts of the log of ingester %s: %w", id, err)
			if !errors.Is(err, storage.ErrHeld) {
				return err
			}
			s.o.Logger.Warn().Err(err).Msg("parts of an adopted log stay in the store: remove them when the policy allows it")
		}
	}
	if err := lease.Adopted(ctx, a.Tables, row, s.o.ID(), until, a.Now()); err != nil {
		return err
	}
	s.o.Logger.Warn().Str("id", id).Str("host", row.Host).Int("requests", requests).Msg("the shipped log of a silent ingester is adopted")
	return nil
}

// mark makes the next object of another ingester, and then returns all parts of its log before that.
func (s *Shipper) mark(ctx context.Context, id, store string) (parts []*object, err error) {
	all, err := list(ctx, s.o.Blobs, id)
	if err != nil {
		return nil, err
	}
	mark := newObject(1, store)
	mark.adopter = s.o.ID()
	mark.body = fmt.Appendf(nil, "ingester %s adopts the log of %s\n", mark.adopter, id)
	if n := len(all); n > 0 {
		mark.number = all[n-1].number + 1
	}
	for taken := (*object)(nil); ; mark.number++ {
		if taken, err = mark.create(ctx, s.o.Blobs, id); err != nil {
			return nil, fmt.Errorf("mark the log of ingester %s as adopted: %w", id, err)
		}
		if taken == nil {
			break
		}
	}
	if all, err = list(ctx, s.o.Blobs, id); err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.store != store {
			return nil, fmt.Errorf("%s is of the store %s, and this is %s: was the store copied?", o.key(id), o.store, store)
		}
		if o.number < mark.number && o.adopter == "" {
			parts = append(parts, o)
		}
	}
	return parts, nil
}

// take accepts the requests of a part, and returns when they are in this ingester's log.
func (s *Shipper) take(ctx context.Context, id string, o *object, a Adoption, requests *int) error {
	var receipts []record.Receipt
	err := o.requests(ctx, s.o.Blobs, id, func(r *record.Request) error {
		return s.persist(ctx, func() error {
			receipt, err := a.Accept(ctx, r)
			if err == nil {
				receipts = append(receipts, receipt)
			}
			return err
		})
	})
	*requests += len(receipts)
	for i := 0; err == nil && i < len(receipts); i++ {
		err = receipts[i].Wait(ctx, false)
	}
	if err != nil {
		return fmt.Errorf("adopt ingester %s, part %d of its log: %w", id, o.number, err)
	}
	return nil
}

// persist tries again while this ingester has no room, or the store does not answer.
func (s *Shipper) persist(ctx context.Context, try func() error) error {
	for first := true; ; first = false {
		err := try()
		waits := errors.Is(err, record.ErrFull) || errors.Is(err, record.ErrUnheld) || errors.Is(err, ack.ErrDisk)
		if fenced := s.Fenced(); fenced != nil || !waits {
			return cmp.Or(fenced, err)
		}
		if first {
			s.o.Logger.Warn().Err(err).Msg("an adoption waits")
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

const (
	// lookEvery is the pause between two looks for silent ingesters.
	lookEvery = 10 * time.Second
	// turn is how much later the next ingester begins to adopt one, and the pause after a failure.
	turn = time.Minute
)

// AdoptSilent adopts every ingester that has been silent for so long, until ctx ends. The live one with
// the least id begins; each other waits a minute longer for it.
func (s *Shipper) AdoptSilent(ctx context.Context, after time.Duration, a Adoption) {
	failed := map[string]time.Time{}
	for wait(ctx, lookEvery) == nil {
		rows, err := lease.List(ctx, a.Tables, a.Store)
		if _, err := lease.Unread(err); err != nil {
			continue // the announcer tells
		}
		now, wait := a.Now(), after
		for _, i := range rows {
			if i.ID < s.o.ID() && i.Ships != "" && i.Live(now) {
				wait += turn
			}
		}
		for _, i := range rows {
			if i.State != lease.Holding || i.Ships == "" || now.Sub(i.At) < wait || now.Sub(failed[i.ID]) < turn {
				continue
			}
			if err := s.Adopt(ctx, i.ID, a); err != nil && ctx.Err() == nil {
				failed[i.ID] = a.Now()
				s.o.Logger.Warn().Err(err).Str("id", i.ID).Msg("a silent ingester is not adopted; it is tried again")
			}
		}
	}
}
