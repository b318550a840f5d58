// Package export writes closed days as Parquet, for the engines that people have.
//
//	service=web/date=2026-11-20/part-0001-9f3c2ab81d04.parquet   the records, in order
//	service=web/date=2026-11-20/_whole.ACCOUNT.FILES             the day is whole
//
// [Run] compares the accounts of a store with the names of an export, and makes those days anew that
// have changed. The name of a file has the hash of its bytes. That of a mark has the hash of the account
// whose records the files have, and a hash of their names. So a day that has not changed takes listings
// alone, and a run that was killed is made good by the next one.
//
// All of a day is read, and its account looked at again, before its first file is there. Then come its
// new files, its mark, and last the old files go: a reader of the files of the newest mark has each record
// once. A day that is hidden loses its mark first.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/storage"
)

// Options say what to export. Store must be set.
type Options struct {
	// Services are names and globs; none: all but the system's own.
	Services []string
	// Store is the id of the store. Marks have it: an export is of one store.
	Store string
	// Distant and MaxAge are those of [blobs.Options].
	Distant  bool
	MaxAge   time.Duration
	Progress *progress.Counter // of blobs; nil: they are not counted
	Log      zerolog.Logger
	Now      time.Time // zero: the time of the store
}

// Result counts the work of a run.
type Result struct {
	Services, Days int // looked at; days that are closed
	Made, Removed  int // days
	Records, Bytes int64
	Unclosed       int     // days that have to be closed first, or have records that came after that
	Held           int     // hidden days that stay in the export
	Problems       []error // what could not be done; the rest was
}

type run struct {
	from, to storage.BlobStore
	o        Options
	reader   *blobs.Reader
	closer   *closing.Closer
	out      Result
}

// Run makes an export what the closed days of a store are.
func Run(ctx context.Context, from, to storage.BlobStore, o Options) (Result, error) {
	var err error
	if o.Now.IsZero() {
		if o.Now, err = storage.Now(ctx, from, time.Now()); err != nil {
			return Result{}, err
		}
	}
	if len(o.Services) == 0 {
		o.Services = []string{"*"}
	}
	r := &run{from: from, to: to, o: o, closer: closing.NewCloser(from, o.Now),
		reader: blobs.New(from, blobs.Options{Distant: o.Distant, MaxAge: o.MaxAge, Progress: o.Progress})}
	services, err := r.services(ctx)
	for _, service := range services {
		if err == nil {
			err = r.service(ctx, service)
		}
	}
	return r.out, err
}

