package unflushed_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading/unflushed"
)

// A read that has no room to put unflushed records aside says that they are missing, in spite of
// the rows of the ingesters. It keeps to that when it goes on to the tables of the tail.
func TestNoRoomForUnflushed(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(t, 1)
		defer c.Stop()
		c.all[0].holds(64<<20, 1<<30, time.Hour)
		c.all[0].start()
		time.Sleep(time.Second)
		r := c.reader()
		for range 24 { // each of so many reads has the least memory, 4 MiB
			g, err := r.Gather(t.Context(), always("web"), unflushed.Auto)
			if err != nil || len(g.Report.Problems) > 0 {
				t.Fatal(err, g.Report.Problems)
			}
			defer g.Close()
		}
		for range 60 {
			c.all[0].send(line{service: "web", pad: 100_000})
		}
		for _, limit := range []int{0, 1000} {
			q := always("web")
			q.Limit = limit
			g, err := r.Gather(t.Context(), q, unflushed.Auto)
			if err != nil {
				t.Fatal(err)
			}
			if g.Live || len(g.Report.Problems) == 0 || !strings.Contains(fmt.Sprint(g.Report.Problems), "aside") {
				t.Errorf("limit %d: live %v, problems %v, notes %v", limit, g.Live, g.Report.Problems, g.Report.Notes)
			}
			g.Close()
		}
	})
}
