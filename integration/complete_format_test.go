package integration_test

import (
	"testing"
)

// The row of a dead ingester is unreadable, because a newer version wrote it or
// because it is damaged. Readers do not know the records of that ingester.
func TestCompleteRowUnreadable(t *testing.T) {
	t.Parallel()
	newer := func(props map[string]any) {
		format, ok := props["format"].(int64)
		if !ok {
			t.Errorf("the row has no format: %v", props)
		}
		props["format"] = format + 100
	}
	damaged := func(props map[string]any) {
		for name := range times(props) {
			props[name] = "~"
		}
	}
	dir := func(t *testing.T) place { at, _ := dirStore(t); return at }
	azure := func(t *testing.T) place { at, _ := azureStore(t); return at }
	beside(t, map[string]func(t *testing.T){
		"newer, dir":     func(t *testing.T) { testRowUnreadable(t, dir(t), newer) },
		"newer, azure":   func(t *testing.T) { testRowUnreadable(t, azure(t), newer) },
		"damaged, dir":   func(t *testing.T) { testRowUnreadable(t, dir(t), damaged) },
		"damaged, azure": func(t *testing.T) { testRowUnreadable(t, azure(t), damaged) },
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
