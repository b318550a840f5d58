package unflushed_test

import (
	"testing"
	"time"

	"blobtail/reading/unflushed"
)

// An impossible service name has no records, and hides no other service.
func TestNamesThatCannotBe(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "*/*", "a\x00", "a\nb"} {
		scene(t, 1, func(t *testing.T, c *company, s *screen) {
			c.all[0].start()
			time.Sleep(time.Second)
			c.all[0].send(line{service: "web"})
			for want, services := range [][]string{{name}, {"web", name}} { // want: services with records
				g, err := c.reader().Gather(t.Context(), always(services...), unflushed.Auto)
				if err != nil {
					t.Fatalf("%q: %v", services, err)
				}
				if !g.Live || len(g.Report.Problems) != 0 || len(g.Query.Unflushed) == 0 || len(g.Query.Unflushed[0].Services()) != want {
					t.Errorf("%q: %+v", services, g)
				}
				g.Close()
			}
		})
	}
}
