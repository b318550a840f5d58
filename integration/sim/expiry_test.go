package sim_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// oldDays is the number of days before the epoch that records may come from, in worlds
// that drop days.
const oldDays = 3

// expiry drops days of services while ingesters live and die. It knows the records that
// may be missing for that reason, and the blobs that may no longer be put.
type expiry struct {
	w *world

	mu       sync.Mutex
	since    map[day]time.Time // when a day was dropped first
	records  map[string]day    // by their ids
	promised []string          // acknowledged
}

type day struct {
	service string
	day     horizon.Day
}

func newExpiry(w *world) *expiry {
	return &expiry{w: w, since: map[day]time.Time{}, records: map[string]day{}}
}

// now is the ingesters' clock.
func (x *expiry) now() time.Time { return epoch.Add(time.Since(x.w.start)) }

// composed notes the day of a record.
func (x *expiry) composed(id, service string, at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.records[id] = day{service, horizon.DayOfNs(at)}
}

// run drops some days, one after another.
func (x *expiry) run(rng *rand.Rand) {
	for range 1 + rng.IntN(5) {
		time.Sleep(time.Duration(rng.IntN(400)) * time.Second)
		service := string(rune('a' + rng.IntN(x.w.p.Services)))
		today := horizon.DayOf(epoch)
		d := today - horizon.Day(rng.IntN(oldDays))
		var err error
		from := d
		if rng.IntN(3) == 0 {
			err = horizon.Drop(context.Background(), x.w.store.Store, service, d)
		} else {
			if rng.IntN(6) == 0 {
				d = today // a later day is of no policy, and ignored
			}
			err = horizon.Publish(context.Background(), x.w.store.Store, service, d)
			from, d = today-oldDays, d-1
		}
		if err != nil {
			x.w.trouble("drop a day: %v", err)
		}
		x.dropped(service, from, d)
		x.w.count(&x.w.totals.raised)
	}
}

func (x *expiry) dropped(service string, from, to horizon.Day) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for d := from; d <= to; d++ {
		if _, ok := x.since[day{service, d}]; !ok {
			x.since[day{service, d}] = time.Now()
		}
	}
}

// hides reports whether a record has been dropped by now.
func (x *expiry) hides(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, dropped := x.since[x.records[id]]
	return dropped
}

// put checks an attempt to create a blob: none may begin later than two minutes after
// its day was dropped.
func (x *expiry) put(key string) {
	name, err := blobfmt.ParseName(key)
	if err != nil {
		x.w.violation("put: %v", err)
		return
	}
	x.mu.Lock()
	since, dropped := x.since[day{name.Service, horizon.DayOf(name.Period)}]
	x.mu.Unlock()
	if late := time.Since(since); dropped && late > 2*time.Minute {
		x.w.violation("%s is put %s after its day was dropped", key, late)
	}
}

// acknowledged notes the records acknowledged to senders. Records dropped later may go,
// so the ledger learns of the rest only at the end.
func (x *expiry) acknowledged(ids []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.promised = append(x.promised, ids...)
}

// settle tells the ledger which records have to be there.
func (x *expiry) settle() {
	for _, id := range x.promised {
		if !x.hides(id) {
			x.w.ledger.Acked(id)
		}
	}
	for id := range x.records {
		if x.hides(id) {
			x.w.ledger.Rejected(id) // it must not be shown
		}
	}
}

// acknowledged notes that records were acknowledged to their senders.
func (w *world) acknowledged(ids []string) {
	if w.expiry != nil {
		w.expiry.acknowledged(ids)
	} else {
		w.ledger.Acked(ids...)
	}
}

// hides reports whether a record may be missing because its day was dropped.
func (w *world) hides(id string) bool { return w.expiry != nil && w.expiry.hides(id) }

// slowList is a listing that may be outdated by the time it arrives.
func (s *storeOf) slowList(ctx context.Context, prefix string, all iter.Seq2[storage.Blob, error]) iter.Seq2[storage.Blob, error] {
	rng := s.w.fate("slow list", s.ingester, prefix)
	if !strings.HasPrefix(prefix, "_") || s.w.isQuiet() || rng.IntN(4) > 0 {
		return all
	}
	return func(yield func(storage.Blob, error) bool) {
		type item struct {
			b   storage.Blob
			err error
		}
		var items []item
		for b, err := range all {
			items = append(items, item{b, err})
		}
		if !wait(ctx, time.Duration(rng.IntN(40))*time.Second) {
			yield(storage.Blob{}, ctx.Err())
			return
		}
		for _, i := range items {
			if !yield(i.b, i.err) {
				return
			}
		}
	}
}
