package form

import (
	"blobtail/reading"
	"blobtail/reading/survey"
)

// FacetsOf tells of a survey.
func FacetsOf(s *reading.Survey, o *reading.Outcome) *Facets {
	f := &Facets{
		Basis: Basis{Records: s.Records, Newest: s.Newest}, More: s.More,
		Fields: make([]Field, 0, len(s.Fields)), Outcome: OutcomeOf(o),
	}
	if s.Of >= 0 {
		f.Basis.Of = &s.Of
	}
	for i := range s.Fields {
		of := &s.Fields[i]
		field := Field{Name: of.Name, Type: of.Type, Present: of.Present, Distinct: of.Distinct, Capped: of.Capped, Exact: of.Exact, Values: make([]Value, 0, len(of.Values))}
		for _, v := range of.Values {
			field.Values = append(field.Values, Value{Value: v.Text, Count: v.Count, Types: v.Types.Names()})
		}
		f.Fields = append(f.Fields, field)
	}
	return f
}

// Survey is the survey that the facets tell of.
func (f *Facets) Survey() *reading.Survey {
	s := &reading.Survey{Records: f.Basis.Records, Newest: f.Basis.Newest, More: f.More, Of: -1}
	if f.Basis.Of != nil {
		s.Of = *f.Basis.Of
	}
	for _, field := range f.Fields {
		of := reading.Field{Name: field.Name, Type: field.Type, Present: field.Present, Distinct: field.Distinct, Capped: field.Capped, Exact: field.Exact}
		for _, v := range field.Values {
			of.Values = append(of.Values, survey.Value{Text: v.Value, Count: v.Count, Types: survey.ParseTypes(v.Types)})
		}
		s.Fields = append(s.Fields, of)
	}
	return s
}
