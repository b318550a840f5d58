package integration_test

import (
	"testing"
)

// The row of a dead ingester cannot be read, because a newer version wrote it or
// because it is damaged: what the ingester holds is not known.
func TestCompleteRowUnreadable(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		beside(t, map[string]func(t *testing.T){
			"newer": func(t *testing.T) {
				testRowUnreadable(t, at, func(props map[string]any) {
					format, ok := props["format"].(int64)
					if !ok {
						t.Fatalf("the row has no format: %v", props)
					}
					props["format"] = format + 100
				})
			},
		})
	})
	beside(t, map[string]func(t *testing.T){
		"damaged": func(t *testing.T) {
			at, _ := dirStore(t)
			testRowUnreadable(t, at, func(props map[string]any) {
				for name, v := range props {
					if _, ok := v.(string); ok && name != "store" {
						props[name] = "~"
					}
				}
			})
		},
	})
}

func testRowUnreadable(t *testing.T, at place, spoil func(props map[string]any)) {
	p := &promises{}
	y := newStation(t, at, p, "y", "--lane", "1").start()
	y.take()
	y.rest()
	a := newStation(t, at, p, "a", "--lane", "2").start()
	a.take()
	id := a.id()
	a.kill()
	editRow(t, at, id, spoil)
	newAudit(t, at, p).by("--live-url", y.base).warns("another one is asked")
	if code, _ := y.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	newAudit(t, at, p).warns("nobody runs")
}
