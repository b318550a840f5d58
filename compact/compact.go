// Package compact rewrites closed hours of many small blobs into few, at a better level
// of compression.
//
// Make a [Compactor] and let [Compactor.Run] look through the store once, from a
// scheduler. For each service and hour (UTC) that ended a day ago or more:
//
//	list the hour -> remove what is replaced -> group the rest -> write each group
//
// A group becomes one blob, of lane 99, which names the batches that it replaces;
// from then on readers ignore those, and a reader that does not know of it yet
// still finds everything, and drops the copies. Replaced blobs are deleted in a later
// run, when no reader can still use them: not before the blob that replaces them is
// one grace old, was read whole, is sound, and was seen to hold every single record of
// theirs. So nothing is deleted on the word of a listing.
//
// Everything may be interrupted anywhere and done again. Two at once make the same
// blobs, for id and content of one follow from the replaced ones. If they saw different
// blobs their results overlap: readers cope with that, and a later run fixes it as far
// as that makes no larger blobs. A damaged blob is reported and left as it is.
//
// A run holds one group at a time: its blobs as they are stored, a block of each
// decoded, and the blob being made.
package compact

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

// Options tune a Compactor. The zero value works.
type Options struct {
	// Grace is for how long a replaced blob stays, for readers that have listed it;
	// 0: an hour. Below zero there is none, which is for stores that nobody reads.
	Grace time.Duration
	// Closed is how long ago an hour must have ended; 0: a day. Below zero it need
	// only have ended.
	Closed time.Duration
	// Target is the most lines in a blob, in bytes; 0: 128 MiB. Compacted blobs of
	// half of it are not touched again, but where they overlap: of these it may be
	// twice as much.
	Target int64
	// Level is that of the new blobs; 0: zstd.SpeedBetterCompression.
	Level zstd.EncoderLevel
	// Services are names, or globs as of path.Match, of which `*` matches no name
	// that begins with "_"; none: all, and what was rejected.
	Services []string
	// Now is the store's time; nil: as the store says, or time.Now where it has no
	// clock. It is asked once a run.
	Now func() time.Time
	Log zerolog.Logger
}

// Compactor compacts one store.
type Compactor struct {
	o     Options
	store storage.BlobStore
}

// New returns a Compactor. It starts nothing and asks the store nothing.
func New(store storage.BlobStore, o Options) *Compactor {
	o.Grace = orDefault(o.Grace, time.Hour)
	o.Closed = orDefault(o.Closed, 24*time.Hour)
	if o.Target <= 0 {
		o.Target = 128 << 20
	}
	if o.Level == 0 {
		o.Level = zstd.SpeedBetterCompression
	}
	return &Compactor{o: o, store: store}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return max(d, 0)
}

// Result counts the work of a run. Problems make it incomplete; their blobs were left
// as they were.
type Result struct {
	Services, Hours int      // looked at; hours are those with something to do
	Unmatched       []string // of Options.Services, which no service is called

	In, Out             int // blobs rewritten, and blobs made of them
	BytesIn, BytesOut   int64
	Records, Copies     int64 // written; and not, because they stood there twice
	Deleted, Waiting    int   // replaced blobs that went, and that have to stay for now
	Freed, BytesWaiting int64

	Foreign  int // objects under a service that are no blobs of ours
	Requests Requests
	Problems []error
}

// Requests are the calls of the store; a List may be several requests, and so may
// a Delete.
type Requests struct{ Dirs, List, Get, Stat, Create, Delete int }

// Problem is something of the store that could not be compacted.
type Problem struct {
	Key string // of a blob, or the prefix of an hour
	Err error
}

func (p *Problem) Error() string { return fmt.Sprintf("%s: %v", p.Key, p.Err) }
func (p *Problem) Unwrap() error { return p.Err }

// maxFailures is how many hours in a row may fail for the store's sake before a
// run gives up.
const maxFailures = 3

// Run looks through the store once. An error ends it early; the Result has the work up
// to then. The error wraps storage.ErrNotExist if the store does not exist.
func (c *Compactor) Run(ctx context.Context) (Result, error) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{Level: c.o.Level})
	if err != nil {
		return Result{}, err
	}
	dec, err := blobfmt.NewDecoder()
	if err != nil {
		return Result{}, err
	}
	r := &run{o: c.o, enc: enc, dec: dec}
	r.store = &counted{BlobStore: c.store}
	if r.now, err = c.now(ctx); err != nil {
		return r.out, err
	}
	err = r.all(ctx)
	r.out.Requests = r.store.counts()
	return r.out, err
}

func (c *Compactor) now(ctx context.Context) (time.Time, error) {
	if c.o.Now != nil {
		return c.o.Now(), nil
	}
	clock, ok := c.store.(storage.Clock)
	if !ok {
		return time.Now(), nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return now, fmt.Errorf("ask the store for its time: %w", err)
	}
	return now, nil
}

// run is one look through the store.
type run struct {
	o     Options
	store *counted
	view  *catalog.View
	now   time.Time
	enc   *blobfmt.Encoder
	dec   *blobfmt.Decoder
	out   Result
	fails int // hours in a row
}

func (r *run) all(ctx context.Context) error {
	services, err := r.services(ctx)
	if err != nil || len(services) == 0 {
		return err
	}
	r.view = catalog.NewView(r.store, services, nil)
	for _, service := range services {
		r.out.Services++
		hours, err := r.hours(ctx, service)
		if err != nil {
			return err
		}
		for _, h := range hours {
			if err := r.step(ctx, service, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// step does one hour. What the store refuses for one hour may work for the next;
// what it refuses again and again ends the run.
func (r *run) step(ctx context.Context, service string, hour time.Time) error {
	r.out.Hours++
	err := r.hour(ctx, service, hour)
	switch {
	case err == nil:
		r.fails = 0
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errMoved):
		// Another one is at this hour, or retention is. The next run sees it anew.
		r.o.Log.Info().Str("service", service).Time("hour", hour).Msg("the hour changed while it was compacted; left for the next run")
		return nil
	}
	r.fails++
	if r.fails >= maxFailures || errors.Is(err, storage.ErrUnauthorized) {
		return fmt.Errorf("compact %s: %w", hourPrefix(service, hour), err)
	}
	r.problem(hourPrefix(service, hour), err)
	return nil
}

func (r *run) problem(key string, err error) {
	r.out.Problems = append(r.out.Problems, &Problem{Key: key, Err: err})
	r.o.Log.Warn().Str("blob", key).Err(err).Msg("left as it is")
}

// services lists the names of the store that are wanted.
func (r *run) services(ctx context.Context) ([]string, error) {
	for _, glob := range r.o.Services {
		if !record.ValidPattern(glob) {
			return nil, fmt.Errorf("glob %q: %w", glob, path.ErrBadPattern)
		}
	}
	names, err := catalog.Services(ctx, r.store)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(service string) bool { return !r.wants(service) })
	for _, glob := range r.o.Services {
		if !slices.ContainsFunc(names, func(service string) bool { return record.MatchService(glob, service) }) {
			r.out.Unmatched = append(r.out.Unmatched, glob)
		}
	}
	return names, nil
}

func (r *run) wants(service string) bool {
	return len(r.o.Services) == 0 || slices.ContainsFunc(r.o.Services, func(glob string) bool { return record.MatchService(glob, service) })
}
