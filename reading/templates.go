package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/reading/blobs"
	"blobtail/reading/patterns"
	"blobtail/record"
)

const (
	// chosenPatterns is how many patterns are listed, unless it is said, and MostPatterns at most.
	chosenPatterns = 50
	MostPatterns   = 1000
)

// PatternOptions choose the records that patterns are taken from, and a window to compare with.
type PatternOptions struct {
	// Sample is how many of the newest records of each window are looked at; 0: all are.
	Sample int
	// Top is how many patterns are listed; 0: 50.
	Top int
	// Against is a second window; nil: there is none. The question is the same but for its range.
	Against *Range
}

// Patterns has the patterns of messages.
type Patterns struct {
	Basis PatternBasis
	// Patterns are the most frequent ones first; those that [Compared.New] and its other lists name
	// are among them.
	Patterns []Pattern
	// Others are the records that have none of these.
	Others int64
	// Against compares with the second window; nil: there is none.
	Against *Compared
}

// PatternBasis tells which records of a window patterns were taken from.
type PatternBasis struct {
	// Records are those that were looked at. Newest says that they are the newest ones, not all.
	Records int64
	Newest  bool
	// Of is the number of all records of the window; -1: it is not known.
	Of int64
	// By is the length of the buckets.
	By time.Duration
}

// Pattern is the text that some messages have in common, with the numbers of their records.
type Pattern struct {
	// ID is a hash of the template.
	ID string
	// Template is the text, with <*> for each value.
	Template string
	// Where is a condition for [Ask.Where] that is true for these records.
	Where string
	patterns.Stats
}

// Compared has the patterns of two windows that differ.
type Compared struct {
	Basis PatternBasis
	Range Range // the second window
	// Lacks says that records of the second window are missing, so that a pattern may look new.
	Lacks bool
	// New are the patterns that the second window does not have, the most frequent ones first.
	New []string
	// Gone are those that only the second window has, with their numbers there.
	Gone []Pattern
	// More and Less are those that are much more frequent or rarer than in the second window, for its
	// length; those that differ most first.
	More, Less []Change
}

// Change is a pattern in two windows.
type Change struct {
	ID string
	// Count are its records in the first window, and Before those in the second. Expected is Before
	// for the length of the first window.
	Count, Before int64
	Expected      float64
}

// Patterns implements [Source].
func (s *Store) Patterns(ctx context.Context, a Ask, o PatternOptions) (*Patterns, *Outcome, error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return nil, &Outcome{}, err
	}
	mined := patterns.Options{Budget: budget.Of(ctx), Windows: 1}
	if o.Against != nil {
		mined.Windows = 2
	}
	m := patterns.New(mined)
	p := &Patterns{}
	out, err := s.mine(ctx, a, o.Sample, &p.Basis, m, 0)
	if err != nil {
		return nil, out, err
	}
	if o.Against != nil {
		if !out.Complete() {
			out.Warnings = append(out.Warnings, errors.New("records of the first window are missing, so patterns of these may be missing among the new ones, and look gone or rarer"))
		}
		before := a
		before.Range, before.Here.Sure = *o.Against, true
		p.Against = &Compared{Range: *o.Against}
		second, err := s.mine(ctx, before, o.Sample, &p.Against.Basis, m, 1)
		if p.Against.Lacks = !second.Complete(); p.Against.Lacks {
			second.Warnings = append(second.Warnings, errors.New("records of the second window are missing: a pattern that only these have looks new"))
		}
		records, unflushed, examined := out.Records, out.Unflushed, out.Examined
		out.Add(second)
		out.Records, out.Unflushed, out.Examined = records, unflushed, examined
		if err != nil {
			return nil, out, err
		}
		switch b := &p.Against.Basis; {
		case b.Records == 0 && p.Basis.Records > 0 && !p.Against.Lacks:
			out.Warnings = append(out.Warnings, errors.New("the second window has no records that match: each pattern looks new"))
		case b.Newest:
			out.Warnings = append(out.Warnings, fmt.Errorf("of the second window only the newest %s were looked at: a pattern that older ones have looks new", units.Count(b.Records, "record")))
		}
	}
	if err := p.fill(m.Patterns(), cmp.Or(o.Top, chosenPatterns), a.Range, out); err != nil {
		return nil, out, err
	}
	return p, out, nil
}

