package blobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// Stored is the newest blob of a service that an ingester has stored, by its word from before the
// listings of a read. A store that has neither this blob nor a reason to lack it is no store of that
// ingester: somebody copied the store.
type Stored struct {
	Ingester string // its id
	Process  string // its start
	Number   uint64 // greater than those of all blobs that the process stored before
	Key      string
	Batch    [16]byte
}

// acquitted is a memory of blobs that need no further look. All readers over one store share it.
type acquitted struct {
	mu sync.Mutex
	// upto has the greatest number of a blob that was found, by process. An atomic copy that has
	// this blob has all that the process stored before.
	upto map[string]uint64
	// lost are blobs that the store lacks for a good reason.
	lost map[Stored]bool
}

// mostAcquitted bounds either map of [acquitted]. Without a memory, a read costs a few requests more.
const mostAcquitted = 1 << 14

func newAcquitted() *acquitted {
	return &acquitted{upto: map[string]uint64{}, lost: map[Stored]bool{}}
}

// needs reports whether nothing is known yet of a blob that no listing showed. listed says that
// one should have.
func (a *acquitted) needs(s *Stored, listed bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.lost[*s] && (listed || s.Number > a.upto[s.Process])
}

// found notes that the store has a blob, excused that it lacks one for a good reason.
func (a *acquitted) found(s *Stored) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.upto) >= mostAcquitted {
		clear(a.upto)
	}
	a.upto[s.Process] = max(a.upto[s.Process], s.Number)
}

func (a *acquitted) excused(s *Stored) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lost) >= mostAcquitted {
		clear(a.lost)
	}
	a.lost[*s] = true
}

// A vouched blob is a [Stored] as one read meets it. Listings of its service alone change it.
type vouched struct {
	*Stored
	name   blobfmt.Name
	listed bool // a listing went over its place
	met    bool // and showed it
}

// vouching are the vouched blobs of a read.
type vouching struct {
	of     map[string][]*vouched // by service; only of services of the read
	newest []*vouched            // of each process
	// looks are Stats under way, of blobs outside the range, at the time of the listings.
	looks map[*vouched]chan error
	// lacking says that the store lacks one of them.
	lacking bool
}

// vouch begins to look for the blobs that ingesters named. A blob in the range of the read is in
// its listings, which cost nothing more. Of the others one of each process suffices, if it is the
// newest that the process stored. The caller has to call wait.
func (a *asked) vouch(ctx context.Context) {
	newest := map[string]*vouched{}
	for s, name := range a.promised() {
		if _, ours := slices.BinarySearch(a.services, name.Service); !ours {
			continue
		}
		v := &vouched{Stored: s, name: name}
		if a.vouched.of == nil {
			a.vouched = vouching{of: map[string][]*vouched{}, looks: map[*vouched]chan error{}}
		}
		a.vouched.of[name.Service] = append(a.vouched.of[name.Service], v)
		if was := newest[s.Process]; was == nil || was.Number < s.Number {
			newest[s.Process] = v
		}
	}
	a.vouched.newest = slices.Collect(maps.Values(newest))
	for _, v := range a.vouched.newest {
		if !a.query.Range.lists(v.name) && a.reader.acquitted.needs(v.Stored, false) {
			looked := make(chan error, 1)
			a.vouched.looks[v] = looked
			go func() { looked <- a.look(ctx, v) }()
		}
	}
}

// promised are the blobs that the store should have, but for those of days that are known to be
// dropped.
func (a *asked) promised() iter.Seq2[*Stored, blobfmt.Name] {
	return func(yield func(*Stored, blobfmt.Name) bool) {
		for i := range a.query.Stored {
			s := &a.query.Stored[i]
			name, err := blobfmt.ParseName(s.Key)
			if a.reader.acquitted == nil || err != nil || a.query.Expired.Days.Hides(name.Service, horizon.DayOf(name.Period)) {
				continue
			}
			if !yield(s, name) {
				return
			}
		}
	}
}

// lists reports whether a listing of the range shows a blob of a name.
func (r Range) lists(name blobfmt.Name) bool {
	periods := r.periods()
	return !name.Period.Before(periods.From) && (periods.To.IsZero() || name.Period.Before(periods.To))
}

// wait waits for the looks that nobody has waited for.
func (v *vouching) wait() {
	for of, looked := range v.looks {
		delete(v.looks, of)
		<-looked
	}
}

// passes notes that a listing goes over a range of a service. It returns the blobs that the listing
// may meet.
func (v *vouching) passes(service string, rng Range) (there []*vouched) {
	for _, b := range v.of[service] {
		if rng.lists(b.name) {
			b.listed = true
			there = append(there, b)
		}
	}
	return there
}

// meets notes that a listing has come to an entry.
func meets(there []*vouched, e *catalog.Entry) {
	for _, b := range there {
		if e.Key == b.Key && (e.State != catalog.Sound || e.Meta.Batch == b.Batch) {
			b.met = true
		}
	}
}

