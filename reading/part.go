package reading

import (
	"context"
	"errors"

	"blobtail/internal/budget"
	"blobtail/internal/portable"
)

// widely is how many times as many names and values the survey of a slice has as an answer. What it leaves
// out all the same is left out of the answer.
const widely = 8

// A Joint is a question with numbers for one slice of time. The answer to the whole question is joined of
// the [Part]s of slices that share no record. One of Split, Survey, Patterns and Table is set. As JSON it
// lacks the question and the zone.
type Joint struct {
	// Ask is the question. Its range is the slice. With a table only the range, Live and Here count.
	Ask      Ask     `json:"-"`
	Split    *Slices // with the length of its buckets, and with fields
	Survey   *SurveyOptions
	Patterns *PatternOptions
	// Second says that the slice is one of the second window of patterns.
	Second bool
	Table  *Table // with its whole range: [Table.Reads] tells which records it needs
}

// Joinable reports whether the answer can be joined. Those of the newest records, tables of quantiles,
// deviations or counters, and bad questions are not.
func (j *Joint) Joinable() bool {
	switch {
	case j.Split != nil:
		return j.Split.By > 0 && len(j.Split.Split) > 0 && j.Split.Apart == nil
	case j.Survey != nil:
		return j.Survey.Sample == 0
	case j.Patterns != nil:
		return j.Patterns.Sample == 0
	case j.Table != nil:
		q, err := j.Table.compile(nil)
		return err == nil && q.Joins()
	}
	return false
}

// A Part has what the records of some slices add to an answer. It is bounded as the memory of an answer
// is, and nothing of it is chosen yet: [Part.Join] joins the states from which values and patterns are chosen.
type Part struct {
	of Joint
	partial
}

// partial is the state of an answer.
type partial interface {
	portable.State
	join(ctx context.Context, next partial) error
}

// Part is one without records, for [Part.Join]. Its memory is taken from the budget.
func (j *Joint) Part(ctx context.Context) (*Part, error) { return j.part(budget.Of(ctx), 1) }

// Decode is a part by the bytes of [Part.Encode]. It is in no budget.
func (j *Joint) Decode(data []byte) (*Part, error) {
	p, err := j.part(nil, 1)
	if err == nil {
		err = portable.Decode(data, p)
	}
	return p, err
}

func (j *Joint) part(made *budget.Budget, wide int) (*Part, error) {
	p := &Part{of: *j}
	switch {
	case !j.Joinable():
		return nil, &AskError{"part", errors.New("the answer cannot be joined of those to slices of time; ask one process for all of it")}
	case j.Split != nil:
		p.partial = newSplitting(made, j.Split)
	case j.Survey != nil:
		p.partial = newSurveying(made, j.Survey, wide)
	case j.Patterns != nil:
		p.partial = newMining(made, j.Patterns)
	default:
		q, err := j.Table.compile(made)
		p.partial = &tabling{j.Table, q}
		return p, err
	}
	return p, nil
}

// Encode are the bytes of a part, for [Joint.Decode] of the same joint in a process of the same version.
func (p *Part) Encode() []byte { return portable.Encode(p) }

// Part reads a slice. The outcome has none of the warnings of [Part.Histogram] and its like.
func (s *Store) Part(ctx context.Context, j Joint) (p *Part, out *Outcome, err error) {
	if p, err = j.part(budget.Of(ctx), widely); err == nil {
		err = j.Ask.compile(budget.Of(ctx))
	}
	if err != nil {
		return nil, &Outcome{}, err
	}
	switch {
	case j.Split != nil:
		p.partial, out, err = s.histogram(ctx, j.Ask, *j.Split)
	case j.Survey != nil:
		out, err = s.survey(ctx, j.Ask, j.Survey, p.partial.(*surveying))
	case j.Patterns != nil:
		window := 0
		if j.Second {
			window, j.Ask.Here.Sure = 1, true
		}
		out, err = s.mine(ctx, j.Ask, 0, p.partial.(*mining), window)
	default:
		p.partial, out, err = s.table(ctx, *j.Table, Ask{Range: j.Ask.Range, Live: j.Ask.Live, Here: j.Ask.Here})
	}
	return p, out, err
}

// Join adds the records of the next slices in order of time, by a part of the same question. That is of no
// use after it, and after an error neither is p.
func (p *Part) Join(ctx context.Context, next *Part) error { return p.join(ctx, next.partial) }

// Histogram is that of a joint with a split. It adds its warnings to the outcome of all slices.
func (p *Part) Histogram(ctx context.Context, out *Outcome) (*Histogram, error) {
	h, by := p.partial.(*splitting), p.of.Split
	if _, err := by.Length(p.of.Ask.Range, h.First, h.Last, h.Any); err != nil {
		return nil, err
	}
	h.By = by.By
	err := h.divide(ctx, by)
	h.warn(by, out)
	return &h.Histogram, err
}

// Survey is that of a joint. It adds its warnings to the outcome of all slices.
func (p *Part) Survey(out *Outcome) *Survey {
	return p.partial.(*surveying).finish(p.of.Survey, out)
}

// Patterns are those of a joint. They add to the outcome of the slices of the first window that of those of
// the second one, which is nil if there is none, and their warnings. The first window has a range.
func (p *Part) Patterns(first Range, out, second *Outcome) (*Patterns, error) {
	return p.partial.(*mining).finish(first, p.of.Patterns, out, second)
}

// Rows are those of a joint with a table.
func (p *Part) Rows(ctx context.Context) ([]Row, error) { return p.partial.(*tabling).rows(ctx) }
