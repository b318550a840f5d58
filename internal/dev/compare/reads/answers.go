package reads

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
)

// numbers are counts by their key.
type numbers map[string]int

// one is a record in its canonical form.
type one struct {
	at  int64
	sum uint64
}

func bySum(a, b one) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.at, b.at)) }

// answer is the right answer to a question: numbers, or records.
type answer struct {
	seed    maphash.Seed
	count   func() numbers
	records []one
}

// check holds the body of an answer against the right one.
func (a *answer) check(f *form, body []byte) error {
	if f.counts != nil {
		got, err := f.counts(body)
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, body)
		}
		return differentNumbers(got, a.count())
	}
	in := canon.Corpus(a.seed)
	if f.theirs {
		in = canon.Victoria(a.seed)
	}
	got := make([]one, 0, len(a.records))
	var last int64
	for line := range bytes.Lines(body) {
		at, sum, err := in.Sum(line)
		if err != nil {
			return err
		}
		if len(got) > 0 && (f.order == oldestFirst && at < last || f.order == newestFirst && at > last) {
			return fmt.Errorf("record %d of %s is out of order: %.300s", len(got)+1, at9(at), line)
		}
		last = at
		got = append(got, one{at, sum})
	}
	return a.differentRecords(got, func(strange one) string {
		for line := range bytes.Lines(body) {
			if _, sum, err := in.Sum(line); err == nil && sum == strange.sum {
				return string(line)
			}
		}
		return ""
	})
}

func at9(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }

// differentRecords tells how records differ from the right ones.
func (a *answer) differentRecords(got []one, line func(one) string) error {
	slices.SortFunc(got, bySum)
	want := slices.SortedFunc(slices.Values(a.records), bySum)
	if slices.Equal(got, want) {
		return nil
	}
	var lacks, strange []one
	i, j := 0, 0
	for i < len(got) || j < len(want) {
		switch {
		case j == len(want) || i < len(got) && bySum(got[i], want[j]) < 0:
			strange = append(strange, got[i])
			i++
		case i == len(got) || bySum(got[i], want[j]) > 0:
			lacks = append(lacks, want[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	text := fmt.Sprintf("%d records, and %d are right", len(got), len(want))
	if len(lacks) > 0 {
		text += fmt.Sprintf("; it lacks %d, such as one of %s", len(lacks), at9(lacks[0].at))
	}
	if len(strange) > 0 {
		text += fmt.Sprintf("; it has %d that it must not have, or not as often, such as %.600s", len(strange), strings.TrimSpace(line(strange[0])))
	}
	return errors.New(text)
}

// differentNumbers tells how numbers differ from the right ones.
func differentNumbers(got, want numbers) error {
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

// agree holds the answers against the generator's own: those of the first variants, and those of all
// its needles.
func agree(all []*question, x *index, c *rig.Corpus) (err error) {
	if len(c.Last) == 0 || c.LastService != c.RegexService || len(x.found[finding{text: x.drawn.needles[0]}]) == 0 {
		return errors.New("the generator's answers have no token, no newest records, or two services")
	}
	counts := map[string]int{}
	for _, w := range c.Windows {
		for level, n := range w.Counts[c.LastService] {
			if w.Name == "1h" || level == "error" || level == "critical" {
				counts[w.Name] += n
			}
		}
	}
	minutes := numbers{}
	for minute, levels := range c.PerMinute {
		for i, level := range []string{"debug", "info", "warn", "error", "critical"} {
			if levels[i] > 0 {
				minutes[minute+" "+level] = levels[i]
			}
		}
	}
	want := map[string]int{"window": counts["2m"], "hour": counts["1h"], "id": 1, "newest": min(newestRecords, len(c.Last)), "newest-all": min(newestRecords, c.Records), "expression": c.RegexMatches}
	for _, n := range c.Needles {
		if got := len(x.found[finding{text: n.Token}]); got != n.Count {
			err = errors.Join(err, fmt.Errorf("the corpus has %d records with %s, and the generator says %d", got, n.Token, n.Count))
		}
	}
	for _, q := range all {
		first := q.variants[0].want
		n, known := want[q.id]
		switch {
		case known && n != len(first.records):
			err = errors.Join(err, fmt.Errorf("%s: the corpus has %d records, and the generator says %d", q.title, len(first.records), n))
		case q.id == "minutes":
			err = errors.Join(err, differentNumbers(first.count(), minutes))
		case q.id == "services":
			err = errors.Join(err, differentNumbers(first.count(), c.Per))
		}
	}
	return err
}
