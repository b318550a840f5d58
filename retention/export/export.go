// Package export writes closed days as Parquet, for the engines that people have.
//
//	service=web/date=2026-11-20/part-0001-9f3c2ab81d04.parquet   records, in order
//	service=web/date=2026-11-20/_whole.ACCOUNT.FILES             the mark: the day is whole
//
// The name of a file has a hash of its bytes. That of a mark has hashes of the account and of the names of
// the files. So [Run] finds by listings the days that have changed, and makes good what a killed run has left.
// All of a day is read before its first file is there, for its fields. Its new files come first, then its
// mark, and the old files go last: the files of the newest mark have each record once.
package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go/compress/zstd"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
	"blobtail/record"
	"blobtail/storage"
)

const (
	markBase  = "_whole." // engines pass over names that begin with _
	mostNames = 10_000    // of fields of a day that are looked at
)

// isOurs tells marks and files from the objects of other programs.
var isOurs = regexp.MustCompile(`^(_whole\..+|part-[0-9]{4,}-[0-9a-f]{12}\.parquet)$`)

// Options say what to export.
type Options struct {
	Services []string // names and globs; * is all but the system's own
	Store    string   // id of the store: an export is of one
	Distant  bool     // as MaxAge, it is that of [blobs.Options]
	MaxAge   time.Duration
	Progress *progress.Counter // of blobs; nil: they are not counted
}

// Result counts the work of a run.
type Result struct {
	Unknown       string // one of the wanted services that there is not: nothing was done
	Services      int    // looked at
	Made, Removed int    // days
	Records       int64
	Problems      []error
}

type run struct {
	from, to storage.BlobStore
	store    string
	reader   *blobs.Reader
	codec    zstd.Codec // of all files: its encoders are large
	out      Result
}

// Run makes an export what the closed days of a store are.
func Run(ctx context.Context, from, to storage.BlobStore, o Options) (Result, error) {
	reader := blobs.New(from, blobs.Options{Distant: o.Distant, MaxAge: o.MaxAge, Progress: o.Progress})
	r := &run{from: from, to: to, store: o.Store, reader: reader}
	all, err := catalog.Services(ctx, from)
	for dir, derr := range to.Dirs(ctx, "") { // a service may be in the export alone
		if name, ok := strings.CutPrefix(dir, "service="); ok && record.ValidStored(name) {
			all = append(all, name)
		}
		err = errors.Join(err, derr)
	}
	wanted := map[string]bool{}
	for _, glob := range o.Services {
		known := glob == "*"
		for _, name := range all {
			if record.MatchService(glob, name) {
				wanted[name], known = true, true
			}
		}
		if !known {
			r.out.Unknown = glob
			return r.out, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err == nil {
			r.out.Services++
			err = r.service(ctx, name)
		}
	}
	return r.out, err
}

func (r *run) service(ctx context.Context, name string) error {
	have, err := r.list(ctx, name)
	if err != nil {
		return err
	}
	view := catalog.NewView(r.from, []string{name}, horizon.Checked{})
	for l, err := range view.Listings(ctx, name, catalog.Range{}) {
		if err == nil && len(l.Blobs)+len(l.Parts) > 0 {
			err = r.noted(ctx, name, l.Day, r.day(ctx, l, have[l.Day]))
			delete(have, l.Day)
		}
		if err != nil {
			return err
		}
	}
	for _, day := range slices.Sorted(maps.Keys(have)) {
		if err := r.noted(ctx, name, day, r.remove(ctx, name, day, have[day])); err != nil {
			return err
		}
	}
	return nil
}

// noted makes a problem of an error with a day. It returns one that ends the run.
func (r *run) noted(ctx context.Context, service string, day horizon.Day, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, storage.ErrUnauthorized) {
		return err
	}
	r.out.Problems = append(r.out.Problems, fmt.Errorf("the export of %s of %s stays as it was: %w", day, service, err))
	return nil
}

// day makes the export of a listed day what its account says. Records that came after it are there too, and
// the day is made at each run until it is closed again.
func (r *run) day(ctx context.Context, l *catalog.Listing, old exported) error {
	if l.Part.Part.Number == 0 || l.Accounted() && old.is(l.Hash()) {
		return nil
	}
	m, err := r.compacted(ctx, l, old)
	if m == nil && err == nil {
		m, err = r.make(ctx, l)
	}
	if err != nil {
		return err
	}
	body, _ := json.Marshal(m) // texts and numbers
	if err = r.create(ctx, m.prefix()+m.name(), append(body, '\n'), "application/json"); err != nil {
		return err
	}
	return r.delete(ctx, slices.DeleteFunc(slices.Clone(old), func(b storage.Blob) bool {
		return nameOf(b) == m.name() || slices.Contains(m.Files, nameOf(b))
	}))
}

// remove removes a day from the export that the store does not show.
func (r *run) remove(ctx context.Context, service string, day horizon.Day, old exported) error {
	_, merr := r.marked(ctx, old)
	hidden, err := horizon.Read(ctx, r.from, service)
	if err == nil && !hidden.Hides(service, day) {
		err = errors.New("the store has nothing of that day, and does not say why; if it is right, delete these files by hand")
	}
	holds, herr := hold.List(ctx, r.from)
	if err = cmp.Or(merr, err, herr); err != nil || holds.Of(service, day) != nil {
		return err
	}
	r.out.Removed++
	return r.delete(ctx, old)
}

