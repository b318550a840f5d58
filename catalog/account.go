package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// A Listing is one listing of a service and a day, to be compared with the account of the day.
type Listing struct {
	Service string
	Day     horizon.Day
	Blobs   []Entry  // with the names of blobs, in order
	Parts   []string // keys
	Part    Entry    // the highest part; its number is 0 for none
	Foreign []string // keys of other objects in or before the day
}

// Listings lists a service day by day, without dropped days. It ends at its first error, also at that
// of an object of which nobody knows whether it is damaged.
func (v *View) Listings(ctx context.Context, service string, r Range) iter.Seq2[*Listing, error] {
	return func(yield func(*Listing, error) bool) {
		l := &Listing{Service: service}
		for e, err := range v.Blobs(ctx, service, r) {
			if errors.Is(err, storage.ErrNotExist) {
				break
			}
			if err == nil && e.State == Unknown {
				err = e.Err
			}
			if err != nil {
				yield(nil, err)
				return
			}
			day := e.Part.Day
			switch {
			case e.State == Foreign:
				l.Foreign = append(l.Foreign, e.Key)
				continue
			case e.Hidden:
				continue
			case e.Named():
				day = e.Day()
			}
			if day != l.Day {
				if len(l.Blobs)+len(l.Parts)+len(l.Foreign) > 0 && !yield(l, nil) {
					return
				}
				l = &Listing{Service: service, Day: day}
			}
			if e.State == Account {
				l.Part, l.Parts = e, append(l.Parts, e.Key) // they come in the order of their numbers
			} else {
				l.Blobs = append(l.Blobs, e)
			}
		}
		if len(l.Blobs)+len(l.Parts)+len(l.Foreign) > 0 {
			yield(l, nil)
		}
	}
}

// ListDay lists a day, also a dropped one.
func ListDay(ctx context.Context, store Store, service string, day horizon.Day) (*Listing, error) {
	for l, err := range NewView(store, nil, horizon.Checked{}).Listings(ctx, service, DayRange(day)) {
		if err != nil || l.Day == day {
			return l, err
		}
	}
	return &Listing{Service: service, Day: day}, nil
}

// ListParts lists the parts of a day alone.
func ListParts(ctx context.Context, store Store, service string, day horizon.Day) (*Listing, error) {
	l := &Listing{Service: service, Day: day}
	for o, err := range store.List(ctx, closed.PartPrefix(service, day), "") {
		if err != nil {
			return nil, listError(service, err)
		}
		if e := judge(ctx, store, &o, nil); e.State == Account {
			l.Part, l.Parts = e, append(l.Parts, e.Key)
		}
	}
	return l, nil
}

// Settled lists a day until the listing is younger than its part, so that a blob that it lacks is
// not one that came behind it. part is the number of the highest part that was listed before.
func Settled(ctx context.Context, store Store, service string, day horizon.Day, part int) (*Listing, error) {
	for {
		l, err := ListDay(ctx, store, service, day)
		if err != nil || l.Part.Part.Number <= part {
			return l, err
		}
		part = l.Part.Part.Number
	}
}

// Gaps returns the numbers that lack in the lanes of blobs, which are of any services and in order by
// their names. In hours with a compacted blob they lack by design.
func Gaps(blobs []Entry) (lacking []blobfmt.Name) {
	type hour struct {
		service string
		at      time.Time
	}
	of := func(e *Entry) hour { return hour{e.Name.Service, e.Hour()} }
	compacted := map[hour]bool{}
	for i := range blobs {
		if blobs[i].Meta.Compacted > 0 {
			compacted[of(&blobs[i])] = true
		}
	}
	var last blobfmt.Name
	for i := range blobs {
		n := blobs[i].Name
		if !n.SameLane(last) {
			last = n
			last.Number -= n.Number % blobfmt.LaneSize
		}
		for last.Number++; last.Number < n.Number; last.Number++ {
			if !compacted[of(&blobs[i])] {
				lacking = append(lacking, last)
			}
		}
	}
	return lacking
}

