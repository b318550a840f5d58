package form

import (
	"slices"

	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// SharesOf are the values of the split of a histogram.
func SharesOf(h *reading.Histogram) []Share {
	if h.Values == nil {
		return nil
	}
	out, keys := make([]Share, 0, len(h.Values)), h.Keys()
	for i, of := range h.Values {
		share := Share{Key: keys[i], Records: of.Count}
		for _, value := range survey.Split(of.Text) {
			types := ""
			if value != "" {
				types = survey.TypeOf([]byte(value)).String()
			}
			share.Values, share.Types = append(share.Values, survey.Plain([]byte(value))), append(share.Types, types)
		}
		out = append(out, share)
	}
	return out
}

// Value is the value that s tells of.
func (s *Share) Value() survey.Value {
	values := slices.Clone(s.Values)
	for i, value := range values {
		if i < len(s.Types) && s.Types[i] == survey.String.String() {
			values[i] = string(append(record.AppendEscaped([]byte{'"'}, []byte(value)), '"'))
		}
	}
	return survey.Value{Text: survey.Join(values), Count: s.Records}
}

// RangeOf tells of a range whose relative times are of now.
func RangeOf(rng reading.Range, now int64) *Range {
	r := &Range{Now: Stamp(now)}
	if rng.From != reading.Oldest {
		r.From = Stamp(rng.From)
	}
	if rng.To != reading.Newest {
		r.To = Stamp(rng.To)
	}
	return r
}
