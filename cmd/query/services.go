package main

import (
	"slices"
	"strings"

	"blobtail/record"
)

// serviceNames returns the services that arguments name. A comma separates two. Ingesters
// have folded the names of records, so these are folded too: OrderService is orderservice.
// Globs get lower case only.
func serviceNames(args []string) (names []string) {
	for _, arg := range args {
		if strings.Contains(arg, "[") {
			names = append(names, strings.ToLower(arg)) // it may have commas of its own
			continue
		}
		for name := range strings.SplitSeq(arg, ",") {
			switch {
			case name == "":
			case strings.ContainsAny(name, `*?\`):
				names = append(names, strings.ToLower(name))
			case record.ValidStored(name):
				names = append(names, name)
			default:
				names = append(names, record.FoldService(name))
			}
		}
	}
	slices.Sort(names) // several names of one service are one question
	return slices.Compact(names)
}
