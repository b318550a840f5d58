// Package erase removes the records that match an expression from all blobs and tables of a store.
//
//	plan -> mark the days -> erased blobs -> parts -> wait -> delete the replaced -> wait -> list again
//
// A blob with a match is replaced by an erased one, which has its other records and names it in its
// section. Each reader reads that section (docs/FORMAT.md). The run ends when a pass that began
// [erasure.Patience] after the last change has found nothing. It may be killed anywhere and repeated.
//
//   - No record comes back. A blob that comes behind the last listing has new records, or a batch id
//     that an erased blob names: an ingester may put it again until it has noted that it is stored. So
//     the run waits until no ingester holds a record from before its begin. A blob of blobs came
//     [erasure.Longest] after a look at its sources at most, so before the last listing; the maker of
//     a later one takes it back.
//   - No other record is lost. An erased blob is compared with its source before it is stored. The
//     source is deleted a patience later, while an erased blob that is not replaced itself names it and
//     is sound as it is stored. The account of the day tells before.
package erase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/erasure"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/internal/units"
	"blobtail/internal/where"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Options are what is erased.
type Options struct {
	Where *where.Expr // matches the records
	// Services are names, or globs, see [record.MatchService]; none: all. Rejected records that were
	// meant for one of them are searched too.
	Services []string
	From, To horizon.Day // the first and the last day; 0: there is none
	// Patience is how long after its last change the run lists again; 0: [erasure.Patience]. A
	// negative value is for a store that nothing else works on.
	Patience time.Duration
	// Held names the hold that a day has, "" for none. nil: no day has one.
	Held func(ctx context.Context, service string, day horizon.Day) (hold string, err error)
	// Tail has the Prefix, the Shards and the Store of the tables of the newest records.
	Tail    tailindex.Options
	Store   string // the caller's name of the store
	Confirm string // the hash of the plan
	// Key signs the root of the run; nil: it is not signed.
	Key      ed25519.PrivateKey
	Progress *progress.Counter
	Log      zerolog.Logger
}

// Result is the plan of a run and its work.
type Result struct {
	// Days are those with a match that were found last. A record that is in two blobs counts twice.
	Days     []retention.Day
	Rows     int64 // matching lines in tables, that were found last
	Hash     string
	Made     int // erased blobs
	Records  int64
	Lines    int64 // erased in tables
	Deleted  int   // blobs that were replaced
	Problems []error
}

func (r *Result) nothing() bool { return len(r.Days) == 0 && r.Rows == 0 }

// blobID tells the content of a blob.
type blobID struct{ key, version string }

type run struct {
	o          Options
	blobs      storage.BlobStore
	tables     storage.TableStore
	expr       [sha256.Size]byte
	begun, now time.Time
	enc        *blobfmt.Encoder
	closer     *closing.Closer
	out        *Result
	told       map[string]bool

	mu      sync.Mutex
	matches map[blobID]int64 // that were counted
}

// Run erases. Without the right confirmation it changes nothing: the error is a
// *[retention.ConfirmError] then, if something matches, and the result has the plan.
func Run(ctx context.Context, blobs storage.BlobStore, tables storage.TableStore, o Options) (*Result, error) {
	o.Patience = max(0, cmp.Or(o.Patience, erasure.Patience))
	r := &run{o: o, blobs: blobs, tables: tables, expr: sha256.Sum256([]byte(o.Where.String())),
		out: &Result{}, matches: map[blobID]int64{}, told: map[string]bool{}}
	var err error
	if r.enc, err = blobfmt.NewEncoder(blobfmt.EncoderOptions{Slow: true, BlockSize: 1 << 20}); err == nil {
		err = r.search(ctx)
	}
	if err != nil {
		return r.out, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "erase 1\nstore %s\nwhere %s\n", o.Store, o.Where)
	for _, d := range r.out.Days {
		fmt.Fprintf(h, "%s %s\n", d.Service, d.Day)
	}
	if r.out.Hash = fmt.Sprintf("%x", h.Sum(nil)); r.out.nothing() {
		return r.out, nil
	}
	if err := retention.Confirmed("a record that is erased never comes back", r.out.Hash, o.Confirm); err != nil {
		return r.out, err
	}
	r.begun, r.closer = r.now, closing.NewCloser(blobs, r.now)
	for idle := 0; idle < 3 && err == nil; {
		did := *r.out
		for _, step := range []func(context.Context) error{r.pass, r.wait, r.search} {
			err = cmp.Or(err, step(ctx))
		}
		if r.out.nothing() {
			break
		}
		if idle++; did.Made+did.Deleted != r.out.Made+r.out.Deleted || did.Lines != r.out.Lines {
			idle = 0
		}
	}
	for _, d := range r.out.Days {
		if err == nil {
			r.problem(d.Service+" of "+d.Day.String(), fmt.Errorf("%s could not be replaced or deleted", units.Count(d.Blobs, "blob")))
		}
	}
	if r.closer.Added() {
		_, rerr := r.closer.Root(ctx, o.Key, 0)
		err = cmp.Or(err, rerr)
	}
	return r.out, err
}

