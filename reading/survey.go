package reading

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
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

// newSurvey is a survey for some options, with so many times the bounds of an answer.
func newSurvey(made *budget.Budget, o *SurveyOptions, wide int) *survey.Survey {
	return survey.New(survey.Options{
		Only: o.Fields, Skip: []string{"ts", "msg"}, Levels: true, Plain: valueBytes, Budget: made,
		Fields: wide * MostSurveyed, Values: wide * MostValues, Bytes: wide * surveyBytes,
	})
}

// Survey implements [Source]. Level and service are counted by the indexes, so those of all records
// are, unless a filter needs lines.
func (s *Store) Survey(ctx context.Context, a Ask, o SurveyOptions) (f *Survey, out *Outcome, err error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return nil, &Outcome{}, err
	}
	a.Limit, a.First, a.Reverse, a.Edges, a.byName = 0, 0, false, blobs.Edges{}, true
	f = &Survey{Of: -1}
	of := newSurvey(budget.Of(ctx), &o, 1)
	out, err = s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		counted := len(o.Fields) > 0 && !q.Filter.ReadsLines() && !slices.ContainsFunc(o.Fields, func(name string) bool { return name != "level" && name != "service" })
		switch {
		case counted: // by the indexes alone
		case o.Sample > 0:
			q.Limit, q.Reverse = o.Sample, true // the newest first are not held in memory
			sum, err = reader.Newest(ctx, q, a.Parsed(of.Add))
		default:
			plan, err2 := a.plan(ctx, reader, q)
			if err = err2; err == nil {
				sum, err = s.joined(ctx, &a, plan, Joint{Survey: &o}, &Part{Fields: of})
			}
		}
		if err != nil {
			return sum, err
		}
		f.Records, f.Newest = of.Records, sum.More
		if q.Filter.ReadsLines() {
			if !sum.More {
				f.Of = f.Records
			}
			return sum, nil
		}
		slots, part, err := apart(ctx, reader, q, named(&q), Buckets{Length: 365 * 24 * time.Hour})
		part.Records, part.Bytes = 0, 0
		sum.Join(&part)
		if f.exact(slots, &o); counted {
			f.Records = f.Of
		}
		return sum, err
	})
	if f.More = of.More; f.More {
		out.Warnings = append(out.Warnings, errors.New("there are more than 200 fields; 200 are listed, and others if they are asked for by their names"))
	}
	f.list(of, cmp.Or(o.Top, chosenTop))
	return f, out, err
}

// exact adds the wanted ones of service and level by the counts of all records.
func (f *Survey) exact(slots []Slot, o *SurveyOptions) {
	f.Of = 0
	services, levels := map[string]int64{}, map[string]int64{}
	for i := range slots {
		for level, n := range slots[i].Levels {
			if n > 0 {
				levels[record.Level(level).String()] += n
				services[slots[i].Service] += n
				f.Of += n
			}
		}
	}
	if f.Of == 0 {
		return
	}
	for name, counts := range map[string]map[string]int64{"service": services, "level": levels} {
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
