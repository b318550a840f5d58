package main

import (
	"slices"
	"testing"
)

// An empty PAGER and cat mean no pager. A dumb terminal gets none by default.
func TestPagerWords(t *testing.T) {
	for _, c := range []struct {
		pager, term string
		empty       bool
		want        []string
	}{
		{"", "xterm", false, []string{"less"}},
		{"", "xterm", true, nil},
		{"", "dumb", false, nil},
		{"cat", "xterm", false, nil},
		{" ", "xterm", false, nil},
		{"less -S", "dumb", false, []string{"less", "-S"}},
	} {
		env := map[string]string{"PAGER": c.pager, "TERM": c.term}
		a := &app{env: environment{getenv: func(name string) string { return env[name] }, emptyPager: c.empty}}
		if got := a.pagerWords(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