// services are the wanted ones of the store and of the export.
func (r *run) services(ctx context.Context) ([]string, error) {
	all, err := catalog.Services(ctx, r.from)
	for dir, derr := range r.to.Dirs(ctx, "") {
		if name, ok := strings.CutPrefix(dir, "service="); ok && record.ValidStored(name) {
			all = append(all, name)
		}
		if derr != nil && !errors.Is(derr, storage.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("the export: %w", derr))
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return !slices.ContainsFunc(r.o.Services, func(glob string) bool { return record.MatchService(glob, name) })
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

func (r *run) service(ctx context.Context, name string) error {
	r.out.Services++
	have, err := r.list(ctx, name)
	if err != nil {
		return err
	}
	view := catalog.NewView(r.from, []string{name}, horizon.Checked{})
	for l, err := range view.Listings(ctx, name, catalog.Range{To: horizon.DayOf(r.o.Now).Start()}) {
		if err != nil {
			return err
		}
		if len(l.Blobs)+len(l.Parts) == 0 {
			continue
		}
		old := have[l.Day]
		delete(have, l.Day)
		if err := r.failed(ctx, name, l.Day, r.day(ctx, l, old)); err != nil {
			return err
		}
	}
	for _, day := range slices.Sorted(maps.Keys(have)) {
		if err := r.failed(ctx, name, day, r.remove(ctx, name, day, have[day])); err != nil {
			return err
		}
	}
	return nil
}

// failed makes a problem of an error with a day, or returns it if it ends the run.
func (r *run) failed(ctx context.Context, service string, day horizon.Day, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, storage.ErrUnauthorized) {
		return err
	}
	r.problem(service, day, err)
	return nil
}

func (r *run) problem(service string, day horizon.Day, err error) {
	r.out.Problems = append(r.out.Problems, fmt.Errorf("the export of %s of %s stays as it was: %w", day, service, err))
}

// day makes the export of a listed day what its account says.
func (r *run) day(ctx context.Context, l *catalog.Listing, old *exported) error {
	if l.Part.Part.Number == 0 {
		if l.Day <= closing.Last(r.o.Now, closing.After) {
			r.out.Unclosed++
		}
		return nil
	}
	r.out.Days++
	if old == nil {
		old = &exported{}
	}
	if l.Accounted() && old.is(l.Hash()) {
		return nil
	}
	l, part, err := r.closer.Settled(ctx, l)
	if err != nil || part == nil {
		return err
	}
	if !l.Accounted() {
		return r.unaccounted(ctx, l, part)
	}
	m, err := r.valid(ctx, old, part)
	if m == nil && err == nil {
		m, err = r.make(ctx, l, part)
	}
	if m == nil || err != nil {
		return err
	}
	return r.replace(ctx, old, m)
}

// unaccounted tells why the blobs of a day are not those of its account.
func (r *run) unaccounted(ctx context.Context, l *catalog.Listing, part *closed.Part) error {
	missing, err := l.Missing(part, catalog.NewReplaced(r.closer.Replaces(ctx)))
	for _, b := range missing {
		r.problem(l.Service, l.Day, fmt.Errorf("%s: %w", b.Key, &catalog.MissingError{Blob: b}))
	}
	if len(missing) == 0 && err == nil {
		r.out.Unclosed++ // records came late, and the next part will have them
	}
	return err
}

// remove removes a day from the export that the store does not show any more.
func (r *run) remove(ctx context.Context, service string, day horizon.Day, old *exported) error {
	hidden, err := horizon.Read(ctx, r.from, service)
	if err != nil {
		return err
	}
	if !hidden.Hides(service, day) {
		return errors.New("the store has nothing of that day, and does not say why: is it another store? Else delete the export of the day by hand")
	}
	holds, err := hold.List(ctx, r.from)
	if holds.Of(service, day) != nil && err == nil {
		r.out.Held++
		return nil
	}
	for _, objects := range [][]storage.Blob{old.marks, old.files} {
		if err == nil && len(objects) > 0 {
			err = r.to.Delete(ctx, objects...)
		}
	}
	if err == nil {
		r.out.Removed++
		r.o.Log.Info().Str("service", service).Stringer("day", day).Int("files", len(old.files)).Msg("removed from the export")
	}
	return err
}

// replace puts the mark of a day into the export, and then takes away what it does not name.
func (r *run) replace(ctx context.Context, old *exported, m *mark) error {
	body, err := json.Marshal(m)
	if err == nil {
		err = r.create(ctx, m.key(), append(body, '\n'), "application/json")
	}
	surplus := slices.DeleteFunc(slices.Concat(old.files, old.marks), func(b storage.Blob) bool {
		return b.Key == m.key() || slices.Contains(m.Files, b.Key[strings.LastIndexByte(b.Key, '/')+1:])
	})
	if err == nil && len(surplus) > 0 {
		err = r.to.Delete(ctx, surplus...)
	}
	return err
}

// create creates an object whose name says what it has.
func (r *run) create(ctx context.Context, key string, body []byte, contentType string) error {
	err := r.to.Create(ctx, key, body, storage.Attrs{ContentType: contentType})
	if errors.Is(err, storage.ErrExist) { // by a run that was killed, or another one
		return nil
	}
	return err
}