// delete deletes marks before files: each mark has all its files.
func (r *run) delete(ctx context.Context, all exported) (err error) {
	for _, b := range all {
		if err == nil {
			err = r.to.Delete(ctx, b)
		}
	}
	return err
}

// A mark says that a day is whole: of an account, in some files.
type mark struct {
	Store   string      `json:"store"`
	Service string      `json:"service"`
	Date    string      `json:"date"`
	Part    int         `json:"part"`    // number of the account
	Account closed.Hash `json:"account"` // hash of it
	Records int64       `json:"records"`
	Files   []string    `json:"files"` // in order; none: there is no record
}

func (m *mark) prefix() string { return "service=" + m.Service + "/date=" + m.Date + "/" }

func (m *mark) name() string {
	files := closed.HashOf([]byte(strings.Join(m.Files, "\n")))
	return fmt.Sprintf("%s%x.%x", markBase, m.Account[:8], files[:8])
}

// exported is what an export has of a day: marks, then files.
type exported []storage.Blob

func nameOf(b storage.Blob) string { return b.Key[strings.LastIndexByte(b.Key, '/')+1:] }

// is reports by names alone whether there are the mark of an account and its files, and nothing else.
func (e exported) is(account closed.Hash) bool {
	m := mark{Account: account}
	for _, b := range e[min(1, len(e)):] {
		m.Files = append(m.Files, nameOf(b))
	}
	return len(e) > 0 && nameOf(e[0]) == m.name()
}

// list lists the days of a service in the export. A run that was killed may have left what was erased since.
func (r *run) list(ctx context.Context, service string) (map[horizon.Day]exported, error) {
	prefix, days := "service="+service+"/", map[horizon.Day]exported{}
	if s, ok := r.to.(storage.Sweeper); ok {
		if err := s.Sweep(ctx, prefix); err != nil {
			return nil, err
		}
	}
	for b, err := range r.to.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		date, name, _ := strings.Cut(strings.TrimPrefix(b.Key, prefix), "/")
		if at, err := time.Parse("date="+time.DateOnly, date); err == nil && isOurs.MatchString(name) {
			days[horizon.DayOf(at)] = append(days[horizon.DayOf(at)], b)
		}
	}
	return days, nil
}

// marked reads the mark of a day; nil: there is none. It refuses that of another store.
func (r *run) marked(ctx context.Context, old exported) (*mark, error) {
	if len(old) == 0 || !strings.HasPrefix(nameOf(old[0]), markBase) {
		return nil, nil
	}
	m := new(mark)
	body, err := catalog.Read(ctx, r.to, old[0].Key, 0, -1)
	if err != nil || json.Unmarshal(body, m) != nil {
		return nil, err
	}
	if m.Store != r.store {
		return nil, fmt.Errorf("it is of the store %s, and this is %s: take another place for it", m.Store, r.store)
	}
	return m, nil
}

// compacted returns a new mark for what the export has of a day, if since its mark blobs were compacted at
// most; nil: there is more, or an error that comes again when the day is read.
func (r *run) compacted(ctx context.Context, l *catalog.Listing, old exported) (*mark, error) {
	m, err := r.marked(ctx, old)
	if m == nil || !l.Accounted() || !old.is(m.Account) {
		return nil, err
	}
	for m.Account != l.Hash() {
		m.Part++
		part, err := catalog.ReadPart(ctx, r.from, closed.Name{Service: l.Service, Day: l.Day, Number: m.Part}.String())
		if err != nil || part.Before != m.Account || len(part.Events) == 0 || slices.ContainsFunc(part.Events, func(e closed.Event) bool {
			return e.Kind != closed.Compacted && e.Kind != closed.Deleted
		}) {
			return nil, nil
		}
		m.Account = part.Sum
	}
	return m, nil
}

// make writes the files of a day. The day is read twice: for the fields of its records, and for the records.
func (r *run) make(ctx context.Context, l *catalog.Listing) (*mark, error) {
	plan, err := r.reader.Plan(ctx, blobs.Query{Services: []string{l.Service}, Sure: true,
		Range: blobs.Range{From: l.Day.Start().UnixNano(), To: (l.Day + 1).Start().UnixNano()}})
	if err != nil {
		return nil, err
	}
	m := &mark{r.store, l.Service, l.Day.String(), l.Part.Part.Number, l.Hash(), 0, []string{}}
	fields := survey.New(survey.Options{Skip: []string{"ts", "level", "service", "msg"}, Fields: mostNames})
	sum, err := plan.Read(ctx, fields.Add)
	w := newWriter(&r.codec, fields.Fields(), func(body []byte) error {
		sum := closed.HashOf(body)
		m.Files = append(m.Files, fmt.Sprintf("part-%04d-%x.parquet", len(m.Files)+1, sum[:6]))
		return r.create(ctx, m.prefix()+m.Files[len(m.Files)-1], body, "application/vnd.apache.parquet")
	})
	if err == nil && sum.Complete() {
		sum, err = plan.Read(ctx, w.add)
	}
	if err = errors.Join(err, errors.Join(sum.Problems...)); err == nil {
		err = w.close()
	}
	if err != nil {
		return nil, err
	}
	m.Records = w.records
	r.out.Made, r.out.Records = r.out.Made+1, r.out.Records+m.Records
	return m, nil
}

// create creates an object whose name says what it has: it may be there.
func (r *run) create(ctx context.Context, key string, body []byte, contentType string) error {
	if err := r.to.Create(ctx, key, body, storage.Attrs{ContentType: contentType}); !errors.Is(err, storage.ErrExist) {
		return err
	}
	return nil
}
