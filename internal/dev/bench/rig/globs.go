package rig

import (
	"fmt"
	"path"
	"strings"
)

// Globs choose rows by their IDs. Without a glob they choose all. They are the value of a flag, with
// commas between.
type Globs []string

// String implements [flag.Value].
func (g *Globs) String() string { return strings.Join(*g, ",") }

// Set implements [flag.Value].
func (g *Globs) Set(text string) error {
	*g = nil
	if text == "" {
		return nil
	}
	for glob := range strings.SplitSeq(text, ",") {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%w: %s", err, glob)
		}
		*g = append(*g, glob)
	}
	return nil
}

// Choose reports whether they choose one of some rows.
func (g Globs) Choose(ids ...string) bool {
	for _, glob := range g {
		for _, id := range ids {
			if ok, _ := path.Match(glob, id); ok {
				return true
			}
		}
	}
	return len(g) == 0
}
