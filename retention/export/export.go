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
	"context"
	"encoding/hex"
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
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/storage"
)

const (
	form     = 1         // of marks, files and the choice of columns
	markBase = "_whole." // engines pass over names that begin with _
	// mostNames is how many names of fields of a day are looked at.
	mostNames = 10_000
)

var isFile = regexp.MustCompile(`^part-[0-9]{4,}-[0-9a-f]{12}\.parquet$`)

// Options say what to export.
type Options struct {
	Services []string // names and globs; none: all but the system's own
	Store    string   // id of the store: an export is of one
	Read     blobs.Options
	Now      time.Time // zero: the time of the store
}

// Result counts the work of a run.
type Result struct {
	Unknown        string // one of the wanted services that there is not: nothing was done
	Services       int    // looked at
	Made, Removed  int    // days
	Records, Bytes int64
	Unclosed       int // days that have no account, or records that came after it
	Problems       []error
}

type run struct {
	from, to storage.BlobStore
	o        Options
	reader   *blobs.Reader
	codec    zstd.Codec // of all files: its encoders are large
	out      Result
}

// Run makes an export what the closed days of a store are.
func Run(ctx context.Context, from, to storage.BlobStore, o Options) (_ Result, err error) {
	if o.Now.IsZero() {
		o.Now, err = storage.Now(ctx, from, time.Now())
	}
	r := &run{from: from, to: to, o: o, reader: blobs.New(from, o.Read)}
	all, lerr := catalog.Services(ctx, from)
	for dir, derr := range to.Dirs(ctx, "") { // a service may be in the export alone
		if name, ok := strings.CutPrefix(dir, "service="); ok && record.ValidStored(name) {
			all = append(all, name)
		}
		lerr = errors.Join(lerr, derr)
	}
	wanted := map[string]bool{}
	for _, glob := range append([]string{"*"}, o.Services...)[min(1, len(o.Services)):] {
		known := false
		for _, name := range all {
			if record.MatchService(glob, name) {
				wanted[name], known = true, true
			}
		}
		if !known && len(o.Services) > 0 {
			r.out.Unknown, wanted = glob, nil
			break
		}
	}
	err = errors.Join(err, lerr)
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
	for l, err := range view.Listings(ctx, name, catalog.Range{To: horizon.DayOf(r.o.Now).Start()}) {
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

// day makes the export of a listed day what its account says.
func (r *run) day(ctx context.Context, l *catalog.Listing, old exported) error {
	if l.Part.Part.Number == 0 {
		if l.Day >= 0 && l.Day <= closing.Last(r.o.Now, closing.After) { // no day before 1970 is closed
			r.out.Unclosed++
		}
		return nil
	}
	if l.Accounted() && old.is(l.Hash()) {
		return nil
	}
	m, err := r.compacted(ctx, l, old)
	if m == nil && err == nil {
		m, err = r.make(ctx, l)
	}
	if m == nil || err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err == nil {
		err = r.create(ctx, m.prefix()+m.name(), append(body, '\n'), "application/json")
	}
	if err != nil {
		return err
	}
	return r.to.Delete(ctx, slices.DeleteFunc(slices.Concat(old.files, old.marks), func(b storage.Blob) bool {
		return nameOf(b) == m.name() || slices.Contains(m.Files, nameOf(b))
	})...)
}

// remove removes a day from the export that the store does not show.
func (r *run) remove(ctx context.Context, service string, day horizon.Day, old exported) error {
	_, err := r.marked(ctx, old)
	if err != nil {
		return err
	}
	hidden, err := horizon.Read(ctx, r.from, service)
	if err == nil && !hidden.Hides(service, day) {
		err = errors.New("the store has nothing of that day, and does not say why; if it is right, delete these files by hand")
	}
	holds, herr := hold.List(ctx, r.from)
	if err = errors.Join(err, herr); err != nil || holds.Of(service, day) != nil {
		return err
	}
	if err = r.to.Delete(ctx, old.marks...); err == nil { // a mark has all its files
		r.out.Removed++
		err = r.to.Delete(ctx, old.files...)
	}
	return err
}

// A mark says that a day is whole: of an account, in some files.
type mark struct {
	Form    int         `json:"form"`
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
	return markBase + hex.EncodeToString(m.Account[:8]) + "." + hex.EncodeToString(files[:8])
}

// exported is what an export has of a day.
type exported struct{ files, marks []storage.Blob }

func nameOf(b storage.Blob) string { return b.Key[strings.LastIndexByte(b.Key, '/')+1:] }

// is reports by names alone whether there are the files of the mark of an account, and nothing else.
func (e *exported) is(account closed.Hash) bool {
	m := mark{Account: account}
	for _, b := range e.files {
		m.Files = append(m.Files, nameOf(b))
	}
	return len(e.marks) == 1 && nameOf(e.marks[0]) == m.name()
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
		at, err := time.Parse("date="+time.DateOnly, date)
		e := days[horizon.DayOf(at)]
		switch {
		case err == nil && isFile.MatchString(name):
			e.files = append(e.files, b)
		case err == nil && strings.HasPrefix(name, markBase):
			e.marks = append(e.marks, b)
		default:
			continue // of another program
		}
		days[horizon.DayOf(at)] = e
	}
	return days, nil
}

// marked reads the mark of a day; nil: there is none of this form. It refuses that of another store.
func (r *run) marked(ctx context.Context, old exported) (*mark, error) {
	if len(old.marks) == 0 {
		return nil, nil
	}
	m := new(mark)
	body, err := catalog.Read(ctx, r.to, old.marks[len(old.marks)-1].Key, 0, -1)
	if err != nil || json.Unmarshal(body, m) != nil || m.Form != form {
		return nil, err
	}
	if m.Store != r.o.Store {
		return nil, fmt.Errorf("it is of the store %s, and this is %s: take another place for it", m.Store, r.o.Store)
	}
	return m, nil
}

// compacted returns a new mark for what the export has of a day, if since its mark blobs were compacted at
// most; nil: there is more.
func (r *run) compacted(ctx context.Context, l *catalog.Listing, old exported) (*mark, error) {
	m, err := r.marked(ctx, old)
	if m == nil || !l.Accounted() || !old.is(m.Account) {
		return nil, err
	}
	for at, hash := l.Part.Part, l.Hash(); hash != m.Account; at.Number-- {
		part, err := catalog.ReadPart(ctx, r.from, at.String())
		if err != nil || part.Sum != hash || len(part.Events) == 0 || slices.ContainsFunc(part.Events, func(e closed.Event) bool {
			return e.Kind != closed.Compacted && e.Kind != closed.Deleted
		}) {
			return nil, nil // the day is read, and an error comes again if it stays
		}
		hash = part.Before
	}
	m.Part, m.Account = l.Part.Part.Number, l.Hash()
	return m, nil
}

// make writes the files of a day; nil: it waits for its account. The day is read twice: for the fields of
// its records, and for the records.
func (r *run) make(ctx context.Context, l *catalog.Listing) (*mark, error) {
	plan, err := r.reader.Plan(ctx, blobs.Query{Services: []string{l.Service}, Sure: true,
		Range: blobs.Range{From: l.Day.Start().UnixNano(), To: (l.Day + 1).Start().UnixNano()}})
	if err != nil {
		return nil, err
	}
	if _, sum := plan.Keys(); !sum.Complete() || !l.Accounted() {
		if sum.Complete() {
			r.out.Unclosed++ // records came late
		}
		return nil, errors.Join(sum.Problems...)
	}
	m, bytes := &mark{form, r.o.Store, l.Service, l.Day.String(), l.Part.Part.Number, l.Hash(), 0, []string{}}, 0
	fields := survey.New(survey.Options{Skip: []string{"ts", "level", "service", "msg"}, Fields: mostNames})
	sum, err := plan.Read(ctx, fields.Add)
	w := newWriter(&r.codec, fields.Fields(), func(body []byte) error {
		sum := closed.HashOf(body)
		m.Files = append(m.Files, fmt.Sprintf("part-%04d-%x.parquet", len(m.Files)+1, sum[:6]))
		bytes += len(body)
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
	r.out.Made, r.out.Records, r.out.Bytes = r.out.Made+1, r.out.Records+m.Records, r.out.Bytes+int64(bytes)
	return m, nil
}

// create creates an object whose name says what it has: it may be there.
func (r *run) create(ctx context.Context, key string, body []byte, contentType string) error {
	if err := r.to.Create(ctx, key, body, storage.Attrs{ContentType: contentType}); !errors.Is(err, storage.ErrExist) {
		return err
	}
	return nil
}
