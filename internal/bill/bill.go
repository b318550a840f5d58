// Package bill reports the volume and the cost of each service's logs, from listings
// alone: each blob's metadata have its numbers of records and of bytes of lines, and
// the listing has its size.
//
// [Read] lists some services and sums up, by service and by day. [Prices] turn a sum
// into money, both here and at services that charge for each ingested byte.
// [Report.Month] projects a month from the listed days.
//
// Costs that a listing cannot show are not invented: the cost of reading is left out.
// The cost of the tables of the newest records is an estimate and is called one.
// Stored blobs cost money even if they are hidden from readers, so blobs below a
// horizon count until they are deleted.
package bill

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
)

// Sum adds up some blobs.
type Sum struct {
	Name    string `json:"-"` // service, or day as 2026-11-20
	Blobs   int64  `json:"blobs"`
	Records int64  `json:"records"`
	Raw     int64  `json:"raw"`    // bytes of lines
	Stored  int64  `json:"stored"` // bytes of blobs
	// Unknown is how many blobs have metadata without usable counts. The sum has their
	// size, but not their records and lines.
	Unknown int64 `json:"unknown,omitempty"`
	// Puts is how many requests stored it: one for each blob. A compacted blob also
	// counts the requests of the blobs that it replaced.
	Puts int64 `json:"puts"`
	// TailWrites and TailBytes estimate the share of the tables of the newest records:
	// transactions, and bytes.
	TailWrites int64 `json:"-"`
	TailBytes  int64 `json:"-"`
}

// Ratio is how many times smaller the blobs are than their lines; 0 if there are no
// blobs.
func (s *Sum) Ratio() float64 {
	if s.Stored == 0 {
		return 0
	}
	return float64(s.Raw) / float64(s.Stored)
}

// listPage is how many blobs a LIST returns in one answer.
const listPage = 5000

// Lists is how many requests it takes to list these blobs.
func (s *Sum) Lists() int64 { return (s.Blobs + listPage - 1) / listPage }

// add adds another sum.
func (s *Sum) add(o *Sum) {
	s.Blobs += o.Blobs
	s.Records += o.Records
	s.Raw += o.Raw
	s.Stored += o.Stored
	s.Puts += o.Puts
	s.Unknown += o.Unknown
	s.TailWrites += o.TailWrites
	s.TailBytes += o.TailBytes
}

// blob makes the sum of one blob.
func blob(e *catalog.Entry) Sum {
	s := Sum{Blobs: 1, Stored: e.Size, Puts: 1}
	if e.State != catalog.Sound {
		s.Unknown = 1
		return s
	}
	s.Records, s.Raw = e.Meta.Records, e.Meta.RawBytes
	s.Puts += int64(e.Meta.Compacted)
	s.tail(&e.Meta)
	return s
}

// Contents of a row of the tail, see docs/FORMAT.md: a second's newest 100 lines, as
// UTF-16, and some 415 bytes of overhead. Lines of level error and above are repeated
// in a row of their own, in the same transaction.
const (
	tailLines    = 100
	tailRowBytes = 415
	utf16Bytes   = 2
)

// tail estimates the use of the tables: a row for each second from the first to the
// last record, but no more rows than records. It assumes that the records are spread
// evenly over those seconds. The estimate is too high if records came in bursts, or
// more than a day late. It is too low for a compacted blob with records of several
// ingesters.
func (s *Sum) tail(m *blobfmt.Meta) {
	// Unsigned, because the whole range of time does not fit into an int64.
	seconds := int64((uint64(m.Last)-uint64(m.First))/uint64(time.Second)) + 1
	line := float64(m.RawBytes) / float64(m.Records) * utf16Bytes
	rows := func(records int64) int64 {
		n := min(records, seconds)
		s.TailBytes += n*tailRowBytes + int64(float64(min(records, tailLines*n))*line)
		return n
	}
	s.TailWrites += rows(m.Records)
	rows(m.Levels[record.Error] + m.Levels[record.Critical])
}

// Report sums up a store. Blobs that begin in the range count as a whole.
type Report struct {
	Services []Sum // in order of the name
	Days     []Sum // ascending, UTC, of the blobs' names
	Total    Sum
	// Foreign objects are stored under the names of services but are not our blobs.
	// They cost money too, but are in no sum.
	Foreign      int64
	ForeignBytes int64
	ForeignKey   string // the first of them
	// Twice is how many hours of a service have a compacted blob next to others. The
	// others may be blobs that it replaced: until they are deleted both are counted,
	// and their records twice. Or they came later and are no copies. A LIST cannot
	// distinguish the two.
	Twice int64
	Pages int64 // requests for the listing
}

