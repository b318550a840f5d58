package unflushed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed"
	"blobtail/storage/storagetest"
)

// scene is a company with a screen, in a bubble of virtual time.
func scene(t *testing.T, ingesters int, play func(t *testing.T, c *company, s *screen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(t, ingesters)
		defer c.Stop()
		play(t, c, &screen{c: c})
	})
}

// namesOf are the names of records, in their order.
func namesOf(all ...[]*sentRecord) (names []string) {
	for _, list := range all {
		for _, r := range list {
			names = append(names, r.name)
		}
	}
	return names
}

// shows checks the names shown, in any order.
func (s *screen) shows(want ...string) {
	s.c.t.Helper()
	got := s.names()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.c.t.Errorf("shown are %v, want %v\nproblems %q\nnotes %q", got, want, s.problems, s.notes)
	}
}

// says checks that one text has all the words, and that there are at most so many texts.
func says(t *testing.T, texts []string, most int, words ...string) {
	t.Helper()
	if len(texts) > most {
		t.Errorf("%d texts are said, want at most %d: %q", len(texts), most, texts)
	}
	if len(words) > 0 && !slices.ContainsFunc(texts, func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}) {
		t.Errorf("nobody says %q: %q", words, texts)
	}
}

// The first ingester of a store starts after the follower. It has records with times
// before that.
func TestFirstIngesterComesLater(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		q := always("web")
		q.Limit = 10
		f := follow(c.reader(), s.options(q))
		time.Sleep(time.Minute)
		says(t, s.get(&s.notes), 2, "no ingester is running")
		c.all[0].start()
		kept := c.all[0].send(line{service: "web", at: -5 * time.Minute}, line{service: "web", at: -30 * time.Second}, line{service: "other"})
		time.Sleep(11 * time.Second)
		more := c.all[0].send(line{service: "web"}, line{service: "web", at: -time.Hour})
		time.Sleep(2 * time.Second)
		f.end(t)
		s.shows(namesOf(kept[:2], more)...)
		says(t, s.get(&s.problems), 0)
	})
}

// An ingester that is absent when a follower begins does not send all its old records
// when it comes back.
func TestAbsentIngesterComesBack(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		for range 20 {
			c.all[1].send(line{service: "web"})
			time.Sleep(time.Second)
		}
		c.all[1].Kill()
		last := c.all[0].send(line{service: "web"})
		time.Sleep(time.Second)
		q := always("web")
		q.Limit = 1
		f := follow(c.reader(), s.options(q))
		time.Sleep(10 * time.Second)
		says(t, s.get(&s.problems), 2, "00000002", "connection refused")
		c.all[1].start()
		back := c.all[1].send(line{service: "web"})
		time.Sleep(15 * time.Second)
		more := c.all[1].send(line{service: "web", at: -time.Hour})
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(namesOf(last, back, more)...)
		says(t, s.get(&s.notes), 2, "answers for the first time", "may be missing")
	})
}

// No ingester runs at first, and the one that comes had been there before.
func TestOnlyIngesterComesBack(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		old := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		c.all[0].Kill()
		time.Sleep(2 * time.Minute)
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(3 * time.Second)
		c.all[0].start()
		time.Sleep(100 * time.Millisecond)
		back := c.all[0].send(line{service: "web"})
		time.Sleep(12 * time.Second)
		more := c.all[0].send(line{service: "web", at: -time.Hour})
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(namesOf(back, more)...)
		_ = old
	})
}

// The receiver of the records blocks for a minute. Meanwhile more records come than are
// kept in memory.
func TestSlowFollower(t *testing.T) {
	t.Run("remembered", func(t *testing.T) { slowFollower(t, true) })
	t.Run("stored", func(t *testing.T) {
		testkit.FullOnly(t, "many MB")
		slowFollower(t, false)
	})
}

func slowFollower(t *testing.T, remembered bool) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		if remembered {
			c.all[0].holds(64<<20, 1<<30, time.Hour)
		}
		c.all[0].start()
		time.Sleep(time.Second)
		o := s.options(always("web"))
		emit, blocked := o.Emit, false
		o.Emit = func(lines []byte) error {
			if !blocked {
				blocked = true
				time.Sleep(time.Minute)
			}
			return emit(lines)
		}
		f := follow(c.reader(), o)
		time.Sleep(time.Second)
		all := c.all[0].send(line{service: "web"})
		time.Sleep(300 * time.Millisecond)
		all = append(all, c.all[0].send(line{service: "web"})...) // it waits while the first is emitted
		for range 75 {
			var lines []line
			for i := range 50 {
				lines = append(lines, line{service: "web", pad: 10 << 10, at: time.Duration(-i) * time.Millisecond})
			}
			all = append(all, c.all[0].send(lines...)...)
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(25 * time.Second)
		last := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		f.end(t)
		s.shows(namesOf(all, last)...)
		if !slices.Equal(s.names(), newestOf(c.ledger, len(all)+1)) {
			t.Error("they are shown in another order")
		}
		says(t, s.get(&s.problems), 0)
		if remembered != (len(s.notes) == 0) {
			t.Errorf("it says %q", s.notes)
		}
	})
}

