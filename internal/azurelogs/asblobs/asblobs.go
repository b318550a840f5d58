// Package asblobs shows Azure's own logs as a blob store of blobtail's own form, so that a reader
// needs no line for them. A [Store] reads the logs of the hours that a reader lists, encodes their
// records into blobs, and keeps these for its life: in memory up to 64 MiB, then in an unnamed
// temporary file.
//
// The records of a blob lie in one hour of event time, as everywhere. So a blob of the
// source, which has the records that arrived in an hour, becomes several blobs if some
// records came late. A listing of some hours reads the source up to [Options.Late] further.
// A record that came later than that is found if its arrival is in the hours that were read.
//
// The store is a snapshot: a blob of the source is read once, up to its listed size. It is
// for reading only. Ask [Store.Problems] after a read for the lines that are malformed.
//
// [Store.ListUntil] tells the store the hours of a listing. The numbers of the blobs have the
// order of the source, and each read makes its own: they are never stored.
package asblobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/azurelogs"
	"blobtail/internal/spill"
	"blobtail/internal/units"
	"blobtail/storage"
)

// Options are the tunables of [New]. The zero value works.
type Options struct {
	// Late is how much later than its time a record may have arrived; 0: 2 h, [NeverLate]: not
	// at all.
	Late time.Duration
	// Workers is how many hours are read at once; 0: 4.
	Workers int
}

// Values of [Options.Late]: its default, and that for records in the hour of their time.
const (
	DefaultLate = 2 * time.Hour
	NeverLate   = time.Duration(-1)
)

const (
	defaultWorkers = 4
	// inMemory is how many bytes of blobs are in memory.
	inMemory = 64 << 20
)

// Store implements [storage.BlobStore] for reading. Several goroutines may use it at once.
type Store struct {
	source *azurelogs.Source
	o      Options

	keeping sync.Mutex // held to add to bodies
	bodies  spill.Space

	mu       sync.Mutex
	services map[string]*service
	problems azurelogs.Problems
	late     lateness
	cut      unfinished
}

// service is the encoded blobs of a service.
type service struct {
	name string

	mu    sync.Mutex // held while hours are encoded
	done  map[string]bool
	hours map[time.Time][]*object // by their numbers
}

// object is an encoded blob.
type object struct {
	storage.Blob
	body spill.Extent
}

// unfinished is the blobs of classic logs that end within a line.
type unfinished struct {
	blobs int
	last  string
	line  int
}

// lateness is the records that came later than the store looks ahead.
type lateness struct {
	records int
	most    time.Duration
}

// New returns a Store of the logs of a source. It reads nothing yet.
func New(source *azurelogs.Source, o Options) *Store {
	switch {
	case o.Late == 0:
		o.Late = DefaultLate
	case o.Late < 0:
		o.Late = 0
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	return &Store{source: source, o: o, bodies: spill.Space{Most: inMemory}, services: make(map[string]*service)}
}

// errReadOnly is the answer to writes.
var errReadOnly = errors.New("logs of Azure's own are for reading only")

// Create implements [storage.BlobStore]; it always fails.
func (s *Store) Create(_ context.Context, key string, _ []byte, _ storage.Attrs) error {
	return storage.AtKey("create", key, errReadOnly)
}

// Delete implements [storage.BlobStore]; it always fails.
func (s *Store) Delete(_ context.Context, blobs ...storage.Blob) error {
	var errs []error
	for _, b := range blobs {
		errs = append(errs, storage.AtKey("delete", b.Key, errReadOnly))
	}
	return errors.Join(errs...)
}

// Stat implements [storage.BlobStore].
func (s *Store) Stat(ctx context.Context, key string) (storage.Blob, error) {
	o, err := s.object(ctx, key)
	if err != nil {
		return storage.Blob{}, storage.AtKey("stat", key, err)
	}
	return o.Blob, nil
}

// Get implements [storage.BlobStore].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	o, err := s.object(ctx, key)
	if err != nil {
		return nil, storage.AtKey("get", key, err)
	}
	off = min(off, o.Size)
	if left := o.Size - off; n < 0 || n > left {
		n = left
	}
	b, err := s.bodies.Get(&o.body, off, n)
	if err != nil {
		return nil, storage.AtKey("get", key, err)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// object finds a blob. One that was never listed is made now.
func (s *Store) object(ctx context.Context, key string) (*object, error) {
	name, err := blobfmt.ParseName(key)
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), storage.ErrNotExist)
	}
	find := func() (*object, bool) {
		sv := s.service(name.Service)
		sv.mu.Lock()
		defer sv.mu.Unlock()
		objects := sv.hours[name.Period.Truncate(time.Hour)]
		if name.Number > len(objects) || objects[name.Number-1].Key != key {
			return nil, false
		}
		return objects[name.Number-1], true
	}
	o, ok := find()
	if !ok {
		hour := name.Period.Truncate(time.Hour)
		if err := s.encode(ctx, name.Service, azurelogs.Span{From: hour, To: hour}); err != nil {
			return nil, err
		}
		if o, ok = find(); !ok {
			return nil, storage.ErrNotExist
		}
	}
	return o, nil
}

