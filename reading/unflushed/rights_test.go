package unflushed_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// A reader without rights to the tables that asks nobody cannot know which ingesters hold records,
// and says so once. One that was told to ask nobody says nothing.
func TestVerifyWithoutRights(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		alone := func(o *unflushed.Options) { o.Live, o.Announced = nil, nil }
		const unknown = "whether all records are in blobs is not known"
		time.Sleep(30 * time.Minute) // now they are in blobs, which nobody can tell
		if g := c.reads(c.reader(withoutRights, alone), all, unknown); len(g.Report.Notes) > 0 {
			t.Errorf("notes %q", g.Report.Notes)
		}
		_, report, err := c.reader(withoutRights, alone).Tail(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 5}, func(*record.Entry) error { return nil })
		if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Error(), unknown) {
			t.Errorf("%v, %v", report.Problems, err)
		}
		c.reads(c.reader(withoutRights, alone, func(o *unflushed.Options) { o.Unasked = true }), all)
	})
}
