package reading

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
	"blobtail/record"
)

const (
	// splitValues and splitBytes bound the values that a split counts at once.
	splitValues, splitBytes = 100_000, 24 << 20
	// partBytes is the memory of the number of a value in a bucket.
	partBytes = 8
	// missingKey is the key of records that do not have the field.
	missingKey = "(none)"
)

// ReadSplit reads the fields of a split: a name, or two with a comma between them. A comma of a name
// has a backslash.
func (s *Slices) ReadSplit(text string) error {
	s.Split = nil
	for name := range strings.SplitSeq(strings.ReplaceAll(text, `\,`, "\x00"), ",") {
		name = strings.ReplaceAll(strings.TrimSpace(name), "\x00", ",")
		switch {
		case name == "":
			return fmt.Errorf("%.100q: a field is missing; want one or two, such as status or level,status", text)
		case slices.Contains(s.Split, name):
			return fmt.Errorf("%.100q: %s is given twice; leave one out", text, name)
		}
		s.Split = append(s.Split, name)
	}
	if len(s.Split) > 2 {
		return fmt.Errorf("%.100q: at most two fields divide a histogram; leave out the others", text)
	}
	return nil
}

// SplitText is the text of the split, for ReadSplit.
func (s *Slices) SplitText() string {
	return strings.Join(s.escaped(), ",")
}

func (s *Slices) escaped() (names []string) {
	for _, name := range s.Split {
		names = append(names, strings.ReplaceAll(name, ",", `\,`))
	}
	return names
}

// byIndex reports whether the indexes of blobs have the numbers of a split.
func (s *Slices) byIndex(q *blobs.Query) bool {
	return !q.Filter.ReadsLines() && !slices.ContainsFunc(s.Split, func(name string) bool { return name != "level" && name != "service" })
}

func newSpread(made *budget.Budget, by *Slices) *survey.Spread {
	return survey.NewSpread(survey.SpreadOptions{Fields: by.Split, Values: splitValues, Bytes: splitBytes, Budget: made})
}

// split divides the records of a plan by levels and services.
func (h *Histogram) split(ctx context.Context, reader *blobs.Reader, q blobs.Query, plan *blobs.Plan, by *Slices) (blobs.Summary, error) {
	spread := newSpread(budget.Of(ctx), by)
	totals, sum, err := countedParts(ctx, reader, q, plan, Buckets{Length: h.By, Zone: by.Zone}, by, spread)
	if err == nil {
		err = h.divide(ctx, totals, spread.Top(cmp.Or(by.Top, survey.ChosenShares)))
	}
	return sum, err
}

// lines counts the records of a plan by their lines, and divides them by the values of fields.
func (h *Histogram) lines(ctx context.Context, s *Store, a *Ask, plan *blobs.Plan, by *Slices) (blobs.Summary, error) {
	of := *by
	of.By = h.By
	j := Joint{Slices: &of}
	all, err := j.part(budget.Of(ctx))
	if err != nil {
		return blobs.Summary{}, err
	}
	sum, err := s.joined(ctx, a, plan, j, all)
	if h.Buckets = all.Slots; err == nil && all.Spread != nil {
		err = h.divide(ctx, all.Slots, all.Spread.Top(cmp.Or(by.Top, survey.ChosenShares)))
	}
	return sum, err
}

// countedParts counts by levels and services alone. The buckets that it returns are those of all
// records.
func countedParts(ctx context.Context, reader *blobs.Reader, q blobs.Query, plan *blobs.Plan, cut Buckets, by *Slices, spread *survey.Spread) (totals []Slot, sum blobs.Summary, err error) {
	var slots []Slot
	if slices.Contains(by.Split, "service") {
		services := named(&q)
		if len(services) == 0 { // one has come since the services were listed
			services = plan.Services()
		}
		var parts blobs.Summary
		_, sum = plan.Keys() // which tells of services that there are none of
		slots, parts, err = apart(ctx, reader, q, services, cut)
		sum.Join(&parts)
	} else {
		var h Histogram
		sum, err = h.count(ctx, plan, "", cut)
		slots = h.Buckets
	}
	if err != nil {
		return nil, sum, err
	}
	for i := range slots {
		slot := &slots[i]
		if len(totals) == 0 || totals[len(totals)-1].Start != slot.Start {
			totals = append(totals, Slot{Bucket: Bucket{Start: slot.Start}})
		}
		for level, n := range slot.Levels {
			if n == 0 {
				continue
			}
			values := make([]string, len(by.Split))
			for j, name := range by.Split {
				if values[j] = strconv.Quote(slot.Service); name == "level" {
					values[j] = strconv.Quote(record.Level(level).String())
				}
			}
			totals[len(totals)-1].Others += n
			if err := spread.Count(slot.Start, []byte(survey.Join(values)), n); err != nil {
				return nil, sum, err
			}
		}
	}
	return totals, sum, nil
}

