package readingtest

import (
	"strings"
	"testing"

	"blobtail/reading"
)

// Records with a text are left out, beside the other filters.
func testWithout(t *testing.T, open Open) {
	s := open(t, full(t))
	all := of("*")
	for _, c := range []struct {
		name string
		ask  reading.Ask
		want string
	}{
		{"without a text", with(all, func(a *reading.Ask) { a.Without = []string{"took"} }),
			"late (1 records)"},
		{"with a text, without two others", with(all, func(a *reading.Ask) { a.Texts, a.Without = []string{"took 20"}, []string{"m20 ", "nosuch"} }),
			"m2 (1 records)"},
		{"not a text, and without another, folded", with(all, func(a *reading.Ask) {
			a.Texts, a.Not, a.Without, a.Fold = []string{"TOOK 2"}, true, []string{"M1", "Level=INFO", "WARN"}, true
		}), "m0 m3 m4 m5 m7 m8 m9 late (8 records)"},
	} {
		check(t, c.name, read(t, s, c.ask), c.want)
		check(t, "count of "+c.name, told(s.Count(t.Context(), c.ask)), c.want[strings.LastIndex(c.want, "(")+1:len(c.want)-1])
	}
}
