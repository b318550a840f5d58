package survey

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"

	"blobtail/internal/budget"
	"blobtail/record"
)

const (
	// MostShares is how many values of a spread are told apart at most, and ChosenShares unless it is
	// said.
	MostShares   = 50
	ChosenShares = 7
	// spreadOverhead is the memory of a value of a spread beside its text, and cellBytes that of its
	// number in one bucket: a list of them grows by doubling.
	spreadOverhead, cellBytes = 150, 32
	// leastSpread is how many values a spread keeps in any case.
	leastSpread = 1000
	// mostPlain is how many bytes of a value count.
	mostPlain = 256
)

// SpreadOptions choose the fields of a spread and bound it.
type SpreadOptions struct {
	// Fields are those whose values, or combinations of values, are counted. The value of level is the
	// level that the record counts as.
	Fields []string
	// Values is how many different combinations are counted at once, and Bytes their memory.
	Values int
	Bytes  int64
	// Budget is that of the query.
	Budget *budget.Budget
}

// A Spread counts the combinations of the values of fields by time, for the most frequent ones. One
// goroutine may use it.
//
// It counts all of them until they are too many. Then it forgets the half with the fewest records.
// A value may have lost so many records, at most, as the largest of the forgotten ones had
// ([Shares.Short]), and so the frequent values of many are nearly always exact.
type Spread struct {
	// Total is the number of records.
	Total int64
	// At and Floor are for [Spread.Join] of one that was written by gob.
	At    map[string]*counted
	Floor int64 // a value that is not in At has at most so many records

	o     SpreadOptions
	bytes int64 // taken from the budget
	buf   []byte
	plain []byte
}

// counted is a value.
type counted struct {
	Share
	Short int64 // so many records, at most, were forgotten
}

// Share is a combination of values with the numbers of its records.
type Share struct {
	Text  string // [Split] takes it apart
	Count int64
	// Cells are the buckets with records, in the order in which they came. A bucket may come again.
	Cells []Cell
}

// Cell is the number of records in the bucket with a start.
type Cell struct{ Start, Count int64 }

// Shares are the most frequent combinations.
type Shares struct {
	// All are they, the most frequent first; those of equal number in the order of their texts.
	All []Share
	// Distinct is how many different ones were counted at the end. Capped says that there are more.
	Distinct int
	Capped   bool
	// Short is 0 if the most frequent ones and their numbers are right. Else each number may lack so
	// many records, at most, and so may a combination that is not among them.
	Short int64
}

// NewSpread returns a spread without records.
func NewSpread(o SpreadOptions) *Spread { return &Spread{o: o, At: map[string]*counted{}} }

// Add counts a line in the bucket with a start. An error is that of the budget.
func (s *Spread) Add(start int64, line []byte) error {
	s.combine(line)
	return s.Count(start, s.buf, 1)
}

// Fields are those whose values are counted.
func (s *Spread) Fields() []string { return s.o.Fields }

// Counted is the number of records with a combination in the bucket with a start.
type Counted struct {
	Start int64
	Text  string
	Count int64
}

// Part counts whole lines apart, for [Spread.Count], and tells the memory of the counts. Buckets begin at
// start of a time, and end at next of that. Several goroutines may call it at once.
func (s *Spread) Part(lines []byte, start, next func(ns int64) int64) (part []Counted, size int64, err error) {
	own := Spread{o: SpreadOptions{Fields: s.o.Fields}}
	at := map[string]int{} // in the present bucket
	var from, until int64
	for line := range bytes.Lines(lines) {
		ns, ok := record.LineTime(line)
		if !ok {
			return nil, 0, errors.New("a stored line has no time")
		}
		if len(part) == 0 || ns < from || ns >= until {
			from = start(ns)
			until = next(from)
			clear(at)
		}
		own.combine(line)
		i, ok := at[string(own.buf)]
		if !ok {
			i = len(part)
			part = append(part, Counted{Start: from, Text: string(own.buf)})
			at[part[i].Text] = i
			size += partBytes + int64(len(own.buf))
		}
		part[i].Count++
	}
	return part, size, nil
}

// partBytes is the memory of a count beside its text.
const partBytes = 64

