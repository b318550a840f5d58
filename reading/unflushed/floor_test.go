package unflushed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/storage/storagetest"
)

// until is a query for records from before a time.
func until(to time.Time) blobs.Query {
	q := always("web")
	q.Range.To = to.UnixNano()
	return q
}

// floor is the floor in a row.
func (c *company) floor(id string) time.Time {
	c.t.Helper()
	rows, _, err := c.List(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, i := range rows {
		if i.ID == id {
			return i.Floor
		}
	}
	return time.Time{}
}

// A read that ends at the floor of an ingester that is gone is complete without it. One
// that reaches further is not, and says up to when it is whole. So it is by every way of
// asking, and in the first minute as later.
func TestFloorSpares(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		c.running()
		killed := time.Now()
		c.all[0].Kill()
		floor := c.floor("00000001")
		if ago := killed.Sub(floor); ago < 15*time.Minute || ago > 17*time.Minute {
			t.Fatalf("the floor is %v before the end", ago)
		}
		sentence := "; records before " + floor.UTC().Format(time.RFC3339) + " are whole without "
		for _, when := range []time.Duration{0, 2 * time.Minute, time.Hour} {
			time.Sleep(when)
			for how, change := range map[string][]func(*unflushed.Options){
				"rows": nil, "a URL": {c.via("i1")}, "its own URL": {c.via("i0")}, "no address": {withoutLive},
				"the asked one alone": {c.via("i1"), withoutRights},
			} {
				g := c.gather(c.reader(change...), until(floor))
				c.tells(g)
				if !g.Live {
					t.Errorf("after %v, by %s: all that matter have answered, and it does not say so", when, how)
				}
				g = c.gather(c.reader(change...), until(floor.Add(1)))
				texts := strings.Join(problemsOf(g), "\n")
				if running := when == 0 && how == "no address"; !running && !strings.Contains(texts, sentence) {
					t.Errorf("after %v, by %s: told is %q", when, how, texts)
				}
			}
		}
	})
}

// Of several ingesters that do not answer the least floor counts. Without one of a floor
// nothing is said to be whole.
func TestFloorLeast(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		c.running()
		c.all[1].send(line{service: "web", at: -49 * time.Hour})
		low, high := c.floor("00000002"), c.floor("00000001")
		if !low.Before(high) || low.UTC().Hour() != 0 {
			t.Fatalf("the floors are %v and %v", low, high)
		}
		c.all[0].Kill()
		c.all[1].Kill()
		time.Sleep(2 * time.Minute)
		c.tells(c.gather(c.reader(), until(low)))
		c.tells(c.gather(c.reader(), until(high)), "ingester 00000002 on i1")
		least := "; records before " + low.UTC().Format(time.RFC3339) + " are whole without them"
		g := c.gather(c.reader(), always("web"))
		for _, text := range problemsOf(g) {
			if !strings.HasSuffix(text, least) {
				t.Errorf("told is %q", text)
			}
		}
		c.storeRow("0badcafe", nil) // without a floor
		g = c.gather(c.reader(), until(low))
		c.tells(g, "ingester 0badcafe")
		if text := strings.Join(problemsOf(c.gather(c.reader(), always("web"))), ""); strings.Contains(text, "are whole") {
			t.Errorf("told is %q", text)
		}
	})
}

// The floor of a row counts for its store only, and not with best effort. It excuses
// neither a loss nor a table that cannot be read.
func TestFloorExcusesNothingElse(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.running()
		floor := c.Now().Add(-time.Minute)
		text := floor.UTC().Format("2006-01-02T15:04:05.000000000Z")
		for _, row := range []struct {
			props map[string]any
			says  []string
		}{
			{map[string]any{"floor": text}, nil},
			{map[string]any{}, []string{"ingester 0badcafe"}},
			{map[string]any{"floor": text, "besteffort": true}, []string{"ingester 0badcafe"}},
			{map[string]any{"floor": text, "storeid": strings.Repeat("f", 32)}, []string{"ingester 0badcafe"}},
			{map[string]any{"floor": text, "lostuntil": text}, []string{"has lost records"}},
			{map[string]any{"floor": "soon"}, []string{"property floor"}},
		} {
			c.storeRow("0badcafe", row.props)
			time.Sleep(time.Minute)
			c.tells(c.gather(c.reader(), until(floor)), row.says...)
		}
		c.storeRow("0badcafe", map[string]any{"floor": text})
		c.all[0].Kill()
		c.Faults(storagetest.Times(-1, storagetest.Scan, "ingesters/", storagetest.Fault{Before: storagetest.ErrFault}))
		c.tells(c.gather(c.reader(), until(floor)), "the table of ingesters cannot be read, so nobody knows")
	})
}

// An answer that breaks off amid its records is no answer: a read below all floors is
// complete all the same, and one that reaches further is not.
func TestFloorCut(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		for _, in := range c.all {
			in.Buffer.Size = 64 << 20
		}
		c.running()
		var lines []line
		for range 400 {
			lines = append(lines, line{service: "web", pad: 3000, at: -3 * time.Minute})
		}
		c.all[0].send(lines...)
		c.all[1].send(line{service: "web"})
		floor := c.floor("00000001")
		for _, ask := range []string{"i0", "i1"} {
			c.Wire.Cut("i0", 20<<10)
			c.tells(c.gather(c.reader(c.via(ask)), until(floor)))
			g := c.gather(c.reader(c.via(ask)), always("web"))
			if len(g.Report.Problems) == 0 {
				t.Errorf("asked %s: a read of an answer that broke off is complete", ask)
			}
			// The answer of an ingester that keeps to no floor.
			q := until(c.Now())
			if g = c.gather(c.reader(c.via(ask)), q); len(g.Report.Problems) == 0 {
				t.Errorf("asked %s: a read beyond the floor is complete", ask)
			}
			low := func(o *unflushed.Options) {
				o.Ingesters = func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
					rows, now, err := c.List(ctx)
					for i := range rows {
						rows[i].Floor = now
					}
					return rows, now, err
				}
			}
			c.tells(c.gather(c.reader(c.via(ask), low), q))
		}
	})
}
