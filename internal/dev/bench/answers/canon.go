// Package answers has the right answers to questions about a corpus, taken from the corpus itself, and
// holds records and numbers of blobtail and of VictoriaLogs against them.
package answers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/bench/rig"
)

// Form tells how a source names the members of a record. Sums of forms with the same seed are
// comparable.
type Form struct {
	Seed maphash.Seed
	Time string            // the member with the time
	As   map[string]string // other names of members; a member with the name "" does not count
	// Rounded counts the values that are compared after rounding, if it is not nil.
	Rounded *atomic.Int64
}

// Ours is the form of the generator, and of lines that blobtail stores.
func Ours(seed maphash.Seed) Form { return Form{Seed: seed, Time: "ts"} }

// Theirs is the form of VictoriaLogs.
func Theirs(seed maphash.Seed, rounded *atomic.Int64) Form {
	return Form{seed, "_time", map[string]string{"_msg": "msg", "_stream": "", "_stream_id": ""}, rounded}
}

// Record is a record in its canonical form.
type Record struct {
	At  int64 // ns since 1970
	Sum uint64
}

func bySum(a, b Record) int { return cmp.Or(cmp.Compare(a.Sum, b.Sum), cmp.Compare(a.At, b.At)) }

// Record returns the time of a record, and a hash of all that it has: the time in ns, and the other
// members as texts, in any order. Members without a value do not count, and neither do zeros at the
// end of a decimal fraction, because VictoriaLogs keeps none of them.
func (f Form) Record(line []byte) (r Record, err error) {
	timed := false
	err = rig.Members(line, func(name, value []byte, _ bool) error {
		if string(name) == f.Time {
			t, err := time.Parse(time.RFC3339Nano, string(value))
			r.At, timed = t.UnixNano(), true
			return err
		}
		if other, ok := f.As[string(name)]; ok {
			name = []byte(other)
		}
		if len(value) > 0 && len(name) > 0 {
			r.Sum += mix(maphash.Bytes(f.Seed, name) ^ bits.RotateLeft64(maphash.Bytes(f.Seed, f.decimal(value)), 17))
		}
		return nil
	})
	if err == nil && !timed {
		err = fmt.Errorf("it has no %s", f.Time)
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: %.500s", err, line)
	}
	r.Sum = mix(r.Sum ^ mix(uint64(r.At)))
	return r, nil
}

// decimal cuts zeros from the end of a decimal fraction, and rounds one of more than 15 digits to
// 12: VictoriaLogs returns some numbers so, such as 1.382 as 1.3820000000000001. Other values stay
// as they are.
func (f Form) decimal(value []byte) []byte {
	if last := value[len(value)-1]; last != '0' && len(value) <= 16 {
		return value
	}
	point, digits := -1, 0
	for i, c := range value {
		switch {
		case c == '.' && point < 0 && i > 0:
			point = i
		case c == '-' && i == 0:
		case c < '0' || c > '9':
			return value
		case c != '0' || digits > 0:
			digits++
		}
	}
	if point < 0 {
		return value
	}
	if v, err := strconv.ParseFloat(string(value), 64); err == nil && digits > 15 {
		if f.Rounded != nil {
			f.Rounded.Add(1)
		}
		value = strconv.AppendFloat(nil, v, 'f', max(0, 12-int(math.Ceil(math.Log10(math.Abs(v))))), 64)
		if bytes.IndexByte(value, '.') < 0 {
			return value
		}
	}
	return bytes.TrimSuffix(bytes.TrimRight(value, "0"), []byte("."))
}

// mix makes all bits depend on each other (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Order is the order of records in an answer.
type Order int

// The orders.
const (
	AnyOrder Order = iota
	OldestFirst
	NewestFirst
)

// Format is the form of an answer of one side.
type Format struct {
	Form
	Order Order
	// Counts reads an answer with numbers. Without it the answer has records.
	Counts func([]byte) (Numbers, error)
}

// Numbers are counts by their key.
type Numbers map[string]int

// Answer is the right answer to a question: numbers, or records.
type Answer struct {
	records []Record // by their sums
	count   func() Numbers
}

// AnswerOf is the answer that has some records.
func AnswerOf(records []Record) Answer {
	return Answer{records: slices.SortedFunc(slices.Values(records), bySum)}
}

// AnswerOfLines is the answer that has all records of some texts.
func AnswerOfLines(f Form, texts ...[]byte) (Answer, error) {
	var records []Record
	for _, text := range texts {
		for line := range bytes.Lines(text) {
			r, err := f.Record(line)
			if err != nil {
				return Answer{}, err
			}
			records = append(records, r)
		}
	}
	return AnswerOf(records), nil
}

// Len returns how many records the answer has or counts.
func (a Answer) Len() (n int) {
	if a.count == nil {
		return len(a.records)
	}
	for _, of := range a.count() {
		n += of
	}
	return n
}

// Check holds an answer against the right one: its records, each as often as it must be there, or its
// numbers.
func (a Answer) Check(f Format, from io.Reader) error {
	if f.Counts != nil {
		body, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		got, err := f.Counts(body)
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, body)
		}
		return differ(got, a.count())
	}
	seen := make([]uint32, len(a.records)) // how often, at the first of equal ones
	n, strange, example, last := 0, 0, "", int64(0)
	for line, err := range rig.LinesOf(from) {
		var r Record
		if err == nil {
			r, err = f.Record(line)
		}
		if err == nil && n > 0 && (f.Order == OldestFirst && r.At < last || f.Order == NewestFirst && r.At > last) {
			err = fmt.Errorf("record %d of %s is out of order: %.300s", n+1, stamp(r.At), line)
		}
		if err != nil {
			return err
		}
		last = r.At
		n++
		if at, ok := slices.BinarySearchFunc(a.records, r, bySum); ok {
			seen[at]++
		} else if strange++; strange == 1 {
			example = ", such as " + string(line[:min(len(line), 600)])
		}
	}
	lacks, doubled := 0, 0
	for i := 0; i < len(a.records); {
		want := 1
		for i+want < len(a.records) && a.records[i+want] == a.records[i] {
			want++
		}
		if less := want - int(seen[i]); less > 0 && lacks == 0 {
			example += ", and of those it lacks one is of " + stamp(a.records[i].At)
		}
		lacks, doubled = lacks+max(0, want-int(seen[i])), doubled+max(0, int(seen[i])-want)
		i += want
	}
	if lacks+doubled+strange == 0 {
		return nil
	}
	return fmt.Errorf("%d records, and %d are right: %d are missing, %d are there too often, %d are not right%s",
		n, len(a.records), lacks, doubled, strange, example)
}

func stamp(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }

// differ tells how numbers differ from the right ones.
func differ(got, want Numbers) error {
	if maps.Equal(got, want) {
		return nil
	}
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	var text []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if got[key] != want[key] {
			text = append(text, fmt.Sprintf("%s has %d, not %d", key, got[key], want[key]))
		}
	}
	if len(text) == 0 {
		return errors.New("it has a key without records")
	}
	return fmt.Errorf("%d of %d numbers are wrong: %s", len(text), len(keys), strings.Join(text[:min(3, len(text))], "; "))
}