// combine sets buf to the combination of a line.
func (s *Spread) combine(line []byte) {
	s.buf = s.buf[:0]
	for i, name := range s.o.Fields {
		if i > 0 {
			s.buf = append(s.buf, between...)
		}
		if name == "level" {
			s.buf = appendLevel(s.buf, line)
		} else if value, ok := record.Lookup(line, name); ok {
			s.buf = s.cut(s.buf, value)
		}
	}
}

// cut appends a value, of which only the first bytes count.
func (s *Spread) cut(dst, value []byte) []byte {
	switch {
	case len(value) <= mostPlain:
		return append(dst, value...)
	case !record.IsString(value):
		return append(dst, record.CutText(value, mostPlain)...)
	}
	s.plain = record.CutText(record.AppendUnescaped(s.plain[:0], value[1:len(value)-1]), mostPlain)
	return append(record.AppendEscaped(append(dst, '"'), s.plain), '"')
}

// Count counts records with a combination, in the bucket with a start.
func (s *Spread) Count(start int64, combination []byte, n int64) error {
	if err := s.o.Budget.Err(); err != nil {
		return err
	}
	c, err := s.room(start, combination)
	if err != nil {
		return err
	}
	if c == nil {
		c = &counted{Share: Share{Text: string(combination)}, Short: s.Floor}
		s.At[c.Text] = c
	}
	if last := len(c.Cells) - 1; last >= 0 && c.Cells[last].Start == start {
		c.Cells[last].Count += n
	} else {
		c.Cells = append(c.Cells, Cell{start, n})
	}
	c.Count += n
	s.Total += n
	return nil
}

// room takes the memory for a record of a combination in a bucket, and forgets values if there is
// none. It returns the combination; nil: it is new.
func (s *Spread) room(start int64, combination []byte) (*counted, error) {
	for {
		c := s.At[string(combination)]
		need := int64(cellBytes)
		switch {
		case c == nil:
			need += spreadOverhead + int64(len(combination))
		case c.Cells[len(c.Cells)-1].Start == start:
			return c, nil
		}
		few := len(s.At) <= leastSpread
		switch {
		case !few && (c == nil && len(s.At) >= s.o.Values || s.bytes+need > s.o.Bytes):
		case s.o.Budget.Try(need):
			s.bytes += need
			return c, nil
		case few:
			s.bytes += need
			return c, s.o.Budget.Take(need)
		}
		s.forget()
	}
}

// forget forgets the half of the values with the fewest records, and all that have as few.
func (s *Spread) forget() {
	counts := make([]int64, 0, len(s.At))
	for _, c := range s.At {
		counts = append(counts, c.Count+c.Short)
	}
	slices.Sort(counts)
	s.Floor = counts[(len(counts)-1)/2]
	for text, c := range s.At {
		if c.Count+c.Short <= s.Floor {
			n := spreadOverhead + int64(len(text)) + cellBytes*int64(len(c.Cells))
			s.bytes -= n
			s.o.Budget.Give(n)
			delete(s.At, text)
		}
	}
}

// Top are the most frequent combinations, at most so many.
func (s *Spread) Top(most int) Shares {
	all := slices.SortedFunc(maps.Values(s.At), func(a, b *counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	out := Shares{Distinct: len(all), Capped: s.Floor > 0}
	rest := s.Floor // the most records that another value may have
	for i, c := range all {
		if i >= most {
			rest = max(rest, c.Count+c.Short)
			continue
		}
		out.All = append(out.All, c.Share)
		out.Short = max(out.Short, c.Short)
	}
	if s.Floor > 0 && (len(out.All) < most || rest >= out.All[most-1].Count) {
		out.Short = s.Floor
	}
	return out
}

// Join adds the counts of another spread, of the same fields and other records. An error is that of the
// budget.
func (s *Spread) Join(o *Spread) error {
	total := s.Total + o.Total
	s.Floor += o.Floor
	for _, c := range s.At {
		c.Short += o.Floor
	}
	for _, text := range slices.Sorted(maps.Keys(o.At)) {
		of := o.At[text]
		for _, cell := range of.Cells {
			if err := s.Count(cell.Start, []byte(text), cell.Count); err != nil {
				return err
			}
		}
		s.At[text].Short += of.Short - o.Floor // it may have lost so many there, and not as many as any other
	}
	s.Total = total
	return nil
}