func (s *Store) service(name string) *service {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.services[name]
	if sv == nil {
		sv = &service{name: name, done: make(map[string]bool), hours: make(map[time.Time][]*object)}
		s.services[name] = sv
	}
	return sv
}

// List implements [storage.BlobStore].
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return s.ListUntil(ctx, prefix, startAfter, "")
}

// ListUntil is List of the keys before until, "" for no end. It reads the logs of the hours
// between its bounds, and so package catalog calls it in place of List.
func (s *Store) ListUntil(ctx context.Context, prefix, startAfter, until string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		names, err := s.named(ctx, prefix)
		if err != nil {
			yield(storage.Blob{}, err)
			return
		}
		for _, name := range names {
			span := spanOf(name, prefix, startAfter, until)
			if err := s.encode(ctx, name, span); err != nil {
				yield(storage.Blob{}, err)
				return
			}
			for _, o := range s.service(name).listed() {
				wanted := strings.HasPrefix(o.Key, prefix) && o.Key > startAfter && (until == "" || o.Key < until)
				if wanted && !yield(o.Blob, nil) {
					return
				}
			}
		}
	}
}

// named returns the services that keys with a prefix may have.
func (s *Store) named(ctx context.Context, prefix string) ([]string, error) {
	if name, _, whole := strings.Cut(prefix, "/"); whole {
		return []string{name}, nil
	}
	names, err := s.source.Services(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name+"/", prefix) }), err
}

// listed returns all blobs in the order of their keys.
func (sv *service) listed() (out []*object) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	for _, objects := range sv.hours {
		out = append(out, objects...)
	}
	slices.SortFunc(out, func(a, b *object) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Dirs implements [storage.BlobStore]. It goes by the names of the source and reads no log,
// so a directory may turn out to be empty.
func (s *Store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := s.dirs(ctx, prefix)
		if err != nil {
			yield("", err)
			return
		}
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (s *Store) dirs(ctx context.Context, prefix string) ([]string, error) {
	if prefix == "" {
		return s.source.Services(ctx)
	}
	name, _, _ := strings.Cut(prefix, "/")
	span := spanOf(name, prefix, "", "")
	if span.From.IsZero() {
		years, err := s.source.Years(ctx, name)
		if unknown(err) {
			return nil, nil
		}
		var names []string
		for _, year := range years { // the first records may have come in the next year
			names = append(names, fmt.Sprintf("%04d", year-1), fmt.Sprintf("%04d", year))
		}
		return slices.Compact(names), err
	}
	blobs, err := s.source.Blobs(ctx, name, s.arrivals(span))
	if unknown(err) {
		return nil, nil
	}
	seen := make(map[string]bool)
	for i := range blobs {
		first, last := s.events(&blobs[i])
		for hour := first; !hour.After(last); hour = hour.Add(time.Hour) {
			if rest, ok := strings.CutPrefix(blobfmt.PeriodPrefix(name, hour), prefix); ok {
				dir, _, below := strings.Cut(rest, "/")
				seen[dir] = seen[dir] || below
			}
		}
	}
	names := make([]string, 0, len(seen))
	for dir, below := range seen {
		if below && dir != "" {
			names = append(names, dir)
		}
	}
	slices.Sort(names)
	return names, err
}

// unknown reports whether an error says that the source has no such service: a store has
// nothing under an unknown name.
func unknown(err error) bool {
	_, ok := errors.AsType[*azurelogs.NoServiceError](err)
	return ok
}

// Problems returns the parts of the logs that could not be read so far: malformed lines, and the
// missing rests of blobs.
func (s *Store) Problems() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems.All()
}

// Notes returns the facts that a reader should know: so far, how many records came later
// than a listing looks ahead, and that classic logs end within a line.
func (s *Store) Notes() (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.late.records; n > 0 {
		remedy := fmt.Sprintf("a read of a range finds such with --late %dh", s.late.most/time.Hour)
		if s.late.most > 31*24*time.Hour {
			remedy = "some by over a month: only a read without a range finds these"
		}
		notes = append(notes, fmt.Sprintf("%s came more than %s after %s time; %s", units.Count(n, "record"), s.o.Late, units.Word(n, "its", "their"), remedy))
	}
	if n := s.cut.blobs; n > 0 {
		notes = append(notes, fmt.Sprintf("%s within a line, which was left out: line %d of %s, for one; a copy is perhaps still being made", units.Count(n, "blob")+units.Word(n, " ends", " end"), s.cut.line, s.cut.last))
	}
	return notes
}

// Close releases the blobs. No read may be under way.
func (s *Store) Close() error {
	s.bodies.Close()
	return nil
}

var _ catalog.Store = (*Store)(nil)
