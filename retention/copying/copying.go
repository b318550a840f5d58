// Package copying copies a store to another one: for a backup, a rehearsal, or a move.
//
// A copy has the blobs of its original, the accounts of closed days and the marks of package
// retention, with their names, bytes and metadata. Tables belong to the ingesters of the original.
// [Run] takes what the copy lacks, so the next run goes on after a kill.
//
// A reader of the copy may come at any time. So a blob comes before the part that names it, a part
// before its root, and what hides or replaces a blob before that blob goes. Roots are listed first: the
// parts that they name are listed later. A day is listed just before it is copied, in the copy and then
// in the original: what another copier has brought is seen in the original too.
//
// An object goes if the original has not got it any more for a reason: its day has expired or was dropped,
// or another blob of the copy replaces it. Another one was lost: the copy keeps it, and the run names it.
package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/erasure"
	"blobtail/catalog/horizon"
	"blobtail/internal/lease"
	"blobtail/internal/progress"
	"blobtail/internal/storeid"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

const (
	servicesAtOnce = 4
	blobsAtOnce    = 8 // of each service
	// mostBytes of objects are in memory at once; each counts for leastBytes at least.
	mostBytes, leastBytes = 256 << 20, 4 << 20
	attempts              = 10 // how often a day is listed because it changes while it is copied
)

// Options say what to copy. Tables and Now must be set.
type Options struct {
	// Tables has the rows of the original's ingesters, under its Name.
	Tables storage.TableStore
	Name   string
	// Services are names and globs, those of the first run; nil: all.
	Services []string
	// Since is the first day to look at, tomorrow at most; 0: all. Of earlier ones a run takes those that the
	// copy has and that a new root names or an erasure has marked since. Runs without it find what came late.
	Since     horizon.Day
	Bandwidth int64             // bytes a second at most; 0: any number
	Progress  *progress.Counter // of objects; nil: they are not counted
	Now       func() time.Time
}

// Result is the work of a run.
type Result struct {
	Services, Copied, Deleted int // Copied and Deleted are objects
	Bytes                     int64
	// Whole is what the copy has; without a Through a problem says why.
	Whole    storeid.Extent
	Problems []error // what could not be done; the rest was
}

type copier struct {
	from, to storage.BlobStore
	o        Options
	id       string // of the original
	original *storeid.CopyError
	was      storeid.Extent      // what the copy had
	room     *semaphore.Weighted // bytes in memory
	turn     *semaphore.Weighted // to take bandwidth
	seed     maphash.Seed

	mu      sync.Mutex
	did     Result
	gone    map[daily][]storage.Blob // what the original does not have any more
	partial bool                     // an object is not in the copy

	// early are days before the first one that have changed since the last run.
	early closed.Parts
}

// daily are the objects of a service and a day.
type daily struct {
	service string
	day     horizon.Day
}

// Run copies what a copy lacks of its original, and deletes what the original has deleted. It makes
// an empty store a copy.
func Run(ctx context.Context, from, to storage.BlobStore, o Options) (Result, error) {
	c := &copier{from: from, to: to, o: o, room: semaphore.NewWeighted(mostBytes), turn: semaphore.NewWeighted(1),
		seed: maphash.MakeSeed(), gone: map[daily][]storage.Blob{}, early: closed.Parts{}}
	err := c.run(ctx)
	return c.did, err
}

