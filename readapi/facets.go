package readapi

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/record"
)

const (
	// chosenSample and mostSample are how many of the newest records the values are taken
	// from: unless asked otherwise, and at most.
	chosenSample = 10_000
	mostSample   = 1_000_000
	chosenTop    = 10
	// mostFields, mostDistinct and mostFacetBytes bound the memory for names and values.
	mostFields     = 200
	mostDistinct   = 1000
	mostFacetBytes = 8 << 20
	// valueBytes is where a value is cut.
	valueBytes = 256
)

// survey gathers the fields of records.
type survey struct {
	budget  *budget.Budget
	only    []string // the wanted fields; none: all but ts and msg
	fields  map[string]*facet
	records int64
	bytes   int  // of names and values
	more    bool // fields were left out
}

// facet is a field of records.
type facet struct {
	present int64
	kind    string
	values  map[string]int64
	capped  bool
	exact   bool
}

// facets answers with the fields of records and their most frequent values.
func (c *call) facets() error {
	q, mode, err := c.query()
	if err != nil {
		return err
	}
	top, err := c.params.number("top", chosenTop, 1, mostDistinct)
	if err != nil {
		return err
	}
	sample, err := c.params.number("sample", chosenSample, 0, mostSample)
	if err != nil {
		return err
	}
	s := &survey{budget: budget.Of(c.r.Context()), only: c.params.list("fields"), fields: map[string]*facet{}}
	if len(s.only) > mostFields {
		return badRequest("fields names %d fields; at most %d have facets at once", len(s.only), mostFields)
	}
	answer := form.Facets{}
	result, err := c.run(q, mode, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		sum, err := s.read(c, blobs, q, sample)
		if err != nil {
			return sum, err
		}
		answer.Basis = form.Basis{Records: s.records, Newest: sum.More}
		if !q.Filter.ReadsLines() {
			of, part, err := s.count(c, blobs, q)
			part.Records, part.Bytes = 0, 0
			sum.Join(&part)
			answer.Basis.Of = &of
			return sum, err
		}
		if !sum.More {
			answer.Basis.Of = &s.records
		}
		return sum, nil
	})
	if err != nil {
		return err
	}
	answer.Outcome, answer.Fields = outcome(result, &q.Filter), s.list(top)
	if s.more {
		answer.Warnings = append(answer.Warnings, "there are more than 200 fields; the others are left out, unless fields= names them")
	}
	return c.json(answer)
}

// read takes the fields of the newest records, or of all if sample is 0.
func (s *survey) read(c *call, blobs *query.Reader, q query.Query, sample int) (query.Summary, error) {
	if sample > 0 {
		q.Limit, q.Reverse = sample, true // the newest first are not held in memory
		return blobs.Newest(c.r.Context(), q, s.add)
	}
	plan, err := blobs.Plan(c.r.Context(), q)
	if err != nil {
		return query.Summary{}, err
	}
	return plan.Read(c.r.Context(), s.add)
}

// count counts the levels of each service by the indexes, so that they are those of all
// records. It returns the number of these.
func (s *survey) count(c *call, blobs *query.Reader, q query.Query) (of int64, sum query.Summary, err error) {
	levels := &facet{kind: "string", values: map[string]int64{}, exact: true}
	services := &facet{kind: "string", values: map[string]int64{}, exact: true}
	names := q.Services
	q.Sure = true // the sample tells which are none
	for _, name := range names {
		q.Services = []string{name}
		plan, err := blobs.Plan(c.r.Context(), q)
		if err != nil {
			return 0, sum, err
		}
		buckets, part, err := plan.Histogram(c.r.Context(), query.Buckets{Length: 365 * 24 * time.Hour})
		sum.Join(&part)
		if err != nil {
			return 0, sum, err
		}
		for i := range buckets {
			for level, n := range buckets[i].Levels {
				if n > 0 {
					levels.values[record.Level(level).String()] += n
					services.values[name] += n
					of += n
				}
			}
		}
	}
	for name, f := range map[string]*facet{"level": levels, "service": services} {
		if f.present = of; of > 0 && (len(s.only) == 0 || slices.Contains(s.only, name)) {
			s.fields[name] = f
		}
	}
	return of, sum, nil
}

// add takes the fields of lines.
func (s *survey) add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := s.budget.Err(); err != nil {
			return err
		}
		s.records++
		if len(s.only) > 0 {
			for _, name := range s.only {
				if value, ok := record.Lookup(line, name); ok {
					s.take([]byte(name), value)
				}
			}
			continue
		}
		for key, value := range record.Fields(line) {
			if string(key) == "ts" || string(key) == "msg" {
				continue
			}
			if bytes.IndexByte(key, '\\') >= 0 {
				key = record.AppendUnescaped(nil, key)
			}
			s.take(key, value)
		}
	}
	return nil
}

// take takes a field of a record.
func (s *survey) take(name, value []byte) {
	f := s.fields[string(name)]
	if f == nil {
		if len(s.fields) == mostFields || s.bytes > mostFacetBytes {
			s.more = true
			return
		}
		f = &facet{values: map[string]int64{}}
		s.fields[string(name)] = f
		s.bytes += len(name)
	}
	f.present++
	switch kind := kindOf(value); f.kind {
	case kind:
	case "":
		f.kind = kind
	case "int", "float":
		if kind == "int" || kind == "float" {
			f.kind = "float"
			break
		}
		f.kind = "mixed"
	default:
		f.kind = "mixed"
	}
	text := value
	if record.IsString(value) {
		if text = value[1 : len(value)-1]; bytes.IndexByte(text, '\\') >= 0 {
			text = record.AppendUnescaped(nil, text)
		}
	}
	text = record.CutText(text, valueBytes)
	if _, known := f.values[string(text)]; !known {
		if len(f.values) == mostDistinct || s.bytes > mostFacetBytes {
			f.capped = true
			return
		}
		s.bytes += len(text)
	}
	f.values[string(text)]++
}

// kindOf is the type of a value of JSON.
func kindOf(value []byte) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(value, ".eE") {
		return "float"
	}
	return "int"
}

// list lists the fields: level and service, then those that most records have.
func (s *survey) list(top int) []form.Field {
	out := make([]form.Field, 0, len(s.fields))
	for name, f := range s.fields {
		out = append(out, form.Field{
			Name: strings.ToValidUTF8(name, "\ufffd"), Type: f.kind, Present: f.present, Distinct: len(f.values), Capped: f.capped, Exact: f.exact, Values: f.top(top),
		})
	}
	rank := func(f *form.Field) int { return slices.Index([]string{"service", "level"}, f.Name) }
	slices.SortFunc(out, func(a, b form.Field) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(b.Present, a.Present), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// top are the most frequent values.
func (f *facet) top(n int) []form.Value {
	names := slices.Collect(maps.Keys(f.values))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.values[b], f.values[a]), cmp.Compare(a, b))
	})
	out := make([]form.Value, 0, min(n, len(names)))
	for _, name := range names[:min(n, len(names))] {
		out = append(out, form.Value{Value: name, Count: f.values[name]})
	}
	return out
}
