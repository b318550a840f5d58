package api

import (
	"cmp"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/internal/when"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/survey"
	"blobtail/record"
)

const (
	// mostBuckets keeps a mistake such as by=1ms over a year from filling the memory.
	mostBuckets = 100_000
	// countBytes is the memory of one number of a bucket, and of its text in the answer.
	countBytes = 150
	// chosenBuckets is the maximum number of buckets unless by or buckets is given.
	chosenBuckets = 120
)

func (c *call) count() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	out, err := c.store.Count(c.r.Context(), a)
	if err != nil {
		return err
	}
	return c.json(form.Count{
		Records: out.Records, Unflushed: out.Unflushed, Outcome: form.OutcomeOf(out), Range: c.rangeOf(&a), Examined: out.Examined, Higher: out.Higher,
	})
}

func (c *call) histogram() error {
	a, err := c.ask()
	if err != nil {
		return err
	}
	s := reading.Slices{Bound: mostBuckets, Zone: c.now.Location()}
	if s.By, err = c.by(); err != nil {
		return err
	}
	if s.Most, err = c.params.Number("buckets", chosenBuckets, 1, mostBuckets); err != nil {
		return err
	}
	if s.By > 0 && c.params.Get("buckets") != "" {
		return badRequest("by and buckets contradict each other; leave one out")
	}
	split, err := c.split(&s)
	if err != nil {
		return err
	}
	if c.params.Get("since") != "" {
		s.Until = c.now.UnixNano()
	}
	h, out, err := c.store.Histogram(c.r.Context(), a, s)
	if err != nil {
		return err
	}
	answer := form.Histogram{
		By: units.Duration(h.By).String(), Timezone: c.zone(), Split: split, Outcome: form.OutcomeOf(out), Range: c.rangeOf(&a), Examined: out.Examined, Higher: out.Higher,
		Values: form.SharesOf(h), Capped: h.Capped, Short: h.Short,
	}
	if h.Any {
		answer.First, answer.Last = form.Stamp(h.First), form.Stamp(h.Last)
	}
	if answer.Buckets, err = c.buckets(h, s.Apart != nil); err != nil {
		return err
	}
	return c.json(answer)
}

// split reads the fields of a split, and returns their text. A level or a service alone has all of its
// values, unless top asks for the most frequent ones.
func (c *call) split(s *reading.Slices) (text string, err error) {
	if s.Top, err = c.params.Number("top", 0, 1, survey.MostShares); err != nil {
		return "", err
	}
	if err := s.ReadSplit(cmp.Or(c.params.Get("split"), "level")); err != nil {
		return "", badRequest("split: %w", err)
	}
	if text = s.SplitText(); s.Top == 0 && (text == "level" || text == "service") {
		s.Split = nil
		if text == "service" {
			s.Apart = func([]string) bool { return true }
		}
	}
	return text, nil
}

// rangeOf tells of the range of a question, whose relative times are of the start of the request.
func (c *call) rangeOf(a *reading.Ask) *form.Range { return form.RangeOf(a.Range, c.now.UnixNano()) }

// by reads the length of a bucket, 0 if it is not given.
func (c *call) by() (time.Duration, error) {
	text := c.params.Get("by")
	if text == "" {
		return 0, nil
	}
	by, err := units.ParseDuration(text)
	if length, ok := when.Length(text); ok && err != nil {
		by = length // 5 minutes
	} else if err != nil {
		return 0, badRequest("by: %w", err)
	}
	if by <= 0 {
		return 0, badRequest("by=%s: it must be longer than nothing, such as 1m", text)
	}
	return by, nil
}

// zone is the name of the zone of the request.
func (c *call) zone() string {
	if name := c.now.Location().String(); name != "" && name[0] != '+' && name[0] != '-' {
		return name
	}
	return c.now.Format("-07:00")
}

// buckets are the buckets of an answer: each time once, with the numbers of its levels, its services or
// the values of its split.
func (c *call) buckets(h *reading.Histogram, byService bool) ([]form.Bucket, error) {
	out, last, made, keys := []form.Bucket{}, int64(0), budget.Of(c.r.Context()), h.Keys()
	for i := range h.Buckets {
		slot := &h.Buckets[i]
		if len(out) == 0 || slot.Start != last {
			last = slot.Start
			out = append(out, form.Bucket{Time: form.Stamp(last), Counts: map[string]int64{}})
		}
		b, before := &out[len(out)-1], len(out[len(out)-1].Counts)
		for i, n := range slot.Parts {
			if n > 0 {
				b.Counts[keys[i]] = n
			}
		}
		if h.Values != nil {
			b.Total, b.Others = slot.Total(), slot.Others
		}
		for level, n := range slot.Levels {
			key := record.Level(level).String()
			if byService {
				key = slot.Service
			}
			if n > 0 {
				b.Counts[key] += n
				b.Total += n
			}
		}
		// The histogram has taken the memory of one of the numbers.
		if more := len(b.Counts) - before - 1; more > 0 {
			if err := made.Take(countBytes * int64(more)); err != nil {
				return nil, err
			}
		}
	}
	if len(out) > mostBuckets {
		return nil, badRequest("the records have more than %d buckets; give a longer one by by=, or from and to", mostBuckets)
	}
	return out, nil
}
