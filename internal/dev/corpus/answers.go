package corpus

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"blobtail/record"
)

// Counts are numbers of records by service, then by level.
type Counts map[string]map[string]int

// Add counts a record.
func (c Counts) Add(r Record) {
	if c[r.Service] == nil {
		c[r.Service] = map[string]int{}
	}
	c[r.Service][r.Level.String()]++
}

// Of is the number of records of some levels in all services, or of all levels if none is named.
func (c Counts) Of(levels ...record.Level) (n int) {
	for _, of := range c {
		for level, k := range of {
			if l := record.LevelOf([]byte(level)); len(levels) == 0 || slices.Contains(levels, l) {
				n += k
			}
		}
	}
	return n
}

// Window is a range of times with its records.
type Window struct {
	Name     string // 2m or 1h
	From, To string // RFC 3339; To is exclusive
	Counts   Counts

	from, to int64
}

// NewWindow returns an empty window.
func NewWindow(name string, from time.Time, length time.Duration) *Window {
	w := &Window{Name: name, Counts: Counts{}, from: from.UnixNano(), to: from.Add(length).UnixNano()}
	w.From, w.To = string(record.AppendTime(nil, w.from)), string(record.AppendTime(nil, w.to))
	return w
}

// Add counts a record if it is in the window, and reports whether it is.
func (w *Window) Add(r Record) bool {
	in := r.Time >= w.from && r.Time < w.to
	if in {
		w.Counts.Add(r)
	}
	return in
}

// Needle is a word that few records have.
type Needle struct {
	Token string
	Count int
}

// Answers are what a store that holds a corpus must find.
type Answers struct {
	Bytes    int64          // of all lines
	Per      map[string]int // records by service
	Services []string       // by their volume
	Windows  []*Window
	// RegexMatches is the number of records of RegexService in which Regex has a match.
	Regex        string
	RegexService string
	RegexMatches int
	// Last are the ids of the newest 100 records of LastService, the newest first.
	LastService string
	Last        []string
	Needles     []Needle
	// PerMinute has the numbers of debug to critical by the beginning of the minute, in RFC 3339.
	PerMinute map[string][5]int

	last   []Record
	search *regexp.Regexp
	counts map[int64][5]int // as PerMinute, by the minute since 1970
}

// needles is the number of needles, and copies that of the records that may have one.
const needles, copies = 20, 3

// needle is the needle of the i-th record, if it has one. They are spread over the corpus; one
// needle in three has one record, one two, and one three.
func (o Options) needle(i int) string {
	slot := i * needles * copies / o.Records
	if i > 0 && slot == (i-1)*needles*copies/o.Records {
		return ""
	}
	if k := slot % needles; slot/needles <= k%copies {
		return needleToken(k)
	}
	return ""
}

func needleToken(k int) string { return fmt.Sprintf("needle-%06d", k) }

// newAnswers returns the answers of no records.
func newAnswers(o Options) *Answers {
	all := Services()[:o.Services]
	a := &Answers{
		Per: map[string]int{}, Services: all, Regex: `timeout after [0-9.]+ms shard-1[0-9]`, RegexService: all[0], LastService: all[0],
		PerMinute: map[string][5]int{}, counts: map[int64][5]int{},
		Windows: []*Window{
			NewWindow("2m", o.From.Add(o.Span*184/360).Truncate(time.Minute), 2*time.Minute),
			NewWindow("1h", o.From.Add(o.Span/2).Truncate(time.Minute), min(time.Hour, o.Span/6)),
		},
	}
	a.search = regexp.MustCompile(a.Regex)
	for k := range needles {
		a.Needles = append(a.Needles, Needle{Token: needleToken(k)})
	}
	return a
}

// add notes a record.
func (a *Answers) add(r Record) {
	a.Bytes += int64(len(r.Line))
	a.Per[r.Service]++
	minute := r.Time / int64(time.Minute)
	n := a.counts[minute]
	n[r.Level-record.Debug]++
	a.counts[minute] = n
	for _, w := range a.Windows {
		w.Add(r)
	}
	if i := slices.IndexFunc(a.Needles, func(n Needle) bool { return n.Token == r.needle }); r.needle != "" && i >= 0 {
		a.Needles[i].Count++
	}
	if r.Service == a.RegexService && a.search.Match(r.Line) {
		a.RegexMatches++
	}
	if r.Service == a.LastService {
		if a.last = append(a.last, Record{Time: r.Time, ID: r.ID}); len(a.last) > 10_000 {
			a.cut()
		}
	}
}

// cut keeps the newest records.
func (a *Answers) cut() {
	slices.SortStableFunc(a.last, func(a, b Record) int { return cmp.Compare(b.Time, a.Time) })
	a.last = a.last[:min(100, len(a.last))]
}

// Write writes the records as NDJSON, and returns the answers.
func Write(w io.Writer, o Options) (*Answers, error) {
	o = o.filled()
	a, out := newAnswers(o), bufio.NewWriterSize(w, 1<<20)
	for r := range o.All() {
		a.add(r)
		if _, err := out.Write(r.Line); err != nil {
			return nil, err
		}
	}
	a.cut()
	for _, r := range a.last {
		a.Last = append(a.Last, r.ID)
	}
	for m, n := range a.counts {
		a.PerMinute[time.Unix(m*60, 0).UTC().Format(time.RFC3339)] = n
	}
	return a, out.Flush()
}
