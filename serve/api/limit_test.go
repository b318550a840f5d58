package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/readingtest"
)

// Many of the newest records come oldest first, although they are put aside meanwhile. Some of
// the lines are longer than the parts that are read back.
func TestLargeLimit(t *testing.T) {
	testkit.FullOnly(t, "forms 40 MB several times")
	h := readingtest.New(t, 1)
	const n = 20_000
	for i := 0; i < n; i += 500 {
		var lines []readingtest.Line
		for j := range 500 {
			long := (i + j) * 7919 % 4000
			if (i+j)%4999 == 0 {
				long = 900_000
			}
			lines = append(lines, readingtest.Line{Time: then.Add(time.Duration(i+j) * time.Millisecond), Service: "web", Msg: fmt.Sprint(i+j, " ", strings.Repeat("x", long))})
		}
		h.Send(0, lines...)
	}
	h.Flush()
	s := serve(t, h)
	all := s.get("records?service=web&limit=0").body
	for _, limit := range []int{5001, 15_000, 100_000} {
		want := slices.Collect(strings.Lines(all))
		want = want[max(0, n-limit):]
		if a := s.get(fmt.Sprintf("records?service=web&limit=%d", limit)); a.body != strings.Join(want, "") || a.trailer.Get("Blobtail-Complete") != "1" {
			t.Errorf("limit %d: %d lines, %d bytes, %v", limit, strings.Count(a.body, "\n"), len(a.body), a.trailer)
		}
	}
	events := s.events("records?service=web&limit=6000&form=events&fields=ts")
	ids, _ := idsOf(events)
	if len(ids) != 6000 || !slices.IsSorted(ids) || !events[len(events)-1].End.More {
		t.Errorf("%d events", len(ids))
	}
	if a := s.get("records?service=web&limit=6000&form=csv&fields=ts,service"); strings.Count(a.body, "\n") != 6001 || !strings.HasSuffix(a.body, ",web\n") {
		t.Errorf("%d rows", strings.Count(a.body, "\n"))
	}
}