func (c *copier) run(ctx context.Context) error {
	if err := c.identify(ctx, true); err != nil {
		return err
	}
	began := c.o.Now()
	whole, unknown := c.extent(ctx)
	roots, err := c.compare(ctx, closed.RootPrefix)
	if err == nil && c.o.Since != 0 && !c.was.Through.IsZero() {
		err = c.changed(ctx, roots.lacks)
	}
	services, serr := c.services(ctx)
	if err = cmp.Or(err, serr); err != nil {
		return err
	}
	c.did.Services = len(services)
	errs := fanout.All(len(services), servicesAtOnce, func(i int) error { return c.service(ctx, services[i]) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := c.bring(ctx, roots.lacks); err != nil {
		return err
	}
	if err := c.identify(ctx, false); err != nil { // a disk is away, or the copy was promoted
		return err
	}
	for _, prefix := range []string{"_horizon/", "_dropped/", "_hold/", "_erase/", "_policy/", "_clock/", "_imported/"} {
		marks, err := c.compare(ctx, prefix)
		if err == nil {
			_, err = c.bring(ctx, marks.lacks)
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) { // one that went meanwhile need not come
			return err
		}
		c.remove(ctx, marks.surplus)
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	if unknown != nil {
		c.problem(fmt.Errorf("up to when the copy is whole is not known: %w", unknown), true)
	}
	if c.partial {
		return nil
	}
	c.did.Whole = whole
	return whole.Ended(ctx, c.to, began)
}

func (c *copier) problem(err error, partial bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did.Problems, c.partial = append(c.did.Problems, err), c.partial || partial
}

// identify checks that the stores are an original and its copy, which it makes at the begin.
func (c *copier) identify(ctx context.Context, begin bool) (err error) {
	if c.id, err = storeid.Read(ctx, c.from); errors.As(err, &c.original) {
		err = nil
	}
	if err == nil && c.id == "" {
		err = fmt.Errorf("%w: the original has no object %s; is its disk mounted?", storeid.ErrNoCopy, storeid.Key)
	}
	if err == nil {
		if c.was, err = storeid.EnsureCopy(ctx, c.to, c.id, c.o.Services, begin); err != nil && !errors.Is(err, storeid.ErrNoCopy) {
			err = fmt.Errorf("the copy: %w", err)
		}
	}
	return err
}

// extent is the span in which the copy will be whole: up to the least floor of the ingesters that
// hold records. A record before it that is acknowledged by now is in a blob. It ends before now by
// each clock, because one of them may be wrong.
func (c *copier) extent(ctx context.Context) (e storeid.Extent, err error) {
	ends := []time.Time{c.o.Now()}
	var rows []lease.Ingester
	if c.original != nil {
		e.From, ends, err = c.original.From, append(ends, c.original.Through), c.original.Lacks(math.MaxInt64, math.MinInt64)
	} else if rows, err = lease.List(ctx, c.o.Tables, c.o.Name); len(rows) == 0 && (err == nil || errors.Is(err, storage.ErrNotExist)) {
		err = errors.New("no ingester has a row in the table of the original")
	}
	for _, i := range rows {
		switch {
		case i.State == lease.Stopped, i.State == lease.Idle && !i.BestEffort:
		case i.Floor.IsZero(), i.BestEffort, i.StoreID != c.id:
			err = errors.Join(err, fmt.Errorf("ingester %s on %s may hold records of any time that are in no blob", i.ID, i.Host))
		default:
			ends = append(ends, i.Floor)
		}
	}
	for _, store := range []storage.BlobStore{c.from, c.to} {
		now, nerr := storage.Now(ctx, store, ends[0])
		err, ends = errors.Join(err, nerr), append(ends, now)
	}
	e.Through = slices.MinFunc(ends, time.Time.Compare).UTC()
	if c.o.Since != 0 {
		from := c.o.Since.Start()
		if !c.was.Through.Before(from) {
			from = c.was.From
		}
		e.From = slices.MaxFunc([]time.Time{e.From, from}, time.Time.Compare)
	}
	return e, err
}

// services are those of both stores.
func (c *copier) services(ctx context.Context) ([]string, error) {
	there, err := catalog.Services(ctx, c.to)
	here, herr := catalog.Services(ctx, c.from)
	all := slices.DeleteFunc(slices.Concat(there, here), func(name string) bool {
		return c.o.Services != nil && !slices.ContainsFunc(c.o.Services, func(glob string) bool { return record.MatchService(glob, name) })
	})
	slices.Sort(all)
	return slices.Compact(all), cmp.Or(err, herr)
}

// changed finds the days before the first one that new roots name, or that were marked since. A root that
// cannot be read does not come either.
func (c *copier) changed(ctx context.Context, roots []storage.Blob) error {
	for i := range roots {
		body, _ := catalog.Read(ctx, c.from, roots[i].Key, 0, -1)
		if root, err := closed.ParseRoot(roots[i].Key, body); err == nil {
			c.early.Add(root.Days)
		}
	}
	marked, err := erasure.Marked(ctx, c.from, c.o.Since.Start())
	for dir := range marked {
		service, day, _ := strings.Cut(dir, "/")
		if at, err := time.Parse("2006/01/02", day); err == nil {
			c.early.Set(horizon.DayOf(at), service, closed.Hash{})
		}
	}
	return err
}

// service copies the days of a service that may have different objects in the two stores.
func (c *copier) service(ctx context.Context, name string) error {
	sums := map[horizon.Day]uint64{} // of the objects of a day; those that are in both stores add nothing
	both := []storage.BlobStore{c.to, c.from}
	for day := c.o.Since; day != 0 && day <= horizon.DayOf(c.o.Now())+1; day++ { // no record is from later
		sums[day] = 1
	}
	if c.o.Since != 0 {
		both = nil
	}
	for text, services := range c.early {
		day, err := horizon.ParseDay(text)
		if _, ok := services[closed.Alias(name)]; ok && err == nil && !day.Start().Before(c.was.From) {
			sums[day] = 1
		}
	}
	for _, store := range both { // but with a first day
		for b, err := range store.List(ctx, name+"/", "") {
			if err != nil {
				return err
			}
			if day, ours := dayOf(b.Key); ours {
				sums[day] ^= c.sum(&b)
			}
		}
	}
	for _, day := range slices.Sorted(maps.Keys(sums)) {
		if sums[day] == 0 {
			continue
		}
		if err := c.day(ctx, daily{name, day}); err != nil {
			return err
		}
	}
	return nil
}

// sum stands for an object, as far as a listing tells. It leaves out the Content-Type:
// a service has one of its own for an object without.
func (c *copier) sum(b *storage.Blob) uint64 {
	return maphash.String(c.seed, fmt.Sprint(b.Key, b.Size, b.ContentEncoding, b.Metadata))
}
