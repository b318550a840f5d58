package unflushed_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// holds checks that gaps and shown records add up to all records sent. Each gap must have
// room for its missing records.
func (s *screen) holds(t *testing.T, all []*sentRecord) {
	t.Helper()
	names := s.names()
	s.c.once(names)
	missing := map[string]*sentRecord{}
	for _, r := range all {
		missing[r.name] = r
	}
	for _, name := range names {
		delete(missing, name)
	}
	told := 0
	for _, g := range s.gaps {
		told += g.Records
		inside := 0
		for _, r := range missing {
			if r.service == g.Service && r.time >= g.From && r.time <= g.To {
				inside++
			}
		}
		if inside < g.Records {
			t.Errorf("a gap of %d has room for %d: %+v", g.Records, inside, g)
		}
	}
	if told != len(missing) {
		t.Errorf("%d are missing, and %d are told of", len(missing), told)
	}
}

// burst sends many records at once, some of them late.
func burst(in *ingester, rng *rand.Rand, n int, service string) (all []*sentRecord) {
	for n > 0 {
		var lines []line
		for range min(n, 40) {
			lines = append(lines, line{service: service, at: -time.Duration(rng.IntN(900)) * time.Millisecond, level: []string{"info", "info", "error"}[rng.IntN(3)]})
		}
		n -= len(lines)
		all = append(all, in.send(lines...)...)
	}
	return all
}

// Without live records a follower shows the records of rows and reports those that they
// omit. Both add up, over midnight too.
func TestFollowRows(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, s *screen) {
		rng := rand.New(rand.NewPCG(3, 3))
		time.Sleep(24*time.Hour - 20*time.Second)
		for _, in := range c.all {
			in.start()
		}
		time.Sleep(time.Second)
		burst(c.all[0], rng, 500, "web")
		time.Sleep(10 * time.Second)
		f := follow(c.reader(byTables), s.options(always("web")))
		time.Sleep(time.Second)
		var all []*sentRecord
		for range 60 {
			n := 1 + rng.IntN(20)
			if rng.IntN(3) == 0 {
				n = 100 + rng.IntN(500)
			}
			in := c.all[rng.IntN(3)]
			all = append(all, burst(in, rng, n, "web")...)
			burst(in, rng, 3, "other")
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		f.end(t)
		s.holds(t, all)
		says(t, append(s.problems, s.notes...), 0)
		for _, l := range s.lines {
			if d := l.at.Sub(c.ledger[l.name].acked); d > 2*time.Second {
				t.Errorf("%s is shown %s after it was acknowledged", l.name, d)
			}
		}
		if len(s.gaps) == 0 || len(s.gaps) > 61 {
			t.Errorf("%d gaps", len(s.gaps))
		}
	})
}

// With a filter gaps are an upper bound and are reported seldom. With the error levels
// they are exact.
func TestFollowRowsFiltered(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		rng := rand.New(rand.NewPCG(4, 4))
		q := always("web")
		q.Filter.Levels = 1<<record.Error | 1<<record.Critical
		errs := follow(c.reader(byTables), s.options(q))
		q.Filter = blobs.Filter{Texts: []string{"r1"}}
		texts := &screen{c: c}
		some := follow(c.reader(byTables), texts.options(q))
		time.Sleep(6 * time.Second)
		var all []*sentRecord
		for range 30 {
			all = append(all, burst(c.all[0], rng, 400, "web")...)
			time.Sleep(time.Second)
		}
		time.Sleep(3 * time.Second)
		errs.end(t)
		some.end(t)
		wrong := slices.DeleteFunc(slices.Clone(all), func(r *sentRecord) bool { return r.level != "error" })
		s.holds(t, wrong)
		if len(texts.gaps) == 0 || len(texts.gaps) > 5 || !texts.gaps[0].AtMost || s.gaps[0].AtMost {
			t.Errorf("gaps of a filter are %+v, of errors %+v", texts.gaps, s.gaps[0])
		}
		told := 0
		for _, g := range texts.gaps {
			told += g.Records
		}
		if told != len(all)-30*100 {
			t.Errorf("%d are told of", told)
		}
	})
}

