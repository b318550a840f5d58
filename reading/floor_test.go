package reading_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// An ingester is gone. Of queries that come at once, those that end at its floor are
// complete without it, though others of the same hour reach further.
func TestFloorOfSharedQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 2)
		time.Sleep(time.Second)
		h.Send(0, readingtest.Line{Service: "web", Msg: "flushed", Time: time.Now().Add(-3 * time.Hour)})
		h.Flush()
		time.Sleep(12 * time.Second)
		h.Send(0, readingtest.Line{Service: "web", Msg: "held"})
		h.Send(1, readingtest.Line{Service: "web", Msg: "shown"})
		h.Kill(0)
		rows, _, err := h.List(t.Context())
		if err != nil || len(rows) != 2 || rows[0].Floor.IsZero() {
			t.Fatalf("the rows are %+v, %v", rows, err)
		}
		floor := rows[0].Floor
		c := counter{pause: 2 * time.Millisecond, lists: map[string]int{}}
		c.count(h)
		r := h.Reader()
		for range 3 {
			var all sync.WaitGroup
			for _, q := range []struct {
				to    time.Time
				whole bool
			}{{floor, true}, {floor.Add(time.Second), false}, {floor.Add(-time.Minute), true}, {floor.Add(4 * time.Minute), false}, {time.Now(), false}} {
				all.Go(func() {
					got, result, err := lines(t.Context(), r.For(nil), reading.Ask{Services: []string{"web"}, Range: reading.Range{From: floor.Add(-4 * time.Hour).UnixNano(), To: q.to.UnixNano()}})
					if err != nil {
						t.Error(err)
						return
					}
					if result.Complete() != q.whole || !strings.Contains(strings.Join(got, ""), "flushed") {
						t.Errorf("up to %v from the floor: complete %v, %d lines, %v", q.to.Sub(floor), result.Complete(), len(got), result.Problems())
					}
					for _, p := range result.Problems() {
						if !strings.Contains(p.Error(), "; records before "+floor.UTC().Format(time.RFC3339)+" are whole without it") {
							t.Errorf("up to %v from the floor: %v", q.to.Sub(floor), p)
						}
					}
				})
			}
			all.Wait()
		}
	})
}