// readParts reads the records of a plan and counts their values. The buckets that it returns are
// those of all records.
func readParts(ctx context.Context, plan *blobs.Plan, a *Ask, cut Buckets, spread *survey.Spread) (totals []Slot, sum blobs.Summary, err error) {
	made, until := budget.Of(ctx), int64(0)
	if a.folds() {
		return a.parts(ctx, plan, cut, spread)
	}
	sum, err = plan.Read(ctx, a.Parsed(func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			ns, ok := record.LineTime(line)
			if !ok {
				return errors.New("a stored line has no time")
			}
			last := len(totals) - 1
			if last < 0 || ns >= until || ns < totals[last].Start {
				if err := made.Take(slotBytes); err != nil {
					return err
				}
				start := cut.Start(ns)
				until = cut.Next(start)
				totals = append(totals, Slot{Bucket: Bucket{Start: start}})
				last++
			}
			totals[last].Others++
			if err := spread.Add(totals[last].Start, line); err != nil {
				return err
			}
		}
		return nil
	}))
	sum.Bytes = 0 // as of other histograms
	return totals, sum, err
}

// parts is readParts block by block.
func (a *Ask) parts(ctx context.Context, of *blobs.Plan, cut Buckets, spread *survey.Spread) (totals []Slot, sum blobs.Summary, err error) {
	id := ""
	if cut.Zone == nil || cut.Zone == time.UTC {
		id = fmt.Sprintf("split %s %q", cut.Length, spread.Fields())
	}
	made, at := budget.Of(ctx), map[int64]int{}
	sum, err = of.Fold(ctx, a.fold(blobs.Fold{ID: id, Of: func(lines []byte) (any, int64, error) {
		return spread.Part(lines, cut.Start, cut.Next)
	}}), func(part any) error {
		for _, c := range part.([]survey.Counted) {
			i, ok := at[c.Start]
			if !ok {
				if err := made.Take(slotBytes); err != nil {
					return err
				}
				i = len(totals)
				at[c.Start], totals = i, append(totals, Slot{Bucket: Bucket{Start: c.Start}})
			}
			totals[i].Others += c.Count
			if err := spread.Count(c.Start, []byte(c.Text), c.Count); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(totals, func(a, b Slot) int { return cmp.Compare(a.Start, b.Start) })
	return totals, sum, err
}

// divide gives the buckets their parts: the numbers of the most frequent values.
func (h *Histogram) divide(ctx context.Context, totals []Slot, top survey.Shares) error {
	if err := budget.Of(ctx).Take(partBytes * int64(len(totals)) * int64(len(top.All))); err != nil {
		return err
	}
	at := make(map[int64]int, len(totals))
	for i := range totals {
		totals[i].Parts = make([]int64, len(top.All))
		at[totals[i].Start] = i
	}
	h.Buckets, h.Values, h.Capped, h.Short = totals, []survey.Value{}, top.Capped, top.Short
	for i, share := range top.All {
		h.Values = append(h.Values, survey.Value{Text: share.Text, Count: share.Count})
		for _, c := range share.Cells {
			totals[at[c.Start]].Parts[i] += c.Count
			totals[at[c.Start]].Others -= c.Count
		}
	}
	return nil
}

// warn says that there are more values than were counted, if that matters.
func (h *Histogram) warn(by *Slices, out *Outcome) {
	if h.Short > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s has more different values than are counted at once: the number of each may lack up to %s, which are among the others, and so may a value that is not listed; a shorter range or a filter gives exact numbers",
			by.SplitText(), units.Count(h.Short, "record")))
	}
}

// Keys are the names of the values of a split for people, each of them another one: texts have
// quotes if another value looks like them.
func (h *Histogram) Keys() []string {
	keys, alike, used := make([]string, len(h.Values)), map[string]int{}, map[string]bool{}
	for i := range h.Values {
		keys[i] = keyOf(&h.Values[i], plainKey)
		alike[keys[i]]++
	}
	for i := range h.Values {
		key := keys[i]
		if alike[key] > 1 {
			key = keyOf(&h.Values[i], func(value string) string { return value })
		}
		keys[i] = key
		for n := 2; used[keys[i]] || keys[i] != key && alike[keys[i]] > 0; n++ {
			keys[i] = key + " (" + strconv.Itoa(n) + ")"
		}
		used[keys[i]] = true
	}
	return keys
}

// keyOf joins the words of the values of a combination.
func keyOf(of *survey.Value, word func(value string) string) string {
	words := survey.Split(of.Text)
	for i, value := range words {
		if words[i] = missingKey; value != "" {
			words[i] = word(value)
		}
	}
	return strings.Join(words, " / ")
}

// plainKey is a value without its quotes, unless nothing is left then.
func plainKey(value string) string { return cmp.Or(survey.Plain([]byte(value)), value) }