// Hash is that of the highest part, by its metadata; zero: there is none, or its metadata are damaged.
func (l *Listing) Hash() closed.Hash {
	d, _ := closed.ParseDigests(l.Part.Metadata)
	return d.SHA256
}

// Accounted reports whether the blobs of the listing are those of its part, by the metadata of that:
// nothing is missing, and nothing has come.
func (l *Listing) Accounted() bool {
	var sum closed.Digester
	for i := range l.Blobs {
		sum.Add(l.Blobs[i].Key, l.Blobs[i].Meta.Batch)
	}
	return l.Part.Accounts(sum.Sums(), 0, 24)
}

// Accounts reports whether a part has the blobs of the hours [from, to) that have the sums, by its
// metadata.
func (e *Entry) Accounts(sums closed.Sums, from, to int) bool {
	d, ok := closed.ParseDigests(e.Metadata)
	return ok && e.Part.Number > 0 && d.Agree(&sums, from, to)
}

// A Lookup returns the batches that a compacted blob replaces.
type Lookup func(e *Entry) ([]blobfmt.BatchID, error)

// Replaced looks up which batches blobs replace. Nobody knows what a damaged blob replaces, so it
// replaces nothing here.
type Replaced struct {
	look    Lookup
	batches map[blobfmt.BatchID]bool
	looked  map[string]bool
}

// NewReplaced returns a Replaced that has looked up nothing yet.
func NewReplaced(look Lookup) *Replaced {
	return &Replaced{look, map[blobfmt.BatchID]bool{}, map[string]bool{}}
}

// Read looks up compacted blobs.
func (r *Replaced) Read(compacted ...*Entry) error {
	for _, e := range compacted {
		if r.looked[e.Key] {
			continue
		}
		r.looked[e.Key] = true
		ids, err := r.look(e)
		if errors.As(err, new(*blobfmt.CorruptError)) || errors.Is(err, storage.ErrDamaged) || errors.Is(err, blobfmt.ErrNewer) {
			continue
		}
		if err != nil {
			return err
		}
		for _, id := range ids {
			r.batches[id] = true
		}
	}
	return nil
}

// Has reports whether a blob that was looked up replaces a batch.
func (r *Replaced) Has(batch blobfmt.BatchID) bool { return r.batches[batch] }

// Missing returns the blobs of a part that the listing lacks: their name has another batch or none,
// and no listed blob of their hour replaces them. The listing has to be younger than the part.
func (l *Listing) Missing(p *closed.Part, by *Replaced) (missing []closed.Blob, err error) {
	listed := map[string]*Entry{}
	compacted := map[time.Time][]*Entry{}
	for i := range l.Blobs {
		e := &l.Blobs[i]
		listed[e.Key] = e
		if e.Meta.Compacted > 0 {
			compacted[e.Hour()] = append(compacted[e.Hour()], e)
		}
	}
	for _, b := range p.Blobs {
		// A damaged blob has no batch, here and in the account.
		if e := listed[b.Key]; e != nil && (e.Meta.Batch == b.Batch || e.State != Sound || b.Batch == blobfmt.BatchID{}) {
			continue
		}
		if err := by.Read(compacted[b.First.Truncate(time.Hour)]...); err != nil {
			return nil, err
		}
		if !by.Has(b.Batch) {
			missing = append(missing, b)
		}
	}
	return missing, nil
}

// MissingError says that a blob of an account is not there, and no blob replaces it.
type MissingError struct{ closed.Blob }

func (e *MissingError) Error() string {
	s := "s"
	if e.Records == 1 {
		s = ""
	}
	return fmt.Sprintf("it is missing: the account of %s has it, with %d record%s from %s to %s. Was it removed by hand?",
		e.First.Format(time.DateOnly), e.Records, s, e.First.Format(time.TimeOnly), e.Last.Format(time.TimeOnly))
}
