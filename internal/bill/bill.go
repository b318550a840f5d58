// Package bill reports the volume and the cost of each service's logs, from listings
// alone: each blob's metadata have its numbers of records and of bytes of lines, and
// the listing has its size.
//
// Costs that a listing cannot show are not invented: the cost of reading is left out.
// The cost of the tables of the newest records is an estimate and is called one.
// Stored blobs cost money even if they are hidden from readers, so blobs below a
// horizon count until they are deleted.
//
// A [Plan] is a load that does not exist yet. [Plan.Cost] takes the counts of its requests from
// the scale test, and scales them by rules that the test is held against. Both have one table of
// [Prices], and one function from counts to money.
package bill

import (
	"cmp"
	"context"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/progress"
	"blobtail/record"
	"blobtail/storage/fanout"
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
	// Puts is how many requests stored it: one for each blob, and for each part of a closed day,
	// whose bytes are in Stored. A compacted blob also counts the requests of the blobs that it replaced.
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

// Lists is how many requests it takes to list these blobs, 5,000 by each.
func (s *Sum) Lists() int64 { return (s.Blobs + 4999) / 5000 }

// counts are all numbers of s.
func (s *Sum) counts() [8]*int64 {
	return [...]*int64{&s.Blobs, &s.Records, &s.Raw, &s.Stored, &s.Unknown, &s.Puts, &s.TailWrites, &s.TailBytes}
}

// add adds another sum.
func (s *Sum) add(o *Sum) {
	from := o.counts()
	for i, n := range s.counts() {
		*n += *from[i]
	}
}

// Contents of a row of the tail, see docs/reference/format-tail.md: the newest 100 lines of an interval, a
// quarter of their size, and some 330 bytes with keys and names. Lines of level error and above
// are repeated in a row of their own, in the same transaction. The interval is the usual one
// where ingesters advertise an address.
const (
	tailLines     = 100
	tailRowBytes  = 330
	tailLineShare = 0.25
	tailEvery     = 5 * time.Second
)

// tailUse estimates the rows of some records, and the bytes of these rows: one row for each
// window of time that has records. line is the mean size of a line.
func tailUse(records, windows int64, line float64) (rows, bytes int64) {
	rows = min(records, windows)
	return rows, rows*tailRowBytes + int64(float64(min(records, tailLines*rows))*line*tailLineShare)
}

// tail estimates the use of the tables: a row for each interval from the first to the
// last record, but no more rows than records. It assumes that the records are spread
// evenly over those intervals. The estimate is too high if records came in bursts, or
// more than a day late. It is too low for a compacted blob with records of several
// ingesters.
func (s *Sum) tail(m *blobfmt.Meta) {
	// Unsigned, because the whole range of time does not fit into an int64.
	intervals := int64((uint64(m.Last)-uint64(m.First))/uint64(tailEvery)) + 1
	line := float64(m.RawBytes) / float64(m.Records)
	add := func(records int64) int64 {
		rows, bytes := tailUse(records, intervals, line)
		s.TailBytes += bytes
		return rows
	}
	s.TailWrites += add(m.Records)
	add(m.Levels[record.Error] + m.Levels[record.Critical])
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
}

// atOnce is how many services are listed at once.
const atOnce = 8

// Read sums up services, each once, in a range. It fails if the store does not exist;
// a service of which nothing is stored has no sum. listed counts the blobs while it runs; it may be nil.
func Read(ctx context.Context, store catalog.Store, services []string, rng catalog.Range, listed *progress.Counter) (*Report, error) {
	parts := make([]Report, len(services))
	err := fanout.Each(ctx, len(services), atOnce, func(ctx context.Context, i int) error {
		return parts[i].list(ctx, store, services[i], rng, listed)
	})
	if err != nil {
		return nil, err
	}
	r := &Report{}
	var days []Sum
	for i := range parts {
		o := &parts[i]
		days = append(days, o.Days...)
		if o.Total.Puts > 0 {
			r.Services = append(r.Services, o.Total)
			r.Total.add(&o.Total)
		}
		r.ForeignKey = cmp.Or(r.ForeignKey, o.ForeignKey)
		r.Foreign += o.Foreign
		r.ForeignBytes += o.ForeignBytes
		r.Twice += o.Twice
	}
	byName := func(a, b Sum) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(days, byName)
	for i := range days {
		r.addDay(&days[i])
	}
	slices.SortFunc(r.Services, byName)
	return r, nil
}

// addDay adds a sum of the last day, or of a later one.
func (r *Report) addDay(s *Sum) {
	if n := len(r.Days); n == 0 || r.Days[n-1].Name != s.Name {
		r.Days = append(r.Days, Sum{Name: s.Name})
	}
	r.Days[len(r.Days)-1].add(s)
}

// list fills the report of one service: its days, and their total under its name.
func (r *Report) list(ctx context.Context, store catalog.Store, service string, rng catalog.Range, listed *progress.Counter) error {
	r.Total.Name = service
	var hour time.Time
	var compacted, others bool // the kinds of blobs in the hour
	for e, err := range catalog.Blobs(ctx, store, service, rng) {
		if err != nil {
			return err
		}
		listed.Find()
		if e.State == catalog.Account {
			sum := Sum{Name: e.Part.Day.String(), Stored: e.Size, Puts: 1}
			r.addDay(&sum)
			r.Total.add(&sum)
			continue
		}
		if !e.Blob() {
			r.ForeignKey = cmp.Or(r.ForeignKey, e.Key)
			r.Foreign++
			r.ForeignBytes += e.Size
			continue
		}
		sum := Sum{Name: e.Day().String(), Blobs: 1, Stored: e.Size, Puts: 1}
		if e.State == catalog.Sound {
			sum.Records, sum.Raw = e.Meta.Records, e.Meta.RawBytes
			sum.Puts += int64(e.Meta.Compacted)
			sum.tail(&e.Meta)
		} else {
			sum.Unknown = 1
		}
		r.addDay(&sum)
		r.Total.add(&sum)
		if start := e.Hour(); !start.Equal(hour) {
			hour, compacted, others = start, false, false
		}
		twice := compacted && others
		compacted = compacted || e.Meta.Compacted > 0
		others = others || e.Meta.Compacted == 0
		if compacted && others && !twice {
			r.Twice++
		}
	}
	return nil
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
	today := now.UTC().Format(time.DateOnly)
	days := slices.DeleteFunc(slices.Clone(r.Days), func(s Sum) bool { return s.Name >= today || s.Blobs == 0 })
	if len(days) == 0 {
		days = r.Days
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
	for _, n := range m.counts() {
		*n = int64(float64(*n)*scale + 0.5)
	}
	return m, true
}
