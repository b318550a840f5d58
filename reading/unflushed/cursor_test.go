package unflushed_test

import (
	"context"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed"
)

// No log remembers the position of an old cursor: blobs have the records since.
func TestOldCursor(t *testing.T) {
	for _, one := range []struct {
		change []func(*unflushed.Options)
		took   time.Duration // until the follower has caught up
	}{{nil, 3 * time.Second}, {[]func(*unflushed.Options){withoutLive}, 3 * time.Second}, {[]func(*unflushed.Options){lateTime}, 20 * time.Second}} {
		scene(t, 1, func(t *testing.T, c *company, s *screen) {
			in := c.all[0]
			in.start()
			time.Sleep(time.Second)
			f := follow(c.reader(one.change...), s.options(always("web")))
			time.Sleep(6 * time.Second)
			first := in.send(line{service: "web"}, line{service: "web", at: 5 * time.Minute})
			time.Sleep(3 * time.Second)
			cursor := f.end(t)
			var all []*sentRecord
			for range 20 {
				all = append(all, in.send(line{service: "web", pad: 1000})...)
				time.Sleep(time.Minute)
			}
			in.Flush()
			in.Kill() // a log releases stored records when it is opened again
			in.start()
			time.Sleep(time.Hour)
			o := s.options(always("web"))
			o.After = cursor
			f = follow(c.reader(one.change...), o)
			time.Sleep(one.took)
			all = append(all, in.send(line{service: "web"})...)
			time.Sleep(3 * time.Second)
			f.end(t)
			s.shows(append(namesOf(first, all), first[1].name)...) // the record from a clock that was ahead comes again
			says(t, s.get(&s.notes), 2, "times before")
		})
	}
}

// A follower shows records of an ingester that it cannot reach from blobs. Another one
// that goes on from its cursor reaches that ingester, and does not show them again.
func TestCursorBesideUnreachable(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, s *screen) {
		for _, in := range c.all {
			in.start()
		}
		time.Sleep(time.Second)
		apart, late := c.all[1], c.all[2]
		late.Kill()
		c.Wire.Refuse(func(host string) bool { return host == apart.Host })
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(5 * time.Second)
		all := apart.send(line{service: "web"})
		apart.Flush()
		late.start() // its records are found by time, in blobs
		time.Sleep(5 * time.Second)
		s.shows(namesOf(all)...)
		cursor := f.end(t)
		c.Wire.Refuse(nil)
		o := s.options(always("web"))
		o.After = cursor
		f = follow(c.reader(), o)
		time.Sleep(3 * time.Second)
		all = append(all, apart.send(line{service: "web"})...)
		time.Sleep(10 * time.Second)
		s.shows(namesOf(all)...)
		if cursor = f.end(t); len(cursor.Positions) != 3 {
			t.Errorf("in the end the cursor has %d positions", len(cursor.Positions))
		}
	})
}

// lateTime makes the store tell its time in whole seconds, to a reader that hears it late.
func lateTime(o *unflushed.Options) {
	list := o.Ingesters
	o.Ingesters = func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
		rows, now, err := list(ctx)
		time.Sleep(2500 * time.Millisecond)
		return rows, now.Truncate(time.Second), err
	}
}

// A follower that polls, and ends each time, gets the records that came meanwhile: late ones too,
// and those of an ingester that was away in between.
func TestPolling(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		first := c.running()
		time.Sleep(10 * time.Second) // until each has read the row of the other
		poll := func(after *unflushed.Cursor, n int) (*unflushed.Cursor, bool) {
			t.Helper()
			q := always("web")
			q.Limit = n
			o := s.options(q)
			o.After, o.Once, o.Mark = after, true, func(unflushed.Cursor) error { return nil }
			whole := true
			o.Report = func(r *unflushed.Report) { whole = whole && len(r.Problems) == 0 }
			cursor, err := c.reader().Follow(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if cursor, err = unflushed.ParseCursor(cursor.String()); err != nil {
				t.Fatal(err)
			}
			return &cursor, whole
		}
		at, whole := poll(nil, 100)
		s.shows(namesOf(first)...)
		late := c.all[0].send(line{service: "web", at: -time.Minute}, line{service: "web"})
		at, still := poll(at, 0)
		if s.shows(namesOf(first, late)...); !whole || !still || len(at.Positions) != 2 {
			t.Errorf("complete %v and %v, positions %v", whole, still, at.Positions)
		}
		of := c.all[1].send(line{service: "web"})
		c.all[1].Kill()
		time.Sleep(time.Second)
		newer := c.all[0].send(line{service: "web"})
		if at, whole = poll(at, 0); whole {
			t.Error("complete without an ingester that holds records")
		}
		s.shows(namesOf(first, late, newer)...)
		c.all[1].start()
		time.Sleep(time.Second)
		if at, whole = poll(at, 0); !whole {
			t.Error("all have answered, and it is incomplete")
		}
		s.shows(namesOf(first, late, newer, of)...)
		// A cursor by the times of records cannot promise that.
		if _, whole = poll(&unflushed.Cursor{Last: at.Last}, 0); whole {
			t.Error("a cursor without positions is complete")
		}
	})
}
