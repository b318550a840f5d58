// Package survey gathers the fields of records: their names, their types, and how often each has
// which value.
//
// A [Survey] takes lines, and then lists the fields. Its [Options] bound its memory. It knows no
// store and no protocol.
package survey

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/record"
)

// overhead is the memory of a field or a value beside its text.
const overhead = 100

// Options choose the fields and the facts that a survey gathers. The zero value gathers the names
// and types of all fields.
type Options struct {
	// Only are the wanted fields; none: all.
	Only []string
	// Together says that the values of the wanted fields are counted in their combinations:
	// see [Survey.Together].
	Together bool
	// Skip are fields that are left out if Only names none.
	Skip []string
	// Examples is how many of the first different values of a field are kept.
	Examples int
	// Values is how many different values of a field are counted; 0: none are.
	Values int
	// Plain says that the values are texts without quotes and escapes, each cut at so many bytes;
	// 0: they are as they are stored.
	Plain int
	// Levels says that the value of level is the level that the record counts as, not its word.
	Levels bool
	// Fields and Bytes bound the number of fields, and the bytes of names and values; 0: any number.
	Fields, Bytes int
	// Budget is that of the query. Facts without room in it are left out.
	Budget *budget.Budget
}

// Survey gathers the fields of records. One goroutine may use it.
type Survey struct {
	// Records are those that it has taken.
	Records int64
	// More says that further fields were left out.
	More bool
	// All are the fields in the order of their first sight, for [Survey.Join] of one that was written by gob.
	All []*Field

	o      Options
	only   []string // the wanted fields, each once
	wanted []*Field // by only; nil: not seen yet
	joint  *Field   // nil: combinations are not counted
	at     map[string]*Field
	bytes  int
	buf    []byte
}

// New returns a survey without records.
func New(o Options) *Survey {
	s := &Survey{o: o, at: map[string]*Field{}}
	for _, name := range o.Only {
		if !slices.Contains(s.only, name) {
			s.only = append(s.only, name)
		}
	}
	s.wanted = make([]*Field, len(s.only))
	if o.Together {
		s.joint = &Field{At: map[string]int{}}
	}
	return s
}

// Field is a field of some records.
type Field struct {
	Name string
	// Present are the records that have the field.
	Present int64
	Types   Types
	// Examples are the first different values, as they are stored.
	Examples []string
	// Distinct are the different values that were counted. Capped says that there are more.
	Distinct int
	Capped   bool

	// At, Counts and Kinds are the values: At has the places of their numbers and their types.
	At     map[string]int
	Counts []int64
	Kinds  []Types
}

// Value is a value of a field, with the number of records that have it, and its types: without
// quotes, a text may look like a number.
type Value struct {
	Text  string
	Count int64
	Types Types
}

// Add takes the fields of whole lines. An error is that of the budget.
func (s *Survey) Add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		if err := s.o.Budget.Err(); err != nil {
			return err
		}
		s.Records++
		if s.joint != nil {
			s.combine(line)
			continue
		}
		if len(s.only) > 0 {
			s.chosen(line)
			continue
		}
		for key, value := range record.Fields(line) {
			if bytes.IndexByte(key, '\\') >= 0 {
				key = record.AppendUnescaped(nil, key)
			}
			f := s.at[string(key)]
			if f == nil && !slices.Contains(s.o.Skip, string(key)) {
				f = s.add(string(key))
			}
			if f != nil {
				s.take(f, s.level(f, line, value))
			}
		}
	}
	return nil
}

// chosen takes the wanted fields of a line.
func (s *Survey) chosen(line []byte) {
	for i, name := range s.only {
		value, ok := record.Lookup(line, name)
		if ok && s.wanted[i] == nil {
			s.wanted[i] = s.add(name)
		}
		if ok && s.wanted[i] != nil {
			s.take(s.wanted[i], s.level(s.wanted[i], line, value))
		}
	}
}

// level is a value of a field of a line, by [Options.Levels].
func (s *Survey) level(f *Field, line, value []byte) []byte {
	if !s.o.Levels || f.Name != "level" {
		return value
	}
	s.buf = appendLevel(s.buf[:0], line)
	return s.buf
}

// appendLevel appends the level that a line counts as.
func appendLevel(dst, line []byte) []byte {
	return append(append(append(dst, '"'), record.LineLevel(line).String()...), '"')
}

// combine counts the combination of the wanted fields of a line, and which of them it has.
func (s *Survey) combine(line []byte) {
	found := false
	s.buf = s.buf[:0]
	for i, name := range s.only {
		if i > 0 {
			s.buf = append(s.buf, between...)
		}
		value, ok := record.Lookup(line, name)
		if !ok {
			continue
		}
		if s.wanted[i] == nil {
			s.wanted[i] = s.add(name)
		}
		if f := s.wanted[i]; f != nil {
			f.Present++
			f.Types |= TypeOf(value)
		}
		s.buf, found = append(s.buf, value...), true
	}
	if found {
		s.joint.Present++
		s.count(s.joint, s.buf, 0)
	}
}

// between stands between the values of a combination: no stored value has one.
const between = "\n"

// Together is a field of the combinations of the wanted fields, for [Options.Together]. A record with
// none of them has no combination. [Split] takes its values apart.
func (s *Survey) Together() *Field { return s.joint }

// Split are the values of a combination, in the order of the wanted fields, "" for one that the
// records do not have.
func Split(combination string) []string { return strings.Split(combination, between) }

// Join is the combination of some values.
func Join(values []string) string { return strings.Join(values, between) }

