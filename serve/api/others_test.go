package api

import (
	"slices"
	"testing"

	"blobtail/internal/spelling"
)

// The names of other APIs are told as ours, where a route has that.
func TestOthers(t *testing.T) {
	rows := spelling.Habits(others, "parameter")
	if len(rows) < 10 {
		t.Errorf("%d rows", len(rows))
	}
	for _, h := range rows {
		p, ok := unknownParam(h.Example, []string{"x", h.Result}).(*problem)
		if !ok || p.near != h.Result {
			t.Errorf("%s: %+v, want %s", h.Example, p, h.Result)
		}
		if p, ok := unknownParam(h.Example, []string{"other"}).(*problem); !ok || slices.Contains([]string{h.Result}, p.near) {
			t.Errorf("%s is told to be %s, which the route does not have", h.Example, p.near)
		}
	}
}
