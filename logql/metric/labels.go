package metric

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"blobtail/logql"
	"blobtail/logql/stage"
)

// Label is a name with a value.
type Label = stage.Label

// errorLabel is the label of records that a stage could not handle.
const errorLabel = "__error__"

// grouped returns a copy of the labels that a grouping leaves (all, without one), in order. Empty
// ones are left out, as if they were missing.
func grouped(labels []Label, g *logql.Grouping) []Label {
	kept := make([]Label, 0, len(labels))
	for _, l := range labels {
		if l.Value != "" && (g == nil || slices.Contains(g.Labels, l.Name) != g.Without) {
			kept = append(kept, l)
		}
	}
	slices.SortStableFunc(kept, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return kept
}

// key is a text that only equal labels have.
func key(labels []Label) string {
	var b []byte
	for _, l := range labels {
		b = binary.AppendUvarint(b, uint64(len(l.Name)))
		b = append(b, l.Name...)
		b = binary.AppendUvarint(b, uint64(len(l.Value)))
		b = append(b, l.Value...)
	}
	return string(b)
}

// compare is the order of series: by the names and values of their labels, one after another.
func compare(a, b []Label) int {
	return slices.CompareFunc(a, b, func(a, b Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
}

// spoken is how people write labels.
func spoken(labels []Label) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, l := range labels {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(l.Name + "=" + strconv.Quote(l.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