// Plain is a value without its quotes and escapes.
func Plain(value []byte) string {
	if record.IsString(value) {
		return string(record.AppendUnescaped(nil, value[1:len(value)-1]))
	}
	return string(value)
}

// add adds a field; nil: it is left out.
func (s *Survey) add(name string) *Field {
	if s.More || s.o.Fields > 0 && len(s.All) == s.o.Fields || !s.fits(len(name)) {
		s.More = true
		return nil
	}
	f := &Field{Name: name, At: map[string]int{}}
	s.at[name] = f
	s.All = append(s.All, f)
	return f
}

// take takes a field of a record.
func (s *Survey) take(f *Field, value []byte) {
	f.Present++
	types := TypeOf(value)
	f.Types |= types
	if len(f.Examples) < s.o.Examples && !slices.Contains(f.Examples, string(value)) && s.fits(len(value)) {
		f.Examples = append(f.Examples, string(value))
	}
	if s.o.Values == 0 {
		return
	}
	if s.o.Plain > 0 {
		if record.IsString(value) {
			if value = value[1 : len(value)-1]; bytes.IndexByte(value, '\\') >= 0 {
				s.buf = record.AppendUnescaped(s.buf[:0], value)
				value = s.buf
			}
		}
		value = record.CutText(value, s.o.Plain)
	}
	s.count(f, value, types)
}

// count counts a value.
func (s *Survey) count(f *Field, value []byte, types Types) {
	if at, ok := f.At[string(value)]; ok {
		f.Counts[at]++
		f.Kinds[at] |= types
		return
	}
	if at, ok := s.place(f, string(value)); ok {
		f.Counts[at]++
		f.Kinds[at] |= types
	}
}

// place makes place for the counts of a new value. Behind one without a place there is none either: it
// may have been seen before.
func (s *Survey) place(f *Field, value string) (at int, ok bool) {
	if f.Capped || f.Distinct == s.o.Values || !s.fits(len(value)) {
		f.Capped = true
		return 0, false
	}
	at = f.Distinct
	f.At[value] = at
	f.Counts, f.Kinds = append(f.Counts, 0), append(f.Kinds, 0)
	f.Distinct++
	return at, true
}

// fits reports whether a text fits into the bounds, and takes its memory then.
func (s *Survey) fits(n int) bool {
	if s.o.Bytes > 0 && s.bytes > s.o.Bytes || !s.o.Budget.Try(int64(overhead+n)) {
		return false
	}
	s.bytes += n
	return true
}

// Fields are the fields, in the order of their first sight.
func (s *Survey) Fields() []*Field { return s.All }

// Top are the most frequent values of a field, at most so many; 0: all.
func (f *Field) Top(most int) []Value {
	top := Top(func(yield func(string, int64) bool) {
		for text, at := range f.At {
			if !yield(text, f.Counts[at]) {
				return
			}
		}
	}, most)
	for i := range top {
		top[i].Types = f.Kinds[f.At[top[i].Text]]
	}
	return top
}

// Top are the most frequent values of some counts, at most so many; 0: all. Those of equal number are
// in the order of their texts.
func Top(counts iter.Seq2[string, int64], most int) []Value {
	order := func(a, b Value) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text)) }
	all := []Value{}
	for text, n := range counts {
		all = append(all, Value{Text: text, Count: n})
		if most > 0 && len(all) >= 2*most+1000 { // a million values are not listed for ten of them
			slices.SortFunc(all, order)
			all = all[:most]
		}
	}
	slices.SortFunc(all, order)
	if most > 0 {
		all = all[:min(most, len(all))]
	}
	return all
}

// Join adds the names and values of another survey of the same fields, of later records. What one of them
// has left out is left out of both: its number is not known. Examples and combinations are not added.
// An error is that of the budget.
func (s *Survey) Join(o *Survey) error {
	if err := s.o.Budget.Err(); err != nil {
		return err
	}
	s.Records += o.Records
	for _, of := range o.All {
		f := s.at[of.Name]
		if f == nil {
			if f = s.add(of.Name); f == nil {
				continue
			}
			if i := slices.Index(s.only, of.Name); i >= 0 {
				s.wanted[i] = f
			}
		}
		f.Present += of.Present
		f.Types |= of.Types
		for _, v := range of.values() { // not all may fit
			at, ok := f.At[v.Text]
			if !ok {
				at, ok = s.place(f, v.Text)
			}
			if ok {
				f.Counts[at] += v.Count
				f.Kinds[at] |= v.Types
			}
		}
		if of.Capped {
			f.Capped = true
			maps.DeleteFunc(f.At, func(text string, _ int) bool { _, ok := of.At[text]; return !ok })
		}
	}
	if o.More {
		s.More = true
		s.All = slices.DeleteFunc(s.All, func(f *Field) bool {
			lost := !slices.ContainsFunc(o.All, func(of *Field) bool { return of.Name == f.Name })
			if lost {
				delete(s.at, f.Name)
			}
			return lost
		})
	}
	return nil
}

// values are those of a field, in the order of their first sight.
func (f *Field) values() []Value {
	all := make([]Value, len(f.Counts))
	for text, at := range f.At {
		all[at] = Value{text, f.Counts[at], f.Kinds[at]}
	}
	return slices.DeleteFunc(all, func(v Value) bool { return v.Count == 0 })
}

// Memory is about how many bytes of memory the names and values take.
func (s *Survey) Memory() (n int64) {
	for _, f := range s.All {
		n += overhead + int64(len(f.At))*overhead
	}
	return n + int64(s.bytes)
}
