// Package erase removes the records that match an expression from all blobs and tables of a store.
//
//	plan -> mark the days -> erased blobs -> parts -> wait -> delete the replaced -> wait -> list again
//
// A blob with a match is replaced by an erased one, which has its other records and names it in its
// section. Each reader reads that section (docs/operate/privacy.md). The run ends when a pass that began
// [erasure.Patience] after the last change has found nothing from before it. It may be killed anywhere
// and repeated.
//
//   - No record comes back. A blob that comes behind the last listing has new records, or an id that an
//     erased blob names: the run waits until no ingester holds a record from before. A blob of blobs
//     came [erasure.Longest] after a look at its sources at most; the maker of a later one takes it back.
//   - No other record is lost. An erased blob is compared with its source before it is stored. The
//     source is deleted a patience later, while a live erased blob that names it is sound as stored.
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
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/erasure"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/internal/spelling"
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
	Range    catalog.Range // From and To of whole days, by the records' times
	// Patience is how long after its last change the run lists again; 0: [erasure.Patience]. A
	// negative value is for a store that nothing else works on.
	Patience time.Duration
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
	// Days are those with a match that were found last. They count each blob with one, and the records of
	// those that are not replaced.
	Days     []retention.Day
	Rows     int64 // matching lines in tables, that were found last
	Late     int64 // matching records and lines that came while the run worked, and were left
	Services int   // that were searched last, with so many
	Blobs    int   // and
	Stored   int64 // records
	Hash     string
	Made     int // erased blobs
	Records  int64
	Lines    int64 // erased in tables
	Deleted  int   // blobs that were replaced
	Problems []error
}

func (r *Result) nothing() bool { return len(r.Days) == 0 && r.Rows == 0 }

func (r *Result) did() int64 { return int64(r.Made+r.Deleted) + r.Lines }

type run struct {
	o          Options
	blobs      storage.BlobStore
	tables     storage.TableStore
	expr       [sha256.Size]byte
	begun, now time.Time
	marked     time.Time // the day in work, last
	until      time.Time // what is stored later came in too late for the run; zero: this is not known yet
	swept      bool      // the tables were, behind until
	services   []string  // to be searched
	enc        *blobfmt.Encoder
	closer     *closing.Closer
	out        *Result
	matches    map[[2]string]int64 // in blobs, by key and version
	replaced   map[blobfmt.BatchID]bool
}

// clocks is how far the clock of a store, which has whole seconds, and what an ingester knows of it differ.
const clocks = 5 * time.Second

// Run erases. Without the right confirmation it changes nothing: the error is a
// *[retention.ConfirmError] then, if something matches, and the result has the plan.
func Run(ctx context.Context, blobs storage.BlobStore, tables storage.TableStore, o Options) (*Result, error) {
	o.Patience = max(0, cmp.Or(o.Patience, erasure.Patience))
	r := &run{o: o, blobs: blobs, tables: tables, expr: sha256.Sum256([]byte(o.Where.String())),
		out: &Result{}, matches: map[[2]string]int64{}, replaced: map[blobfmt.BatchID]bool{}}
	err := r.plan(ctx)
	if r.closer == nil || errors.As(err, new(*retention.ConfirmError)) {
		return r.out, err
	}
	for idle := 0; idle < 3 && err == nil && !r.out.nothing(); {
		did := r.out.did()
		if err = r.pass(ctx); err == nil {
			err = r.again(ctx, o.Patience)
		}
		if idle++; r.out.did() != did {
			idle = 0
		}
	}
	if errors.As(err, new(*retention.RefusedError)) && r.out.did() > 0 {
		r.problem("holds", err)
		err = nil
	}
	for _, d := range r.out.Days {
		if err == nil {
			err := fmt.Errorf("not all of %s with a match were replaced and deleted", units.Count(d.Blobs, "blob"))
			r.problem(d.Service+" of "+d.Day.String(), err)
		}
	}
	if err == nil && r.out.Late > 0 {
		r.problem("run this again", fmt.Errorf("%s or lines that match came in meanwhile", units.Count(r.out.Late, "record")))
	}
	if r.closer.Added() {
		_, rerr := r.closer.Root(ctx, o.Key, 0)
		err = cmp.Or(err, rerr)
	}
	if s, ok := blobs.(storage.Sweeper); ok && o.Confirm != "" {
		for _, service := range r.services {
			err = cmp.Or(err, s.Sweep(ctx, service+"/"))
		}
	}
	return r.out, err
}

