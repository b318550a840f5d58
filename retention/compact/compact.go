// Package compact rewrites closed hours of many small blobs into few, which are compressed
// better, because they are written once and kept long.
//
// A scheduler calls [Run]. For each service and hour (UTC) of a day that is closed (package closing):
//
//	list the hour -> group its blobs -> write each group -> delete replaced blobs
//
// A group becomes one blob, of lane 99, which names the batches that it replaces. From
// then on readers ignore those. Replaced blobs are deleted in a later run, when the blob
// that replaces them is one grace old, so that no reader still uses them. Before that, it
// is read whole to check that it is sound and has every single record of theirs.
//
// A run may be interrupted anywhere and repeated. Two at once make the same blobs, since
// id and content of one follow from the replaced ones. A damaged blob is reported and
// left as it is.
//
// A run holds one group at a time: its blobs as they are stored, a block of each
// decoded, and the blob being made.
//
// # Why it is safe
//
//   - The new blob names the batches that it replaces. A reader that knows these names ignores the
//     old blobs. A reader that does not (it listed earlier, or cannot read the names) gets the same
//     records twice, under the same identities, and drops the copies as always. So the change has
//     no intermediate state. The account of the day tells it before the first old blob is deleted.
//   - Batches are named by id, never by blob name. A name is free again once its blob is gone,
//     and an ingester with late records takes it. For the same reason blobs are deleted in the
//     version that was listed.
//   - Another run deletes, a grace later, when every reader that listed the old blobs has ended
//     or stopped by itself. It deletes an old blob only if the account has it as replaced, and the
//     run found every record of it in a blob that stays: or in an erased one, which lacks some, if no
//     hold has the day. That costs one GET for each deleted blob, once. In return the run trusts
//     nothing: no listing, no id, no write of an earlier run.
//   - One group, one blob. If a group became two blobs, readers could use neither before both
//     were stored.
//   - Two runs that listed different blobs make results that overlap: readers drop the copies,
//     and a later run makes one of them.
//   - Contradictions stay. Damaged blobs, two contents of one id and two records of one identity
//     are reported, with exit code 3, and left for a person.
//   - A large blob is rewritten too, once, to be a seventh smaller for as long as the day is
//     kept. A lone one of less than 1 MiB of lines waits for more.
//
// The price is that an hour is stored twice for a grace, and paid for twice for the days that
// deleted blobs can be restored. Few records come later than a day; that is why an hour waits
// until its day is closed.
package compact

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/storage"
)

// Options tune a run. The zero value works.
type Options struct {
	// Grace is how long a replaced blob stays, for readers that have listed it; 0: an
	// hour. A negative value means no grace, for stores without readers.
	Grace time.Duration
	// Target is the most lines in a blob, in bytes; 0: 128 MiB. Compacted blobs of half
	// of it are not rewritten, unless they overlap; overlapping ones may be joined up
	// to twice the target.
	Target int64
	// Level is the compression level of the new blobs; 0: linezstd's slow mode.
	Level zstd.EncoderLevel
	// Services are names, or valid globs, see [record.MatchService]; `*` matches no name
	// that begins with "_". None: all services, and rejected records.
	Services []string
	// Now is the store's time; nil: the store's clock, or time.Now if it has none. It
	// is called once.
	Now func() time.Time
	// Key signs the root of the run; nil: it is not signed.
	Key ed25519.PrivateKey
	// Progress counts the services; nil: nobody waits.
	Progress *progress.Counter
	Log      zerolog.Logger
}

// Result counts the work of a run. Problems make it incomplete; each names a blob or
// the prefix of an hour, which were left as they were.
type Result struct {
	Services, Hours int      // examined; hours are those with work
	Unmatched       []string // of Options.Services, names and globs that match no service

	In, Out           int // blobs rewritten, and blobs made of them
	BytesIn, BytesOut int64
	Records           int64 // written
	Deleted, Waiting  int   // replaced blobs that were deleted, and that have to stay for now
	Freed             int64 // bytes of Deleted
	Held              int   // replaced blobs that a policy of the store keeps
	Unclosed          int   // days of services that are over and have no account, which were left alone

	Foreign  int // objects under a service that are not our blobs
	Problems []error
}

