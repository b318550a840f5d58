package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/portable"
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
	"blobtail/record"
)

const (
	// MostSurveyed is how many fields a survey has at most, and MostValues how many different values
	// of each.
	MostSurveyed = 200
	MostValues   = 1000
	// chosenTop is how many values of a field are listed, unless it is said.
	chosenTop = 10
	// surveyBytes bounds the names and values that a survey holds, and valueBytes one value.
	surveyBytes, valueBytes = 8 << 20, 256
)

// surveying is the state of a survey. services and levels are empty if the indexes did not count them.
type surveying struct {
	Survey
	services, levels map[string]int64
	fields           *survey.Survey
}

// newSurveying bounds the values of a survey so many times as wide as those of an answer.
func newSurveying(made *budget.Budget, o *SurveyOptions, wide int) *surveying {
	return &surveying{Survey: Survey{Of: -1}, services: map[string]int64{}, levels: map[string]int64{}, fields: survey.New(survey.Options{
		Only: o.Fields, Skip: []string{"ts", "msg"}, Levels: true, Plain: valueBytes, Budget: made,
		Fields: wide * MostSurveyed, Values: wide * MostValues, Bytes: wide * surveyBytes,
	})}
}

// Survey implements [Source]. Level and service are counted by the indexes, so those of all records
// are, unless a filter needs lines.
func (s *Store) Survey(ctx context.Context, a Ask, o SurveyOptions) (*Survey, *Outcome, error) {
	f := newSurveying(budget.Of(ctx), &o, 1)
	out, err := s.survey(ctx, a, &o, f)
	return f.finish(&o, out), out, err
}

// survey surveys the records of a question.
func (s *Store) survey(ctx context.Context, a Ask, o *SurveyOptions, f *surveying) (*Outcome, error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return &Outcome{}, err
	}
	a.Limit, a.First, a.Edges, a.byName = 0, 0, blobs.Edges{}, true
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		counted := len(o.Fields) > 0 && !q.Filter.ReadsLines() && !slices.ContainsFunc(o.Fields, func(name string) bool { return name != "level" && name != "service" })
		switch {
		case counted: // by the indexes alone
		case o.Sample == 0 && a.folds() && len(o.Fields) > 0: // few values of a block
			sum, err = a.surveyed(ctx, reader, q, o, f.fields)
		default:
			sum, err = a.sample(ctx, reader, q, o.Sample, f.fields.Add)
		}
		if err != nil {
			return sum, err
		}
		f.Records, f.Newest = f.fields.Records, sum.More
		if q.Filter.ReadsLines() {
			if !sum.More {
				f.Of = f.Records
			}
			return sum, nil
		}
		slots, part, err := apart(ctx, reader, q, named(&q), Buckets{Length: 365 * 24 * time.Hour})
		part.Records, part.Bytes = 0, 0
		sum.Join(&part)
		if f.count(slots); counted {
			f.Records = f.Of
		}
		return sum, err
	})
}

// finish lists the fields.
func (f *surveying) finish(o *SurveyOptions, out *Outcome) *Survey {
	if f.More = f.fields.More; f.More {
		out.Warnings = append(out.Warnings, errors.New("there are more than 200 fields; 200 are listed, and others if they are asked for by their names"))
	}
	f.exact(o)
	f.list(f.fields, cmp.Or(o.Top, chosenTop))
	return &f.Survey
}

// join implements [partial].
func (f *surveying) join(_ context.Context, next partial) error {
	o := next.(*surveying)
	f.Records += o.Records
	f.Of = sumKnown(f.Of, o.Of)
	for name, n := range o.services {
		f.services[name] += n
	}
	for name, n := range o.levels {
		f.levels[name] += n
	}
	return f.fields.Join(o.fields)
}

// sumKnown is the sum of two numbers of records of which -1 is not known. Of records that no blob could have
// none is looked for.
func sumKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return max(a, b)
	}
	return a + b
}

// Code implements [portable.State].
func (f *surveying) Code(c *portable.Coder) {
	c.Fields(&f.Records, &f.Of)
	codeCounts(c, f.services)
	codeCounts(c, f.levels)
	f.fields.Code(c)
}

// codeCounts codes the counts of names.
func codeCounts(c *portable.Coder, counts map[string]int64) {
	all := survey.Top(maps.All(counts), 0)
	portable.List(c, &all, func(v *survey.Value) {
		c.Fields(&v.Text, &v.Count)
		counts[v.Text] = v.Count
	})
}

// surveyed joins the surveys of the blocks of a query. They have no bounds of their own: what one of them
// left out would be left out of the whole.
func (a *Ask) surveyed(ctx context.Context, reader *blobs.Reader, q blobs.Query, o *SurveyOptions, of *survey.Survey) (blobs.Summary, error) {
	plan, err := a.plan(ctx, reader, q)
	if err != nil {
		return blobs.Summary{}, err
	}
	return plan.Fold(ctx, a.fold(blobs.Fold{ID: fmt.Sprintf("survey %q", o.Fields), Of: func(lines []byte) (any, int64, error) {
		part := newSurveying(nil, o, math.MaxInt/surveyBytes).fields
		err := part.Add(lines)
		return part, part.Memory(), err
	}}), func(part any) error { return of.Join(part.(*survey.Survey)) })
}

// sample passes the newest records of a query to emit, or all if newest is 0.
func (a *Ask) sample(ctx context.Context, reader *blobs.Reader, q blobs.Query, newest int, emit func(lines []byte) error) (blobs.Summary, error) {
	emit = a.Parsed(emit)
	if newest > 0 {
		q.Limit, q.Reverse = newest, true // the newest first are not held in memory
		return reader.Newest(ctx, q, emit)
	}
	plan, err := a.plan(ctx, reader, q)
	if err != nil {
		return blobs.Summary{}, err
	}
	return plan.Read(ctx, emit)
}

// count counts services and levels.
func (f *surveying) count(slots []Slot) {
	f.Of = 0
	for i := range slots {
		for level, n := range slots[i].Levels {
			if n > 0 {
				f.levels[record.Level(level).String()] += n
				f.services[slots[i].Service] += n
				f.Of += n
			}
		}
	}
}

// exact adds the wanted ones of service and level by the counts of all records.
func (f *surveying) exact(o *SurveyOptions) {
	if len(f.levels) == 0 {
		return
	}
	for name, counts := range map[string]map[string]int64{"service": f.services, "level": f.levels} {
		if len(o.Fields) == 0 || slices.Contains(o.Fields, name) {
			top := survey.Top(maps.All(counts), cmp.Or(o.Top, chosenTop))
			for i := range top {
				top[i].Types = survey.String
			}
			f.Fields = append(f.Fields, Field{
				Name: name, Type: survey.String.String(), Present: f.Of, Distinct: len(counts), Exact: true, Values: top,
			})
		}
	}
}

// list adds the other fields, and puts all in order.
func (f *Survey) list(of *survey.Survey, top int) {
	exact := f.Fields
	for _, field := range of.Fields() {
		if slices.ContainsFunc(exact, func(e Field) bool { return e.Name == field.Name }) {
			continue
		}
		f.Fields = append(f.Fields, Field{
			Name: strings.ToValidUTF8(field.Name, "\ufffd"), Type: field.Types.String(), Present: field.Present,
			Distinct: field.Distinct, Capped: field.Capped, Values: field.Top(top),
		})
	}
	rank := func(f *Field) int { return slices.Index([]string{"service", "level"}, f.Name) }
	slices.SortFunc(f.Fields, func(a, b Field) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(b.Present, a.Present), cmp.Compare(a.Name, b.Name))
	})
}