// plan searches, and has the caller confirm what it has found. If there is nothing, and the caller has
// confirmed a plan before, it waits for what ingesters hold.
func (r *run) plan(ctx context.Context) (err error) {
	if r.enc, err = blobfmt.NewEncoder(blobfmt.EncoderOptions{Slow: true, BlockSize: 1 << 20}); err == nil {
		err = r.search(ctx)
	}
	if err != nil {
		return err
	}
	r.begun, r.closer = r.now.Add(clocks), closing.NewCloser(r.blobs, r.now)
	if r.out.nothing() && r.o.Confirm == "" {
		_, err = r.holding(ctx, false)
	} else if r.out.nothing() {
		err = r.again(ctx, 0)
	}
	h := sha256.New()
	fmt.Fprintf(h, "erase 1\nstore %s\nwhere %s\n", r.o.Store, r.o.Where)
	for _, d := range r.out.Days {
		fmt.Fprintf(h, "%s %s\n", d.Service, d.Day)
	}
	r.out.Hash = fmt.Sprintf("%x", h.Sum(nil))
	if err == nil && !r.out.nothing() {
		if err = r.free(ctx, r.out.Days...); err == nil {
			err = retention.Confirmed("a record that is erased never comes back", r.out.Hash, r.o.Confirm)
		}
	}
	return err
}

// problem tells a problem once.
func (r *run) problem(at string, err error) {
	err = fmt.Errorf("%s: %w", at, err)
	if !slices.ContainsFunc(r.out.Problems, func(p error) bool { return p.Error() == err.Error() }) {
		r.out.Problems = append(r.out.Problems, err)
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
	if service == record.RejectedService && !r.asked(service) {
		if meant, ok := record.Lookup(line, "service.name"); ok && !r.asked(record.FoldService(string(bytes.Trim(meant, `"`)))) {
			return false
		}
	}
	return r.o.Where.Match(bytes.TrimSuffix(line, []byte("\n")))
}

// choose lists the services to be searched. All that are asked for are there when a run begins.
func (r *run) choose(ctx context.Context) error {
	names, err := catalog.Services(ctx, r.blobs)
	if err != nil {
		return err
	}
	for _, glob := range r.o.Services {
		if r.begun.IsZero() && !slices.ContainsFunc(names, func(name string) bool { return record.MatchService(glob, name) }) {
			near := spelling.Near(glob, names)
			if near != "" {
				near = "; is it " + near + "?"
			}
			reason := fmt.Sprintf("no service is called %s%s logquery ls has those that there are", glob, cmp.Or(near, ";"))
			return &retention.RefusedError{Reason: reason}
		}
	}
	r.services = slices.DeleteFunc(names, func(name string) bool { return name != record.RejectedService && !r.asked(name) })
	return nil
}

// search finds the days with blobs that match, and the lines of tables.
func (r *run) search(ctx context.Context) (err error) {
	if r.now, err = storage.Now(ctx, r.blobs, time.Now()); err != nil {
		return err
	}
	if err = r.choose(ctx); err != nil {
		return err
	}
	if !r.begun.IsZero() && r.until.IsZero() {
		r.until = r.now.Add(clocks)
	}
	o := r.out
	o.Days, o.Late, o.Services, o.Blobs, o.Stored = nil, 0, len(r.services), 0, 0
	view := catalog.NewView(r.blobs, r.services, horizon.Checked{})
	for _, service := range r.services {
		for l, err := range view.Listings(ctx, service, r.o.Range) {
			if err != nil {
				return err
			}
			matching, err := r.look(ctx, l)
			if err != nil {
				return err
			}
			for i := range l.Blobs {
				if o.Blobs++; !r.replaced[l.Blobs[i].Meta.Batch] {
					o.Stored += l.Blobs[i].Meta.Records
				}
			}
			d := retention.Day{Service: service, Day: l.Day, Step: "erase"}
			for _, e := range matching {
				n := r.matches[idOf(e)]
				if r.replaced[e.Meta.Batch] {
					n = 0
				} else if !r.until.IsZero() && e.Created.After(r.until) {
					o.Late += n
					continue
				}
				d.Blobs, d.Records, d.Bytes = d.Blobs+1, d.Records+n, d.Bytes+e.Size
			}
			if d.Blobs > 0 {
				o.Days = append(o.Days, d)
			}
		}
	}
	if n, why := r.o.Where.Unjudged(); n > 0 {
		r.problem("--where", fmt.Errorf("some records could not be judged: %w", why))
	}
	if o.Rows, err = r.tail(ctx, true); r.swept {
		o.Late, o.Rows = o.Late+o.Rows, 0
	}
	return err
}

// tail has the tables of the newest records without the lines that match, or counts these.
func (r *run) tail(ctx context.Context, dry bool) (lines int64, err error) {
	if r.o.Tail.Prefix == "" {
		return 0, nil
	}
	lines, err = tailindex.Erase(ctx, r.tables, r.o.Tail, r.services, dry, func(service string, line []byte) bool {
		ns, _ := record.LineTime(line)
		t := time.Unix(0, ns)
		return !t.Before(r.o.Range.From) && (r.o.Range.To.IsZero() || t.Before(r.o.Range.To)) && r.match(service, line)
	})
	if errors.As(err, new(*tailindex.RowError)) {
		r.problem("tables of the newest records", err)
		err = nil
	}
	return lines, err
}