// The tables are away for a minute. That is reported once, with its beginning, and no
// record is lost.
func TestFollowRowsAway(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		time.Sleep(time.Second)
		f := follow(c.reader(byTables), s.options(always("web")))
		time.Sleep(5*time.Second + 500*time.Millisecond) // neither a write nor a read begins now
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Scan || op == storagetest.Upsert {
				return storagetest.Fault{Before: errors.New("the tables are away")}
			}
			return storagetest.Fault{}
		})
		var all []*sentRecord
		for range 60 {
			all = append(all, c.all[0].send(line{service: "web"})...)
			time.Sleep(time.Second)
		}
		says(t, s.get(&s.problems), 1, "stale from 2000-01-01T00:00:06", "the tables are away")
		c.Faults(nil)
		time.Sleep(20 * time.Second)
		cursor := f.end(t)
		s.shows(namesOf(all)...)
		says(t, s.get(&s.notes), 1, "can be read again")
		more := c.all[0].send(line{service: "web"}, line{service: "web", at: -time.Hour})
		time.Sleep(3 * time.Second)
		o := s.options(always("web"))
		o.After = cursor
		f = follow(c.reader(byTables), o)
		time.Sleep(3 * time.Second)
		more = append(more[:1], c.all[0].send(line{service: "web"}, line{service: "web", at: -5 * time.Minute})...)
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(namesOf(all, more)...)
		if len(s.problems) != 1 || !strings.Contains(strings.Join(s.notes, "\n"), "going on by the times of records") {
			t.Errorf("%q %q", s.problems, s.notes)
		}
	})
}

// tellsAll checks a tail without live records: the newest n, except for those in gaps.
func tellsAll(t *testing.T, names []string, report *unflushed.Report, want []string, unstored int) {
	t.Helper()
	gaps := 0
	for _, g := range report.Gaps {
		gaps += g.Records
	}
	missing := 0
	for _, name := range want {
		if !slices.Contains(names, name) {
			missing++
		}
	}
	if missing > gaps || gaps > unstored {
		t.Errorf("%d of the newest %d are missing, and %d are told of", missing, len(want), gaps)
	}
}

// Tails without live records, of more records than rows are read for, and with filters
// that rows do not support.
func TestTailRows(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		rng := rand.New(rand.NewPCG(5, 5))
		var all []*sentRecord
		for range 18 { // less than it takes until a flush
			all = append(all, burst(c.all[rng.IntN(2)], rng, 1+rng.IntN(60), "web")...)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		r := c.reader(byTables)
		for _, n := range []int{1, 10, 100, 150, 1000} {
			q := always("web")
			q.Limit = n
			names, report := c.tail(r, q)
			want := newestOf(c.ledger, n)
			if !slices.Equal(names, want) || len(report.Gaps)+len(report.Problems) > 0 {
				t.Errorf("-n %d gives %d: %v, want %v", n, len(names), names, want)
			}
			for _, filter := range []blobs.Filter{{Texts: []string{"r12"}}, {Levels: 1 << record.Error}, {Levels: 1 << record.Info}, {Texts: []string{"7 "}, Invert: true}} {
				q.Filter = filter
				wanted := c.ackedNow(func(r *sentRecord) bool {
					m := strings.Contains(r.name+" ", strings.Join(filter.Texts, "")) != filter.Invert
					return m && (filter.Levels == 0 || filter.Levels.Has(record.LevelOf([]byte(r.level))))
				})
				names, report := c.tail(r, q)
				if want := newestOf(wanted, n); !slices.Equal(names, want) || len(report.Gaps)+len(report.Problems) > 0 {
					t.Errorf("-n %d %+v gives %d, want %d", n, filter, len(names), len(want))
				}
			}
		}
		all = append(all, burst(c.all[0], rng, 700, "web")...)
		time.Sleep(2 * time.Second)
		q := always("web")
		q.Limit = 500
		names, report := c.tail(r, q)
		tellsAll(t, names, report, newestOf(c.ledger, 500), len(all))
	})
}

// Rows omit lines that are too long. Live records and blobs have them whole. A reader
// with rows alone gets a report of them, and reads the other rows too.
func TestLongLines(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.all[0].holds(8<<10, 1<<20, time.Hour)
		c.all[0].start()
		time.Sleep(time.Second)
		whole := &screen{c: c}
		live, rows := follow(c.reader(), whole.options(always("web"))), follow(c.reader(byTables), s.options(always("web")))
		time.Sleep(6 * time.Second)
		var short, long []*sentRecord
		for range 10 {
			short = append(short, c.all[0].send(line{service: "web"})...)
			time.Sleep(time.Second)
		}
		for range 5 {
			long = append(long, c.all[0].send(line{service: "web", pad: 2 * tailindex.MaxLine})...)
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		live.end(t)
		rows.end(t)
		whole.shows(namesOf(short, long)...)
		s.shows(namesOf(short)...)
		s.holds(t, slices.Concat(short, long))
		q := always("web")
		q.Limit = 5
		checkTail := func(what string, r *unflushed.Reader, want []*sentRecord, gaps int) {
			t.Helper()
			names, report := c.tail(r, q)
			if !slices.Equal(names, namesOf(want)) || len(report.Problems) > 0 || len(report.Gaps) != gaps {
				t.Errorf("%s: %v, %v, gaps %+v", what, names, report.Problems, report.Gaps)
			}
		}
		checkTail("live", c.reader(), long, 0)
		checkTail("rows", c.reader(byTables), short[5:], 5)
		c.all[0].Drain()
		checkTail("blobs", c.reader(byTables), long, 0)
	})
}
