package reading_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// Queries for the newest records of different ranges that come at once have each its own: the
// newest records of both ranges together are not those of the earlier one.
func TestNewestOfTwoRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		hour := time.Now().Truncate(time.Hour)
		for minute := range 2 {
			for i := range 20 {
				h.Send(0, readingtest.Line{Time: hour.Add(time.Duration(minute)*10*time.Minute + time.Duration(i)*time.Second), Service: "web", Msg: fmt.Sprintf("%d of minute %d", i, minute)})
			}
		}
		r := h.Reader()
		for round := range 4 { // from the second one on they come as a burst
			var both sync.WaitGroup
			for minute := range 2 {
				from := hour.Add(time.Duration(minute) * 10 * time.Minute)
				q := reading.Ask{Services: []string{"web"}, Limit: 20, Range: reading.Range{From: from.UnixNano(), To: from.Add(5 * time.Minute).UnixNano()}}
				both.Go(func() {
					got, result, err := lines(t.Context(), r.For(nil), q)
					if err != nil || !result.Complete() || len(got) != 20 || !strings.Contains(got[0], fmt.Sprint("minute ", minute)) {
						t.Errorf("round %d, minute %d: %d records, complete %v, %v", round, minute, len(got), result.Complete(), err)
					}
				})
			}
			both.Wait()
			time.Sleep(time.Second)
		}
	})
}

// A query that chooses its services has those that came a moment ago, in the logs of ingesters
// or in blobs, and no others. A list that was made before is not asked.
func TestChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 2)
		time.Sleep(time.Second)
		h.Send(0, readingtest.Line{Service: "api-old", Msg: "old"}, readingtest.Line{Service: "web", Msg: "web"})
		h.Send(1, readingtest.Line{Service: "web", Msg: "web"})
		h.Flush()
		time.Sleep(20 * time.Second) // each knows the other by its row
		r := h.Reader()
		if list, err := r.For(nil).Names(t.Context()); err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		const api = `{service_name=~"api.*"}`
		count := func(when string, limit, want int) {
			t.Helper()
			got, result, err := lines(t.Context(), r.For(nil), reading.Ask{LogQL: api, Limit: limit, Range: reading.Always()})
			if err != nil || !result.Complete() || len(got) != want {
				t.Errorf("%s, limit %d: %d records, want %d: %v %v", when, limit, len(got), want, err, result.Problems())
			}
			for _, line := range got {
				if strings.Contains(line, `"web"`) {
					t.Errorf("%s: %s", when, line)
				}
			}
		}
		count("stored", 0, 1)
		h.Send(1, readingtest.Line{Service: "api-new", Msg: "new"})
		for i := range 10 { // they are newer, and not wanted
			h.Send(0, readingtest.Line{Service: "web", Msg: fmt.Sprint(i)})
		}
		count("unflushed", 0, 2)
		count("unflushed", 2, 2)
		h.Flush()
		count("flushed", 0, 2)
		if got, _, err := lines(t.Context(), r.For(tokenOf(t, "web", "api-old")), reading.Ask{LogQL: api, Range: reading.Always()}); err != nil || len(got) != 1 {
			t.Errorf("by a token for api-old and web: %q, %v", got, err)
		}
	})
}