// The store is away while blobs have to be read. That is reported once, and they are read
// when it is back.
func TestStoreAwayWhileCatchingUp(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(3*time.Second + 50*time.Millisecond) // each is in the list, and nothing else happens now
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(2 * time.Second)
		c.all[1].send(line{service: "other"})
		time.Sleep(2*time.Second + 50*time.Millisecond)
		away := errors.New("the store is away")
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.List || op == storagetest.Get {
				return storagetest.Fault{Before: away}
			}
			return storagetest.Fault{}
		})
		c.all[1].Drain()
		time.Sleep(time.Minute)
		says(t, s.get(&s.problems), 2, "cannot be read", "the store is away")
		c.Faults(nil)
		time.Sleep(10 * time.Second)
		last := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		f.end(t)
		s.shows(namesOf(last)...)
		says(t, s.get(&s.notes), 3, "the blobs can be read again")
	})
}

// The last records of an ended ingester are in blobs before the follower asks it again.
func TestIngesterEnds(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(3*time.Second + 10*time.Millisecond)
		last := c.all[1].send(line{service: "web"}, line{service: "web", at: -20 * time.Second})
		c.all[1].Drain()
		time.Sleep(8 * time.Second)
		f.end(t)
		s.shows(namesOf(last[:1])...) // the other one has a time before the follower began
		says(t, s.get(&s.notes), 2, "ingester 00000002 has ended", "may be missing")
		says(t, s.get(&s.problems), 0)
	})
}

// A follower keeps its position when its only ingester has ended: the log is empty, so that nothing
// is beyond it. After a start it shows records with older times, too.
func TestEndedWhileFollowed(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		in := c.all[0]
		in.start()
		time.Sleep(time.Second)
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(2 * time.Second)
		all := in.send(line{service: "web"}, line{service: "web"})
		time.Sleep(2 * time.Second)
		in.Drain()
		time.Sleep(15 * time.Second)
		cursor := f.end(t)
		if len(cursor.Positions) != 1 {
			t.Errorf("the cursor has the positions %v", cursor.Positions)
		}
		in.start()
		time.Sleep(time.Second)
		late := in.send(line{service: "web", at: -10 * time.Minute})
		o := s.options(always("web"))
		o.After = cursor
		f = follow(c.reader(), o)
		time.Sleep(5 * time.Second)
		f.end(t)
		s.shows(namesOf(all, late)...)
	})
}

// A follower that is interrupted within its first records goes on there.
func TestInterruptedBacklog(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		var all []*sentRecord
		for range 400 {
			all = append(all, c.all[0].send(line{service: "web", pad: 8 << 10})...)
			time.Sleep(10 * time.Millisecond)
		}
		q := always("web")
		q.Range.From = time.Now().Add(-time.Hour).UnixNano()
		o := s.options(q)
		ctx, cancel := context.WithCancel(t.Context())
		emit := o.Emit
		o.Emit = func(lines []byte) error {
			cancel() // in the middle of its output
			return emit(lines)
		}
		cursor, err := c.reader().Follow(ctx, o)
		if !errors.Is(err, context.Canceled) || cursor.Positions != nil || len(s.lines) == 0 || len(s.lines) == len(all) {
			t.Fatalf("it ends with %v and %+v after %d records", err, cursor, len(s.lines))
		}
		o = s.options(always("web"))
		o.After = &cursor
		f := follow(c.reader(), o)
		time.Sleep(3 * time.Second)
		more := c.all[0].send(line{service: "web"})
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(namesOf(all, more)...)
		says(t, s.get(&s.notes), 1, "going on by the times")
	})
}

