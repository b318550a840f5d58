package blobs

import (
	"slices"
	"strings"
	"unicode"

	"blobtail/record"
)

// ParseServices returns the services that texts of users name, in order, for
// [Query.Services]. A comma separates two. Ingesters have folded the names of records, so
// these are folded too: OrderService is orderservice. Globs get lower case only.
func ParseServices(texts []string) (names []string) {
	for _, text := range texts {
		if strings.Contains(text, "[") {
			names = append(names, strings.ToLower(text)) // it may have commas of its own
			continue
		}
		for name := range strings.SplitSeq(text, ",") {
			switch {
			case name == "":
			case strings.ContainsAny(name, `*?\`):
				names = append(names, strings.ToLower(name))
			case record.ValidStored(name):
				names = append(names, name)
			case !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
				// Signs alone, such as a > of a comparison: folded, they would be the records of unknown.
			default:
				names = append(names, record.FoldService(name))
			}
		}
	}
	slices.Sort(names) // several names of one service are one question
	return slices.Compact(names)
}
