package fanout_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"blobtail/storage/fanout"
)

// A panic of a call is one of the caller that waits for it, and has the stack of the call.
func TestPanics(t *testing.T) {
	fail := errors.New("fails")
	bad := func(i int) error {
		if i == 1 {
			panicsHere()
		}
		return nil
	}
	for name, call := range map[string]func(){
		"Each": func() {
			_ = fanout.Each(t.Context(), 3, 0, func(_ context.Context, i int) error { return bad(i) })
		},
		"All": func() { fanout.All(3, 2, bad) },
		"one": func() { fanout.Keep(func() { fanout.All(2, 0, bad) }).Again() },
		"Crew": func() {
			var c fanout.Crew
			for i := range 3 {
				c.Go(func() { _ = bad(i) })
			}
			c.Wait()
		},
	} {
		p := fanout.Keep(call)
		if p == nil {
			t.Errorf("%s: no panic", name)
			continue
		}
		if value, stack := p.Origin(); value != "a mistake" || !strings.Contains(string(stack), "panicsHere") || !strings.Contains(p.Error(), "panicsHere") {
			t.Errorf("%s: %v\n%s", name, value, stack)
		}
	}
	if errs := fanout.All(2, 0, func(int) error { return fail }); errs[0] != fail || errs[1] != fail {
		t.Error(errs)
	}
	fanout.Keep(func() {}).Again()
}

func panicsHere() { panic("a mistake") }