// Clocks that are minutes apart do no harm as long as the store has one clock.
func TestClocksApart(t *testing.T) {
	for _, ahead := range []time.Duration{-4 * time.Minute, 4 * time.Minute} {
		for _, tables := range []bool{false, true} {
			scene(t, 2, func(t *testing.T, c *company, s *screen) {
				c.Ahead = ahead
				c.all[0].start()
				c.all[1].start()
				time.Sleep(time.Second)
				old := c.all[0].send(line{service: "web"})
				time.Sleep(3 * time.Second)
				var change []func(*unflushed.Options)
				if tables {
					change = append(change, withoutLive)
				}
				q := always("web")
				q.Limit = 10
				f := follow(c.reader(change...), s.options(q))
				var all []*sentRecord
				for range 20 {
					time.Sleep(500 * time.Millisecond)
					all = append(all, c.all[0].send(line{service: "web"})...)
					all = append(all, c.all[1].send(line{service: "web"})...)
				}
				time.Sleep(3 * time.Second)
				if !tables {
					c.all[1].Drain() // and make the follower catch up
					time.Sleep(8 * time.Second)
				}
				cursor := f.end(t)
				s.shows(namesOf(old, all)...)
				more := c.all[0].send(line{service: "web"})
				time.Sleep(3 * time.Second)
				o := s.options(always("web"))
				o.After = cursor
				f = follow(c.reader(change...), o)
				time.Sleep(3 * time.Second)
				f.end(t)
				s.shows(namesOf(old, all, more)...)
			})
		}
	}
}

// A poll that hangs or fails now and then is not reported every time.
func TestFlapping(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		var n atomic.Int64
		c.Wire.Refuse(func(host string) bool { return host == "i1" && n.Add(1)%3 == 0 })
		f := follow(c.reader(), s.options(always("web")))
		var all []*sentRecord
		for range 100 {
			time.Sleep(time.Second)
			all = append(all, c.all[1].send(line{service: "web"})...)
		}
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(namesOf(all)...)
		says(t, s.get(&s.problems), 1, "connection refused")
	})
}

// A cursor of another store is reported, and the follower goes on by time.
func TestCursorOfAnotherStore(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		old := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		cursor := unflushed.Cursor{Positions: map[string]uint64{"deadbeef": 1 << 40}}
		cursor.Last.Time = time.Now().Add(-time.Second).UnixNano()
		more := c.all[0].send(line{service: "web"})
		o := s.options(always("web"))
		o.After = &cursor
		f := follow(c.reader(), o)
		time.Sleep(2 * time.Second)
		last := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		f.end(t)
		s.shows(namesOf(more, last)...)
		says(t, s.get(&s.problems), 1, "is it the store that the cursor is of")
		_ = old
	})
}

// A follower that ends by itself reads all existing records, with or without an ingester.
func TestOnce(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		all := c.all[0].send(line{service: "web"}, line{service: "web", level: "error"})
		time.Sleep(2 * time.Second)
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(time.Second)
		cursor := f.end(t)
		more := c.all[0].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		once := func(o unflushed.FollowOptions) *screen {
			t.Helper()
			got := &screen{c: c}
			with := got.options(o.Query)
			with.After, with.Once = o.After, true
			if _, err := c.reader().Follow(t.Context(), with); err != nil {
				t.Error(err)
			}
			return got
		}
		since := always("web")
		since.Range.From = time.Now().Add(-time.Hour).UnixNano()
		for range 2 { // while the ingester runs, and after it has ended
			once(unflushed.FollowOptions{Query: always("web"), After: cursor}).shows(namesOf(more)...)
			got := once(unflushed.FollowOptions{Query: since})
			got.shows(namesOf(all, more)...)
			says(t, append(got.problems, got.notes...), 0)
			if c.all[0].Process() != nil {
				c.all[0].Drain()
			}
		}
	})
}

// Tables that hang do not delay records of known ingesters.
func TestTablesHang(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		in := c.all[0]
		in.start()
		time.Sleep(time.Second)
		rows, now, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		known := func(context.Context) ([]lease.Ingester, time.Time, error) { return rows, now, nil }
		r := c.reader(func(o *unflushed.Options) { o.Ingesters = known })
		f := follow(r, s.options(always("web")))
		time.Sleep(3 * time.Second)
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Scan && strings.HasPrefix(key, lease.Table) {
				return storagetest.Fault{Delay: time.Hour}
			}
			return storagetest.Fault{}
		})
		slow := 0
		for range 20 {
			sent := in.send(line{service: "web"})[0]
			time.Sleep(2 * time.Second)
			if !slices.Contains(s.names(), sent.name) {
				slow++
			}
		}
		time.Sleep(4 * time.Second)
		f.end(t)
		time.Sleep(10 * time.Second) // the ingester's reads of the tables end by their time limit
		if slow > 0 || len(s.names()) != 20 {
			t.Errorf("%d of %d are late; %q", slow, len(s.names()), s.problems)
		}
	})
}