// blockSize is that of compacted blobs, in bytes of lines. Larger blocks compress better, and
// old records are read less often.
const blockSize = 1 << 20

// maxFailures is how many hours in a row may fail because of the store before a run
// gives up.
const maxFailures = 3

// Run goes through the store once. An error ends it early; the Result has the work up
// to then. The error wraps storage.ErrNotExist if the store does not exist.
func Run(ctx context.Context, store storage.BlobStore, o Options) (Result, error) {
	o.Grace = max(0, cmp.Or(o.Grace, time.Hour))
	o.Target = cmp.Or(o.Target, 128<<20)
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{Level: o.Level, Slow: o.Level == 0, BlockSize: blockSize})
	if err != nil {
		return Result{}, err
	}
	r := &run{o: o, store: store, enc: enc, dec: blobfmt.NewDecoder(1), seed: maphash.MakeSeed()}
	if o.Now != nil {
		r.now = o.Now()
	} else if r.now, err = storage.Now(ctx, store, time.Now()); err != nil {
		return r.out, err
	}
	services, err := r.services(ctx)
	r.view = catalog.NewView(store, services, horizon.Checked{})
	r.closer = closing.NewCloser(store, r.now)
	o.Progress.Expect(len(services), 0)
	for i := 0; i < len(services) && err == nil; i++ {
		r.out.Services++
		err = r.service(ctx, services[i])
		o.Progress.Finish(1, 0)
	}
	if err == nil && r.closer.Added() {
		_, err = r.closer.Root(ctx, o.Key, 0)
	}
	return r.out, err
}

// run is one pass through the store.
type run struct {
	o      Options
	store  storage.BlobStore
	view   *catalog.View
	now    time.Time
	enc    *blobfmt.Encoder
	dec    *blobfmt.Decoder
	seed   maphash.Seed
	out    Result
	closer *closing.Closer
	fails  int // hours in a row
}

// step does one hour that may have work. A request that the store refuses for one hour
// may work for the next. Repeated refusals end the run.
func (r *run) step(ctx context.Context, u *unit) error {
	r.out.Hours++
	err := r.hour(ctx, u)
	if err == nil {
		r.fails = 0
		return nil
	}
	return r.failed(ctx, u.prefix(), err)
}

// failed counts a failure of the store, and returns it if the run has to end.
func (r *run) failed(ctx context.Context, key string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errMoved), errors.Is(err, storage.ErrNotExist):
		// Another run works on this, or retention does. The next run retries it.
		r.o.Log.Info().Str("at", key).AnErr("why", err).Msg("it changed while it was compacted; left for the next run")
		return nil
	}
	r.fails++
	if r.fails >= maxFailures || errors.Is(err, storage.ErrUnauthorized) {
		return fmt.Errorf("compact %s: %w", key, err)
	}
	r.problem(key, err)
	return nil
}

func (r *run) problem(key string, err error) {
	r.out.Problems = append(r.out.Problems, fmt.Errorf("%s: %w", key, err))
	r.o.Log.Warn().Str("blob", key).Err(err).Msg("left as it is")
}

// services lists the wanted services of the store.
func (r *run) services(ctx context.Context) ([]string, error) {
	names, err := catalog.Services(ctx, r.store)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(service string) bool {
		return len(r.o.Services) > 0 && !slices.ContainsFunc(r.o.Services, func(glob string) bool { return record.MatchService(glob, service) })
	})
	for _, glob := range r.o.Services {
		if !slices.ContainsFunc(names, func(service string) bool { return record.MatchService(glob, service) }) {
			r.out.Unmatched = append(r.out.Unmatched, glob)
		}
	}
	return names, nil
}