// listers is how many services are listed at once.
const listers = 8

// Read sums up services, each once, in a range. It fails if the store does not exist;
// a service without blobs has no sum.
func Read(ctx context.Context, store catalog.Store, services []string, rng catalog.Range) (*Report, error) {
	lists := make([]listing, len(services))
	errs := make([]error, len(services))
	var work errgroup.Group
	work.SetLimit(listers)
	for i, service := range services {
		work.Go(func() error {
			lists[i], errs[i] = list(ctx, store, service, rng)
			return nil
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Report{}
	days := make(map[string]*Sum)
	for i := range lists {
		r.take(&lists[i], days)
	}
	for _, name := range slices.Sorted(maps.Keys(days)) {
		r.Days = append(r.Days, *days[name])
	}
	slices.SortFunc(r.Services, func(a, b Sum) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

// take adds the listing of a service.
func (r *Report) take(l *listing, days map[string]*Sum) {
	sum := Sum{Name: l.service}
	for name, day := range l.days {
		if days[name] == nil {
			days[name] = &Sum{Name: name}
		}
		days[name].add(day)
		sum.add(day)
	}
	if sum.Blobs > 0 {
		r.Services = append(r.Services, sum)
		r.Total.add(&sum)
	}
	if r.Foreign == 0 {
		r.ForeignKey = l.foreignKey
	}
	r.Foreign += l.foreign
	r.ForeignBytes += l.foreignBytes
	r.Twice += l.twice
	r.Pages += max(1, (l.objects+listPage-1)/listPage)
}

// listing is the result of one service's LIST.
type listing struct {
	service      string
	days         map[string]*Sum
	objects      int64
	foreign      int64
	foreignBytes int64
	foreignKey   string
	twice        int64
}

// hour notes the kinds of blobs in one hour of a service.
type hour struct {
	start                  time.Time
	compacted, uncompacted bool
}

func list(ctx context.Context, store catalog.Store, service string, rng catalog.Range) (listing, error) {
	l := listing{service: service, days: make(map[string]*Sum)}
	var at hour
	for e, err := range catalog.Blobs(ctx, store, service, rng) {
		if err != nil {
			return l, err
		}
		l.objects++
		if e.Blob() {
			l.add(&e, &at)
			continue
		}
		if l.foreign == 0 {
			l.foreignKey = e.Key
		}
		l.foreign++
		l.foreignBytes += e.Size
	}
	l.close(&at)
	return l, nil
}

func (l *listing) add(e *catalog.Entry, at *hour) {
	day := e.Day().String()
	if l.days[day] == nil {
		l.days[day] = &Sum{Name: day}
	}
	sum := blob(e)
	l.days[day].add(&sum)
	if start := e.Hour(); !start.Equal(at.start) {
		l.close(at)
		*at = hour{start: start}
	}
	if e.Meta.Compacted > 0 {
		at.compacted = true
	} else {
		at.uncompacted = true
	}
}

// close ends an hour.
func (l *listing) close(h *hour) {
	if h.compacted && h.uncompacted {
		l.twice++
	}
}

// Days of a [Month], and of a month of storage that is paid for.
const daysOfMonth = 30

// Month is the projection for 30 days like the listed ones.
type Month struct {
	Sum `json:"-"`
	// From and To are the first and the last day of the projection's base, and Days is
	// how many of the days between them have blobs.
	From string `json:"from"`
	To   string `json:"to"`
	Days int    `json:"days"`
	// Partial says that the only listed day is today, which is not over.
	Partial bool `json:"partial,omitempty"`
}

// Month projects a month. It ignores days without blobs, so that an old log that was
// shipped yesterday does not make the result too small. It leaves out today, which is
// not over, unless there is no other day. It returns false if there are no days.
func (r *Report) Month(now time.Time) (Month, bool) {
	days := r.Days
	today := now.UTC().Format(time.DateOnly)
	if n := len(days); n > 1 && days[n-1].Name >= today {
		days = slices.DeleteFunc(slices.Clone(days), func(s Sum) bool { return s.Name >= today })
		if len(days) == 0 {
			days = r.Days
		}
	}
	if len(days) == 0 {
		return Month{}, false
	}
	m := Month{From: days[0].Name, To: days[len(days)-1].Name, Days: len(days)}
	m.Partial = m.To >= today
	for i := range days {
		m.add(&days[i])
	}
	scale := float64(daysOfMonth) / float64(m.Days)
	for _, n := range []*int64{&m.Blobs, &m.Records, &m.Raw, &m.Stored, &m.Puts, &m.Unknown, &m.TailWrites, &m.TailBytes} {
		*n = int64(float64(*n)*scale + 0.5)
	}
	return m, true
}