// problem tells a problem once.
func (r *run) problem(at string, err error) {
	if text := at + err.Error(); !r.told[text] {
		r.told[text] = true
		r.out.Problems = append(r.out.Problems, fmt.Errorf("%s: %w", at, err))
		r.o.Log.Warn().Str("at", at).Err(err).Msg("not erased as it should be")
	}
}

// asked reports whether the options name a service.
func (r *run) asked(service string) bool {
	matches := func(glob string) bool { return record.MatchService(glob, service) }
	return len(r.o.Services) == 0 || slices.ContainsFunc(r.o.Services, matches)
}

// match reports whether a line is to be erased. A rejected one has to be meant for a service that is
// asked for, if it tells which.
func (r *run) match(service string, line []byte) bool {
	if meant, ok := record.Lookup(line, "service.name"); ok && service == record.RejectedService && !r.asked(service) {
		if !r.asked(string(bytes.Trim(meant, `"`))) {
			return false
		}
	}
	return r.o.Where.Match(bytes.TrimSuffix(line, []byte("\n")))
}

// services lists the services to be searched.
func (r *run) services(ctx context.Context) ([]string, error) {
	names, err := catalog.Services(ctx, r.blobs)
	return slices.DeleteFunc(names, func(name string) bool { return name != record.RejectedService && !r.asked(name) }), err
}

// search lists the services, and finds the days with blobs that match, and the lines of tables.
func (r *run) search(ctx context.Context) (err error) {
	if r.now, err = storage.Now(ctx, r.blobs, time.Now()); err != nil {
		return err
	}
	services, err := r.services(ctx)
	if err != nil {
		return err
	}
	rng := catalog.Range{}
	if r.o.From != 0 {
		rng.From = r.o.From.Start()
	}
	if r.o.To != 0 {
		rng.To = (r.o.To + 1).Start()
	}
	r.out.Days = nil
	view := catalog.NewView(r.blobs, services, horizon.Checked{})
	for _, service := range services {
		for l, err := range view.Listings(ctx, service, rng) {
			if err != nil {
				return err
			}
			matching, err := r.look(ctx, l)
			if err != nil {
				return err
			}
			d := retention.Day{Service: service, Day: l.Day, Step: "erase", Blobs: len(matching)}
			for _, e := range matching {
				d.Records += r.matches[blobID{e.Key, e.Version}]
				d.Bytes += e.Size
			}
			if d.Blobs > 0 {
				r.out.Days = append(r.out.Days, d)
			}
		}
	}
	if n, why := r.o.Where.Unjudged(); n > 0 {
		r.problem("--where", fmt.Errorf("some records could not be judged: %w", why))
	}
	r.out.Rows, err = r.tail(ctx, services, true)
	return err
}

// tail has the tables of the newest records without the lines that match, or counts these.
func (r *run) tail(ctx context.Context, services []string, dry bool) (lines int64, err error) {
	if r.o.Tail.Prefix == "" {
		return 0, nil
	}
	within := func(d horizon.Day, before, after horizon.Day) bool {
		return (r.o.From == 0 || d >= r.o.From-before) && (r.o.To == 0 || d <= r.o.To+after)
	}
	lines, err = tailindex.Erase(ctx, r.tables, r.o.Tail, tailindex.Erasure{
		Services: services, Dry: dry,
		// A row has records from a day before its arrival to ten minutes after it.
		Wanted: func(day time.Time) bool { return within(horizon.DayOf(day), 1, 1) },
		Match: func(service string, line []byte) bool {
			t, _ := record.LineTime(line)
			return within(horizon.DayOfNs(t), 0, 0) && r.match(service, line)
		},
	})
	if errors.As(err, new(*tailindex.RowError)) {
		r.problem("tables of the newest records", err)
		err = nil
	}
	return lines, err
}