// mine passes the records of a window to a miner.
func (s *Store) mine(ctx context.Context, a Ask, sample int, b *PatternBasis, m *patterns.Miner, window int) (*Outcome, error) {
	a.Limit, a.First, a.Reverse, a.Edges = 0, 0, false, blobs.Edges{}
	b.Of = -1
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		if sample > 0 {
			q.Limit, q.Reverse = sample, true // the newest first are not held in memory
			sum, err = reader.NewestEntries(ctx, q, func(e *record.Entry) error { return m.Add(window, e) })
		} else {
			plan, err := a.plan(ctx, reader, q)
			if err != nil {
				return sum, err
			}
			if sum, err = s.joined(ctx, &a, plan, Joint{Window: &window}, &Part{Miner: m}); err != nil {
				return sum, err
			}
		}
		if b.Records, b.Newest = sum.Records, sum.More; err != nil || !sum.More || q.Filter.ReadsLines() {
			if !sum.More {
				b.Of = b.Records
			}
			return sum, err
		}
		q.Limit, q.Reverse = 0, false
		plan, err := reader.Plan(ctx, q)
		if err != nil {
			return sum, err
		}
		n, part, err := plan.Count(ctx)
		b.Of = n
		part.Records, part.Bytes = 0, 0
		sum.Join(&part)
		return sum, err
	})
}

// fill lists patterns. An error is that of the budget.
func (p *Patterns) fill(r *patterns.Result, top int, rng Range, out *Outcome) error {
	p.Basis.By = r.By[0]
	if p.Against != nil {
		p.Against.Basis.By = r.By[1]
		if err := p.Against.compare(r, top, rng, p.Basis.Newest); err != nil {
			return err
		}
	}
	var listed []*patterns.Pattern
	for i, of := range r.Patterns {
		if of.In[0].Count > 0 && (i < top || p.Against.names(of.ID)) {
			listed = append(listed, of)
		}
	}
	if err := r.Describe(listed); err != nil {
		return err
	}
	p.Others = p.Basis.Records
	for _, of := range listed {
		p.Patterns = append(p.Patterns, Pattern{of.ID, of.Template, of.Where, of.In[0]})
		p.Others -= of.In[0].Count
	}
	if r.Folded {
		out.Warnings = append(out.Warnings, errors.New("there are more different messages than are held at once; other records, or the same in another order, may give other patterns"))
	}
	if n := r.Others[0] + r.Others[1]; n > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of messages that are too different have no pattern; a filter or a shorter range has fewer of them", units.Count(n, "record")))
	}
	return nil
}

// names reports whether a pattern is new, more frequent or rarer.
func (c *Compared) names(id string) bool {
	of := func(all []Change) bool { return slices.ContainsFunc(all, func(c Change) bool { return c.ID == id }) }
	return c != nil && (slices.Contains(c.New, id) || of(c.More) || of(c.Less))
}

// compare finds the patterns that differ. An error is that of the budget.
func (c *Compared) compare(r *patterns.Result, top int, rng Range, newest bool) error {
	scale := length(r, 0, rng, newest) / length(r, 1, c.Range, c.Basis.Newest)
	var gone []*patterns.Pattern
	for _, p := range r.Patterns {
		count, before := p.In[0].Count, p.In[1].Count
		change := Change{ID: p.ID, Count: count, Before: before, Expected: float64(before) * scale}
		switch n, e := float64(count), change.Expected; {
		case before == 0:
			c.New = append(c.New, p.ID)
		case count == 0:
			gone = append(gone, p)
		case n >= 2*e && n-e >= 3*math.Sqrt(max(e, 1)):
			c.More = append(c.More, change)
		case e >= 2*n && e-n >= 3*math.Sqrt(max(e, 1)):
			c.Less = append(c.Less, change)
		}
	}
	slices.SortStableFunc(gone, func(a, b *patterns.Pattern) int { return cmp.Compare(b.In[1].Count, a.In[1].Count) })
	by := func(a, b Change) int {
		return cmp.Compare(math.Abs(float64(b.Count)-b.Expected), math.Abs(float64(a.Count)-a.Expected))
	}
	slices.SortStableFunc(c.More, by)
	slices.SortStableFunc(c.Less, by)
	c.New, c.More, c.Less, gone = c.New[:min(top, len(c.New))], c.More[:min(top, len(c.More))], c.Less[:min(top, len(c.Less))], gone[:min(top, len(gone))]
	if err := r.Describe(gone); err != nil {
		return err
	}
	for _, p := range gone {
		c.Gone = append(c.Gone, Pattern{p.ID, p.Template, p.Where, p.In[1]})
	}
	return nil
}

// length is that of the part of a window that was looked at, in seconds. An open end is the time of the
// outermost record.
func length(r *patterns.Result, window int, rng Range, newest bool) float64 {
	first, last, any := int64(math.MaxInt64), int64(math.MinInt64), false
	for _, p := range r.Patterns {
		if in := &p.In[window]; in.Count > 0 {
			first, last, any = min(first, in.First), max(last, in.Last), true
		}
	}
	from, to := rng.From, rng.To
	if newest || from == Oldest {
		from = first
	}
	if to == Newest {
		to = last
	}
	if !any && (rng.From == Oldest || rng.To == Newest) {
		return 1
	}
	return max(1, (float64(to)-float64(from))/1e9)
}