// mostDoubted is how many blobs of a process that listings lack are looked at. The newest suffices
// to know a copy that was made at once; of one that was made file by file it may be there.
const mostDoubted = 4

// judge reports the vouched blobs that the store lacks without a reason. Call it once all that the
// read needs is listed.
func (a *asked) judge(ctx context.Context, sum *Summary) {
	doubted := map[string][]*vouched{}
	for _, all := range a.vouched.of {
		for _, v := range all {
			if v.met {
				a.reader.acquitted.found(v.Stored)
			} else if v.listed {
				doubted[v.Process] = append(doubted[v.Process], v)
			}
		}
	}
	for _, v := range a.vouched.newest {
		if !v.met && !v.listed {
			doubted[v.Process] = append(doubted[v.Process], v)
		}
	}
	for _, process := range slices.Sorted(maps.Keys(doubted)) {
		all := doubted[process]
		slices.SortFunc(all, func(x, y *vouched) int { return cmp.Compare(y.Number, x.Number) })
		for _, v := range all[:min(len(all), mostDoubted)] {
			if err := a.lacks(ctx, v); err != nil {
				sum.Lack(err)
				a.vouched.lacking = true
			}
		}
	}
	a.vouched.wait()
}

// errElsewhere says that another blob has the name.
var errElsewhere = fmt.Errorf("%w: another blob has its name", storage.ErrNotExist)

// look asks the store for a vouched blob.
func (a *asked) look(ctx context.Context, v *vouched) error {
	b, err := a.reader.store.Stat(ctx, v.Key)
	if err != nil {
		return err
	}
	if m, err := blobfmt.ParseMeta(b.Metadata); err == nil && m.Batch != v.Batch {
		return errElsewhere
	}
	return nil
}

// lacks returns the problem of a read whose store lacks a vouched blob. A day may have been dropped
// since the horizons were read, and the blob may have been compacted. A reader without the right to
// see that cannot judge.
func (a *asked) lacks(ctx context.Context, v *vouched) error {
	if !a.reader.acquitted.needs(v.Stored, v.listed) {
		return nil
	}
	var err error
	if looked := a.vouched.looks[v]; looked != nil {
		delete(a.vouched.looks, v)
		err = <-looked
	} else {
		err = a.look(ctx, v)
	}
	switch {
	case err == nil || errors.Is(err, storage.ErrDamaged):
		a.reader.acquitted.found(v.Stored)
		return nil
	case errors.Is(err, storage.ErrNotExist):
		err = a.unexcused(ctx, v)
	}
	if ctx.Err() != nil || errors.Is(err, storage.ErrUnauthorized) {
		return nil
	}
	if err != nil && !errors.As(err, new(*CopyError)) {
		return fmt.Errorf("whether this store has blob %s, which ingester %s stored, cannot be checked: %w", v.Key, v.Ingester, err)
	}
	return err
}

// unexcused returns a [*CopyError] if nothing explains why the store lacks a blob.
func (a *asked) unexcused(ctx context.Context, v *vouched) error {
	if err := a.view.Look(ctx); err != nil {
		return err
	}
	if err := a.view.Forbidden(); err != nil {
		return err
	}
	excused := a.view.Hides(v.name.Service, horizon.DayOf(v.name.Period))
	if !excused {
		var err error
		excused, err = a.reader.replaced(ctx, v.name, v.Batch)
		switch {
		case errors.As(err, new(*blobfmt.CorruptError)), errors.Is(err, storage.ErrDamaged), errors.Is(err, storage.ErrNotExist):
			return nil // nobody knows what a damaged blob replaces; one that went was compacted again
		case err != nil:
			return err
		}
	}
	if excused {
		a.reader.acquitted.excused(v.Stored)
		return nil
	}
	return &CopyError{v.Key, v.Ingester}
}

// replaced reports whether a compacted blob of a blob's hour, which may be newer than the listing,
// replaces its batch.
func (r *Reader) replaced(ctx context.Context, name blobfmt.Name, batch blobfmt.BatchID) (bool, error) {
	hour := name.Period.Truncate(time.Hour)
	var unread error
	for e, err := range catalog.Blobs(ctx, r.store, name.Service, catalog.Range{From: hour, To: hour.Add(time.Hour)}) {
		if err != nil {
			return false, err
		}
		if e.Meta.Compacted == 0 {
			continue
		}
		index, err := r.source(blob{Entry: &e}, new(Summary)).readIndex(ctx, false)
		if err != nil {
			unread = cmp.Or(unread, err)
		} else if slices.Contains(index.Replaces, batch) {
			return true, nil
		}
	}
	return false, unread
}

// CopyError says that an ingester has stored a blob in its store, and the store that is read lacks
// it.
type CopyError struct{ Key, Ingester string }

func (e *CopyError) Error() string {
	return fmt.Sprintf("blob %s, which ingester %s stored, is not in this store: is this a copy of that ingester's store, or was the blob removed by hand? Records that the ingester has stored since may be missing: read its own store, or this one with --live off",
		e.Key, e.Ingester)
}
