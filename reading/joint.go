package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"blobtail/internal/budget"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
	"blobtail/reading/blobs"
	"blobtail/reading/patterns"
	"blobtail/reading/survey"
	"blobtail/record"
)

// widely is how many times as many names and values the survey of a part has as an answer. What it leaves
// out all the same is left out of the answer.
const widely = 8

// A Joint is a question with numbers whose answer is joined of those to parts by time. One of Count, Slices,
// Survey, Window and Numbers is set.
type Joint struct {
	Count   bool    // of records, which the summary has
	Slices  *Slices // with the length of its buckets
	Survey  *SurveyOptions
	Window  *int     // of patterns
	Numbers *Numbers // with the number of a request of its query
	Request int
}

// A Part has what the records of a part add to an answer, for gob. Nothing of it is chosen yet: values and
// patterns are chosen of what is joined.
type Part struct {
	Slots  []Slot
	Spread *survey.Spread
	Fields *survey.Survey
	Miner  *patterns.Miner
	States []metric.State

	request *metric.Request // of States
	sampler *stage.Sampler
}

// part is one without records. It takes its memory from a budget.
func (j *Joint) part(made *budget.Budget) (p *Part, err error) {
	p = &Part{}
	switch {
	case j.Survey != nil:
		p.Fields = newSurvey(made, j.Survey, widely)
	case j.Window != nil && *j.Window>>1 == 0:
		p.Miner = patterns.New(patterns.Options{Budget: made})
	case j.Numbers != nil:
		p.request, p.sampler, err = j.Numbers.request(j.Request, made)
	case j.Slices != nil && j.Slices.By > 0:
		if len(j.Slices.Split) > 0 {
			p.Spread = newSpread(made, j.Slices)
		}
	case j.Count:
	default:
		err = &AskError{"joint", errors.New("it is no question whose answer is joined")}
	}
	return p, err
}

// read adds the records of a plan to a part.
func (j *Joint) read(ctx context.Context, a *Ask, plan *blobs.Plan, p *Part) (sum blobs.Summary, err error) {
	switch {
	case j.Survey != nil && a.folds() && len(j.Survey.Fields) > 0: // few values of a block
		return plan.Fold(ctx, a.fold(blobs.Fold{ID: fmt.Sprintf("survey %q", j.Survey.Fields), Of: func(lines []byte) (any, int64, error) {
			// Without bounds of its own: what it left out would be left out of the whole.
			block := newSurvey(nil, j.Survey, math.MaxInt/surveyBytes)
			err := block.Add(lines)
			return block, block.Memory(), err
		}}), func(block any) error { return p.Fields.Join(block.(*survey.Survey)) })
	case j.Survey != nil:
		return plan.Read(ctx, a.Parsed(p.Fields.Add))
	case j.Window != nil:
		return plan.Entries(ctx, func(e *record.Entry) error { return p.Miner.Add(*j.Window, e) })
	case j.Numbers != nil:
		sum, err = plan.Read(ctx, a.Parsed(sampled(ctx, p.request, p.sampler)))
		p.States = p.request.States()
		return sum, err
	case j.Count:
		_, sum, err = plan.Count(ctx)
		return sum, err
	}
	cut := Buckets{Length: j.Slices.By, Zone: j.Slices.Zone}
	if len(j.Slices.Split) > 0 {
		p.Slots, sum, err = readParts(ctx, plan, a, cut, p.Spread)
		return sum, err
	}
	var h Histogram
	sum, err = h.count(ctx, plan, "", cut)
	p.Slots = h.Buckets
	return sum, err
}

// join adds the next part in order of time, which is of no use after that.
func (p *Part) join(ctx context.Context, o *Part) error {
	if (p.Spread == nil) != (o.Spread == nil) || (p.Fields == nil) != (o.Fields == nil) || (p.Miner == nil) != (o.Miner == nil) {
		return errors.New("a worker answers another question; all have to be of the same version")
	}
	for i := range o.Slots {
		of, last := &o.Slots[i], len(p.Slots)-1
		if last < 0 || p.Slots[last].Start != of.Start {
			if err := budget.Of(ctx).Take(slotBytes); err != nil {
				return err
			}
			p.Slots = append(p.Slots, *of)
			continue
		}
		p.Slots[last].Others += of.Others
		for level, n := range of.Levels {
			p.Slots[last].Levels[level] += n
		}
	}
	switch {
	case p.Fields != nil:
		return p.Fields.Join(o.Fields)
	case p.Miner != nil:
		return p.Miner.Join(o.Miner)
	case p.Spread != nil:
		return p.Spread.Join(o.Spread)
	case p.request != nil:
		return p.request.Join(o.States)
	}
	return nil
}

// joined adds the records of a plan to the answer, with others if that reads much.
func (s *Store) joined(ctx context.Context, a *Ask, plan *blobs.Plan, j Joint, all *Part) (blobs.Summary, error) {
	if all.request != nil && !all.request.Joins() {
		return j.read(ctx, a, plan, all)
	}
	d, _ := s.divide(a, plan, &j)
	if d == nil {
		return j.read(ctx, a, plan, all)
	}
	d.all = all
	return plan.Numbers(ctx, func() (blobs.Summary, bool, error) { return s.r.o.Sharing.Share(ctx, d, nil) })
}

// Part answers a question that is a part of a joint one.
func (s *Store) Part(ctx context.Context, a Ask, j Joint) (*Part, *Outcome, error) {
	made := budget.Of(ctx)
	p, err := j.part(made)
	if err == nil && p.request != nil {
		err = j.Numbers.choose(&a, p.request)
	}
	if err = cmp.Or(err, a.compile(made)); err != nil {
		return nil, &Outcome{}, err
	}
	out, err := s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		plan, err := a.plan(ctx, reader, q)
		if err != nil {
			return blobs.Summary{}, err
		}
		return j.read(ctx, &a, plan, p)
	})
	return p, out, mistaken(err)
}
