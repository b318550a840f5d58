package form

import (
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/patterns"
	"blobtail/record"
)

// Patterns are the texts that messages have in common.
type Patterns struct {
	Basis Basis `json:"basis"`
	// By is the length of the buckets, as 5m.
	By       string    `json:"by"`
	Patterns []Pattern `json:"patterns"`
	// Others are the records of the basis that have none of these patterns.
	Others int64 `json:"others"`
	// Against compares with a second window; left out if the request has none.
	Against *Against `json:"against,omitempty"`
	Outcome
	Range *Range `json:"range,omitempty"` // of the first window
}

// Pattern is the text that some messages have in common.
type Pattern struct {
	// ID is a hash of the template.
	ID string `json:"id"`
	// Template has <*> for each value.
	Template string `json:"template"`
	Count    int64  `json:"count"`
	// Share is the part of the records of the basis.
	Share float64 `json:"share"`
	First string  `json:"first"`
	Last  string  `json:"last"`
	// Levels and Services are the records by level and by service; those without are left out.
	Levels   map[string]int64 `json:"levels"`
	Services map[string]int64 `json:"services"`
	// Buckets are the stretches of time with records, in order.
	Buckets []PatternBucket `json:"buckets"`
	Example Example         `json:"example"`
	// Where is a condition for the parameter where. It is true for the records of the pattern.
	Where string `json:"where"`
}

// PatternBucket counts the records of a stretch of time.
type PatternBucket struct {
	Time  string `json:"t"` // its start
	Count int64  `json:"n"`
}

// Example is the newest record of a pattern. Its message is cut at 1 KiB.
type Example struct {
	ID      string `json:"id"`
	Service string `json:"service"`
	Message string `json:"msg"`
}

// Against has the patterns of two windows that differ.
type Against struct {
	Basis Basis  `json:"basis"`
	By    string `json:"by"`
	// From and To are the range of the second window; left out if it is open there.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Lacks says that records of the second window are missing, so that a pattern may look new. The
	// outcome is of both windows.
	Lacks bool `json:"lacks"`
	// New are the ids of patterns that only the first window has, Gone those that only the second has.
	New  []string  `json:"new"`
	Gone []Pattern `json:"gone"`
	// More and Less are the patterns that are much more frequent, or rarer, for the length of the window.
	More []Change `json:"more"`
	Less []Change `json:"less"`
}

// Change is a pattern that both windows have.
type Change struct {
	ID     string `json:"id"`
	Count  int64  `json:"count"`
	Before int64  `json:"before"`
	// Expected is Before for the length of the first window.
	Expected float64 `json:"expected"`
}

// PatternsOf tells of patterns.
func PatternsOf(p *reading.Patterns, o *reading.Outcome) *Patterns {
	f := &Patterns{
		Basis: basisOf(&p.Basis), By: units.Duration(p.Basis.By).String(), Patterns: patternsOf(p.Patterns, p.Basis.Records), Others: p.Others, Outcome: OutcomeOf(o),
	}
	c := p.Against
	if c == nil {
		return f
	}
	f.Against = &Against{
		Basis: basisOf(&c.Basis), By: units.Duration(c.Basis.By).String(), Lacks: c.Lacks, New: append([]string{}, c.New...), Gone: patternsOf(c.Gone, c.Basis.Records),
		More: changesOf(c.More), Less: changesOf(c.Less),
	}
	if c.Range.From != reading.Oldest {
		f.Against.From = Stamp(c.Range.From)
	}
	if c.Range.To != reading.Newest {
		f.Against.To = Stamp(c.Range.To)
	}
	return f
}

func basisOf(b *reading.PatternBasis) Basis {
	f := Basis{Records: b.Records, Newest: b.Newest}
	if b.Of >= 0 {
		f.Of = &b.Of
	}
	return f
}

func changesOf(all []reading.Change) []Change {
	out := make([]Change, 0, len(all))
	for _, c := range all {
		out = append(out, Change(c))
	}
	return out
}

func patternsOf(all []reading.Pattern, of int64) []Pattern {
	out := make([]Pattern, 0, len(all))
	for i := range all {
		out = append(out, PatternOf(&all[i], of))
	}
	return out
}

// PatternOf tells of a pattern among so many records.
func PatternOf(p *reading.Pattern, of int64) Pattern {
	f := Pattern{
		ID: p.ID, Template: p.Template, Count: p.Count, Share: float64(p.Count) / float64(max(of, 1)), First: Stamp(p.First), Last: Stamp(p.Last),
		Levels: map[string]int64{}, Services: map[string]int64{}, Buckets: make([]PatternBucket, 0, len(p.Buckets)),
		Example: Example{idOf(&p.Entry), p.From, p.Example}, Where: p.Where,
	}
	for level, n := range p.Levels {
		if n > 0 {
			f.Levels[record.Level(level).String()] = n
		}
	}
	for _, s := range p.Services {
		f.Services[s.Name] = s.Count
	}
	for _, b := range p.Buckets {
		f.Buckets = append(f.Buckets, PatternBucket{Stamp(b.Start), b.Count})
	}
	return f
}

// Result are the patterns as a source has them. nanos reads a time, and entry an id.
func (f *Patterns) Result(nanos func(string) int64, entry func(id string) (record.Entry, error)) (p *reading.Patterns, err error) {
	p = &reading.Patterns{Basis: f.Basis.of(f.By), Others: f.Others}
	if p.Patterns, err = results(f.Patterns, nanos, entry); err != nil || f.Against == nil {
		return p, err
	}
	of := f.Against
	c := &reading.Compared{Basis: of.Basis.of(of.By), Range: reading.Always(), Lacks: of.Lacks, New: of.New}
	if of.From != "" {
		c.Range.From = nanos(of.From)
	}
	if of.To != "" {
		c.Range.To = nanos(of.To)
	}
	for _, change := range of.More {
		c.More = append(c.More, reading.Change(change))
	}
	for _, change := range of.Less {
		c.Less = append(c.Less, reading.Change(change))
	}
	p.Against = c
	c.Gone, err = results(of.Gone, nanos, entry)
	return p, err
}

func (b *Basis) of(by string) reading.PatternBasis {
	of := reading.PatternBasis{Records: b.Records, Newest: b.Newest, Of: -1}
	if b.Of != nil {
		of.Of = *b.Of
	}
	of.By, _ = units.ParseDuration(by) // 0s of none
	return of
}

func results(all []Pattern, nanos func(string) int64, entry func(id string) (record.Entry, error)) (out []reading.Pattern, err error) {
	for i := range all {
		f := &all[i]
		p := reading.Pattern{ID: f.ID, Template: f.Template, Where: f.Where, Stats: patterns.Stats{
			Count: f.Count, First: nanos(f.First), Last: nanos(f.Last), Example: f.Example.Message, From: f.Example.Service,
		}}
		if p.Entry, err = entry(f.Example.ID); err != nil {
			return nil, err
		}
		for level, n := range f.Levels {
			p.Levels[record.ParseLevel([]byte(level))] = n
		}
		for name, n := range f.Services {
			p.Services = append(p.Services, patterns.Service{Name: name, Count: n})
		}
		patterns.Sort(p.Services)
		for _, b := range f.Buckets {
			p.Buckets = append(p.Buckets, patterns.Bucket{Start: nanos(b.Time), Count: b.Count})
		}
		out = append(out, p)
	}
	return out, nil
}

// idOf is the id of a record.
func idOf(e *record.Entry) string {
	at := e.Key()
	return string(at.Append(nil))
}
