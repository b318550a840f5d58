package unflushed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// Records of a gone ingester are reported as missing; those in rows are shown.
func TestGatherWithoutIngester(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		all := c.all[0].send(line{service: "web"})
		time.Sleep(12 * time.Second)
		c.all[0].Kill()
		time.Sleep(2 * time.Minute)
		names, g := c.read(c.reader(), always("web"))
		if !slices.Equal(names, namesOf(all)) || len(g.Report.Problems) != 1 || !strings.Contains(g.Report.Problems[0].Error(), "ingest forget 00000001") {
			t.Errorf("read are %v, and told is %v", names, g.Report)
		}
		only, err := c.reader().Gather(t.Context(), always("web"), unflushed.Only)
		if err != nil || len(only.Report.Notes) != 0 || len(only.Report.Problems) != 1 {
			t.Errorf("of live records alone is told %v %+v", err, only)
		}
	})
}

// Without an ingester to ask, rows take its place, and a note says so.
func TestGatherRows(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		var all []*sentRecord
		for range 10 {
			for _, in := range c.all {
				all = append(all, in.send(line{service: "web"}, line{service: "web", level: "error"})...)
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		names, g := c.read(c.reader(withoutLive), always("web"))
		if len(names) != len(all) || g.Live {
			t.Errorf("read are %d of %d", len(names), len(all))
		}
		c.tells(g, "ingester 00000001 on i0 holds records since", "ingester 00000002 on i1 holds records since")
	})
}

// The tables are away. With ingesters a tail is exact; without, it reports since when it
// is stale.
func TestTailWithoutTables(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		stored := c.all[0].send(line{service: "web"})
		c.all[0].Flush()
		fresh := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		q := always("web")
		q.Limit = 10
		c.tail(c.reader(), q) // the ingester lists its peers
		rows, now, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		known := func(o *unflushed.Options) {
			o.Ingesters = func(context.Context) ([]lease.Ingester, time.Time, error) { return rows, now, nil }
		}
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Scan || op == storagetest.Upsert {
				return storagetest.Fault{Before: errors.New("the tables are away")}
			}
			return storagetest.Fault{}
		})
		names, report := c.tail(c.reader(known), q)
		if !slices.Equal(names, namesOf(stored, fresh)) || len(report.Problems) != 0 {
			t.Errorf("%v %+v", names, report)
		}
		says(t, report.Notes, 0) // no table was read
		names, report = c.tail(c.reader(withoutLive), q)
		if !slices.Equal(names, namesOf(stored)) || len(report.Problems) != 2 ||
			!strings.Contains(report.Problems[0].Error(), "the table of ingesters cannot be read") ||
			!strings.Contains(report.Problems[1].Error(), "the tail is stale from "+string(record.AppendTime(nil, stored[0].time))) {
			t.Errorf("%v %+v", names, report)
		}
	})
}

// tail returns the names of the newest records.
func (c *company) tail(r *unflushed.Reader, q blobs.Query) (names []string, report *unflushed.Report) {
	c.t.Helper()
	acked := c.ackedNow(func(*sentRecord) bool { return true })
	_, report, err := r.Tail(c.t.Context(), q, func(e *record.Entry) error {
		names = append(names, nameOf(e.Line))
		if s := acked[nameOf(e.Line)]; s != nil && len(e.Line) != s.length {
			c.t.Errorf("%.80s... has %d bytes of %d", e.Line, len(e.Line), s.length)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return names, report
}

// A search for the newest n with a text asks for a part of the unflushed records, and for
// all only if that part has too few.
func TestTailOfText(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		for _, in := range c.all {
			in.holds(8<<10, 1<<30, time.Hour)
			in.start()
		}
		time.Sleep(time.Second)
		rng := rand.New(rand.NewPCG(7, 7))
		for i := range 40 {
			burst(c.all[i%2], rng, 100, "web")
			time.Sleep(time.Second)
		}
		r := c.reader()
		for _, x := range []struct {
			text  string
			limit int
			asked []int
		}{{"1 ", 5, []int{1250, 1250}}, {"r7", 20, []int{2000, 2000, 0, 0}}, {"r12345", 1, []int{1050, 1050, 0, 0}}} {
			c.mu.Lock()
			c.asked = nil
			c.mu.Unlock()
			q := always("web")
			q.Limit, q.Filter = x.limit, blobs.Filter{Texts: []string{x.text}}
			names, report := c.tail(r, q)
			want := newestOf(c.ackedNow(func(r *sentRecord) bool { return strings.Contains(r.name+" ", x.text) }), x.limit)
			if !slices.Equal(names, want) || len(report.Gaps)+len(report.Problems) > 0 {
				t.Errorf("%q gives %v, want %v; %+v", x.text, names, want, report)
			}
			if !slices.Equal(c.asked, x.asked) {
				t.Errorf("%q asks for %v, want %v", x.text, c.asked, x.asked)
			}
		}
	})
}
