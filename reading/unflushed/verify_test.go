package unflushed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// running starts all ingesters and sends each one a record. It returns these records.
func (c *company) running() (all []*sentRecord) {
	c.t.Helper()
	for _, in := range c.all {
		in.start()
	}
	time.Sleep(time.Second)
	for _, in := range c.all {
		all = append(all, in.send(line{service: "web"})...)
	}
	time.Sleep(1500 * time.Millisecond) // a follower goes by a list of peers for 2 s, and the first lists may lack one
	return all
}

// All ingesters that may hold records answer: a read is complete, with or without rights
// to the tables, through any ingester.
func TestVerifyWhole(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		for _, change := range [][]func(*unflushed.Options){
			nil, {c.via("i0")}, {c.via("i2")}, {c.via("i1"), withoutRights},
		} {
			if g := c.reads(c.reader(change...), all); !g.Live {
				t.Error("it does not say that all have answered")
			}
		}
	})
}

// The asked ingester is cut off from the tables, and does not know an ingester that has
// started since. A reader with rights names that one; a reader without says that it
// cannot know. Through the other ingester all records are there.
func TestVerifyStaleList(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		c.all[0].start()
		time.Sleep(6 * time.Second) // until it has listed its peers by itself
		first := c.all[0].send(line{service: "web"})
		time.Sleep(time.Second)
		c.all[0].Cut.Store(true)
		c.all[1].start()
		time.Sleep(time.Second)
		second := c.all[1].send(line{service: "web"})
		time.Sleep(2 * time.Second)
		all := slices.Concat(first, second)
		// The second ingester's row of the tail has its record, but that is no guarantee.
		c.reads(c.reader(c.via("i0")), all, "ingester 00000002 on i1 holds records since")
		c.reads(c.reader(c.via("i0"), withoutRights), first, "could not list the others, and this reader has no right to")
		if g := c.reads(c.reader(), all); !g.Live {
			t.Error("through the one that knows all: it does not say so")
		}
		time.Sleep(30 * time.Minute) // now these are in blobs, and the next one is not
		all = append(all, c.all[1].send(line{service: "web"})...)
		time.Sleep(2 * time.Second)
		c.reads(c.reader(c.via("i0")), all, "ingester 00000002 on i1 holds records since")
		c.reads(c.reader(c.via("i0"), withoutRights), all[:2], "could not list the others, and this reader has no right to")
		c.reads(c.reader(), all)
	})
}

// A row is named if the asked ingester neither includes it in its answer nor names it. An
// ingester that the answer names is named once.
func TestVerifyRowMissing(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		rows, _, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := lease.Ingester{ID: "0badcafe", Process: "01234567", StoreID: storeID, Host: "h", Address: "http://h", State: lease.Holding, At: c.Now()}
		list := func(i lease.Ingester) func(*unflushed.Options) {
			return func(o *unflushed.Options) {
				o.Ingesters = func(context.Context) ([]lease.Ingester, time.Time, error) {
					return append(slices.Clone(rows), i), c.Now(), nil
				}
			}
		}
		c.reads(c.reader(list(other)), all, "ingester 0badcafe on h may hold records that are in no blob, and could not be asked: no ingester can be reached at http://h")
		c.reads(c.reader(c.via("i0"), list(other)), all, "ingester 0badcafe on h may hold records that are in no blob, and is not among those that answered")
		silent := other
		silent.At = c.Now().Add(-time.Hour)
		c.reads(c.reader(list(silent)), all, "ingester 0badcafe on h has been silent for 1h0m0s and may hold records that are in no blob: start it on its log again, or give it up with ingest forget 0badcafe")
		for _, state := range []lease.State{lease.Idle, lease.Stopped} {
			for _, at := range []time.Time{other.At, silent.At} {
				i := other
				i.State, i.At = state, at
				if g := c.reads(c.reader(list(i)), all); !g.Live {
					t.Errorf("%s ones are waited for", state)
				}
			}
		}
		nameless := other
		nameless.Process = "" // of a row by an unknown writer
		c.reads(c.reader(list(nameless)), all, "ingester 0badcafe")
		// Now the asked one finds it in the table as well.
		c.storeRow("0badcafe", nil)
		time.Sleep(time.Millisecond)
		c.reads(c.reader(), all, "says no address at which it could be asked")
		c.reads(c.reader(c.via("i0")), all, "it announces no address")
	})
}

// A silent ingester may hold records in any range that its row says nothing about.
func TestVerifySilentWhateverRange(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.running()
		c.all[0].Kill()
		time.Sleep(48 * time.Hour)
		for _, r := range []blobs.Range{
			blobs.Always(), {From: blobs.Oldest, To: time.Now().Add(-48 * time.Hour).UnixNano()},
			{From: time.Now().Add(-time.Hour).UnixNano(), To: blobs.Newest}, {From: time.Now().Add(time.Hour).UnixNano(), To: blobs.Newest},
		} {
			for _, change := range []func(*unflushed.Options){func(*unflushed.Options) {}, withoutLive} {
				q := always("web")
				q.Range = r
				c.tells(c.gather(c.reader(change), q), "ingest forget 00000001")
			}
		}
		if _, err := lease.Forget(t.Context(), c.Store, "", "00000001", c.Now(), func(context.Context, lease.Ingester) error { return nil }); err != nil {
			t.Fatal(err)
		}
		c.tells(c.gather(c.reader(), always("web")))
	})
}

// An ingester was restarted between the list and the answer. A later list clears that up.
// While its row is of the previous start, its answer does not count.
func TestVerifyRestarted(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		r, lists := restarted(t, c)()
		if g := c.reads(r, all); !g.Live || *lists != 2 {
			t.Errorf("%d lists, and all have answered: %v", *lists, g.Live)
		}
		c.all[0].Kill()
		c.all[0].Cut.Store(true)
		c.all[0].start()
		time.Sleep(time.Second)
		c.reads(c.reader(c.via("i0")), all, "another start of ingester 00000001 on i0 answered", "the table of ingesters cannot be read")
		c.all[0].Cut.Store(false)
		time.Sleep(11 * time.Second)
		c.reads(c.reader(c.via("i0")), all)
	})
}

// Unreadable rows may be of ingesters that hold records.
func TestVerifyUnreadableRows(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		c.storeRow("0badcafe", map[string]any{"format": int64(2)})
		// Both the asked ingester and the reader see it, and say so.
		c.reads(c.reader(), all, "ingesters whose rows cannot be read may hold records that are in no blob: row 0badcafe")
		c.reads(c.reader(c.via("i0")), all, "ingesters whose rows cannot be read may hold records that are in no blob: row 0badcafe", "0 of 1 other ingesters answered")
		c.reads(c.reader(withoutLive), all, "ingesters whose rows cannot be read may hold records", "ingester 00000001")
		c.reads(c.reader(c.via("i0"), withoutRights), all, "row 0badcafe of table ingesters")
		c.storeRow("0badcafe", map[string]any{"state": "dreaming"})
		c.reads(c.reader(), all, `state "dreaming" is not known`)
	})
}

// Reads that may want the lost records of an ingester report them, even if it answers,
// until the loss is acknowledged.
func TestVerifyLost(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		time.Sleep(100 * time.Hour)
		all := c.running()
		until := c.Now().Add(-50 * time.Hour)
		text := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }
		lost := func(props map[string]any) {
			props["lostuntil"] = text(until)
			c.storeRow("0badcafe", props)
		}
		lost(map[string]any{"state": "stopped", "lostsince": text(until.Add(-time.Hour))})
		for _, row := range []struct {
			from   int64
			misses bool
		}{
			{blobs.Oldest, true},
			{until.UnixNano(), true},
			{until.Add(25*time.Hour - 1).UnixNano(), true}, // a record may be so far ahead
			{until.Add(25 * time.Hour).UnixNano(), false},
			{c.Now().UnixNano(), false},
		} {
			q := always("web")
			q.Range.From = row.from
			if !row.misses {
				c.tells(c.gather(c.reader(), q))
				continue
			}
			told := "has lost records that it took between " + text(until.Add(-time.Hour))
			c.tells(c.gather(c.reader(), q), "ingester 0badcafe on by-hand "+told)
			c.tells(c.gather(c.reader(c.via("i0")), q), "ingester 0badcafe on by-hand: "+told)
			c.tells(c.gather(c.reader(c.via("i0"), withoutRights), q), "ingester 0badcafe on by-hand: "+told)
			q.Range.To = until.Add(-1000 * time.Hour).UnixNano() // records may have any age
			if q.Range.From == blobs.Oldest {
				c.tells(c.gather(c.reader(withoutLive), q), "`ingest forget --lost 0badcafe` acknowledges that")
			}
		}
		lost(map[string]any{"state": "idle"})
		time.Sleep(time.Millisecond) // a list of this moment would do
		c.reads(c.reader(), all, "has lost records that it took before "+text(until))
		if _, err := lease.ForgetLoss(t.Context(), c.Store, "", "0badcafe"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		c.reads(c.reader(), all)
	})
}

// A store without its id is not the one that the rows are of, nor one with another id.
func TestVerifyStoreLost(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		is := func(id string, err error) func(*unflushed.Options) {
			return func(o *unflushed.Options) {
				o.Store = func(context.Context) (string, error) { return id, err }
			}
		}
		c.reads(c.reader(is("", nil)), all, "the store has lost its object _store, and ingester 00000001 wrote to store "+storeID, "wrote to store "+storeID+", which is not this one")
		c.reads(c.reader(is(strings.Repeat("f", 32), nil)), all, "ingester 00000001 on i0 holds records since")
		g := c.reads(c.reader(is("", errors.New("the store is away"))), all, "the id of the store (_store) cannot be read", "ingester 00000001 on i0 holds records since")
		for _, p := range g.Report.Problems {
			if strings.Contains(p.Error(), "is not this one") {
				t.Errorf("nobody knows that: %v", p)
			}
		}
	})
}

// The answer of a foreign ingester at an address is rejected: its records are of another
// store.
func TestVerifyForeignStore(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		c.all[0].Kill()
		// Another store's ingester has the address now.
		other := live.NewHandler(live.Options{
			Self: func() live.Self {
				return live.Self{ID: "0badcafe", Process: "01234567", Store: strings.Repeat("f", 32)}
			},
			Journal: nothing{},
		})
		defer other.Stop()
		defer c.Wire.Up("i0", other).Close()
		c.reads(c.reader(), all, "ingester 00000001 on i0 holds records since", "at its address http://i0 ingester 0badcafe answers")
		// A wrong URL is a problem, in addition to the missing ingester.
		c.tells(c.gather(c.reader(c.via("i0")), always("web")), "ingester 0badcafe answers and has never written to this store", "is not among those that answered")
		// The rows cannot be read, and the answer is rejected all the same.
		g := c.gather(c.reader(c.via("i0"), withoutRights), always("web"))
		c.tells(g, "ingester 0badcafe answers and has never written to this store")
		if len(g.Query.Unflushed) > 0 {
			t.Error("its records are taken")
		}
	})
}

// nothing is an empty log.
type nothing struct{}

func (nothing) Open(context.Context, live.LogQuery) (live.Held, error) { return nothing{}, nil }
func (nothing) Position() uint64                                       { return 0 }
func (nothing) Behind() bool                                           { return false }
func (nothing) Close()                                                 {}
func (nothing) Each(context.Context, func(*record.Entry) error) error  { return nil }

// An ingester is silent if its announcements fail, but it is asked all the same, and answers. With
// the notes of its log it goes on accepting records.
func TestVerifySilentIsAsked(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		time.Sleep(6 * time.Second) // until it has listed its peers by itself
		c.all[0].Cut.Store(true)
		for range 8 {
			time.Sleep(15 * time.Second)
			all = append(all, c.all[0].send(line{service: "web"})...)
		}
		r := c.reader(func(o *unflushed.Options) { o.Tail = nil })
		if g := c.reads(r, all); !g.Live {
			t.Error("it does not say that all have answered")
		}
	})
}

// A reader that can ask no ingester names all that may hold records, running or silent. A reader
// that wants blobs alone gets them, and is told.
func TestVerifyNobodyAsked(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		first, second := "ingester 00000001 on i0 holds records", "ingester 00000002 on i1 holds records"
		c.reads(c.reader(withoutLive), all, first, second)
		c.all[1].Kill()
		time.Sleep(time.Minute + time.Second)
		c.reads(c.reader(withoutLive), all, "ingester 00000001 on i0", "ingester 00000002 on i1 has been silent for 1m")
		if _, g := c.read(c.reader(withoutLive), always("web")); g.Live {
			t.Error("nobody was asked, and all have answered")
		}
		for _, change := range []func(*unflushed.Options){withoutLive, byTables} {
			only, err := c.reader(change).Gather(t.Context(), always("web"), unflushed.Only)
			if err != nil {
				t.Fatal(err)
			}
			defer only.Close()
			if len(only.Report.Problems) == 0 {
				t.Error("live records alone are complete without an ingester")
			}
		}
		for r, mode := range map[*unflushed.Reader]unflushed.Mode{c.reader(): unflushed.Off, c.reader(byTables): unflushed.Auto} {
			off, err := r.Gather(t.Context(), always("web"), mode)
			if err != nil {
				t.Fatal(err)
			}
			if len(off.Report.Problems)+len(off.Query.Unflushed) > 0 || len(off.Report.Warnings) != 1 {
				t.Errorf("blobs alone: %+v", off.Report)
			}
			off.Close()
		}
	})
}

// An idle ingester need not answer, gone or running: all records it accepted are in
// blobs.
func TestVerifyIdle(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		time.Sleep(11 * time.Minute)
		if rows, _, err := c.List(t.Context()); err != nil || rows[0].State != lease.Idle {
			t.Fatalf("%+v, %v", rows, err)
		}
		if g := c.reads(c.reader(), all); !g.Live {
			t.Error("it was asked, and does not count")
		}
		c.all[0].Kill()
		c.reads(c.reader(), all)
		// An ingester named by the user has to answer, even if its row says idle.
		c.reads(c.reader(c.via("i0")), all, "no ingester can be reached at http://i0: connection refused")
		c.reads(c.reader(c.via("i0"), withoutRights), all, "no ingester can be reached at http://i0: connection refused")
		time.Sleep(time.Hour)
		g := c.reads(c.reader(), all)
		says(t, g.Report.Notes, 0)
	})
}

// An ingester with records but no address is named with the remedy.
func TestVerifyNoAddress(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		in := c.all[0]
		in.start()
		time.Sleep(time.Second)
		in.send(line{service: "web"})
		time.Sleep(time.Second)
		rows, _, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows[0].Address = ""
		_, g := c.read(c.reader(func(o *unflushed.Options) {
			o.Ingesters = func(context.Context) ([]lease.Ingester, time.Time, error) { return rows, c.Now(), nil }
		}), always("web"))
		c.tells(g, "says no address at which it could be asked")
	})
}

// The table of ingesters is gone. So it is unknown which ingesters hold records, unless
// no ingester has ever written to the store.
func TestVerifyNoTable(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.tells(c.gather(c.reader(), always("web")))
		all := c.running()
		if err := c.Store.Drop(t.Context(), lease.Table); err != nil {
			t.Fatal(err)
		}
		for _, change := range [][]func(*unflushed.Options){nil, {withoutLive}, {c.via("i0")}} {
			says(t, problemsOf(c.gather(c.reader(change...), always("web"))), 3, "the table of ingesters is gone")
		}
		if err := c.Store.Upsert(t.Context(), lease.Table, lease.Partition, nil); err != nil {
			t.Fatal(err)
		}
		says(t, problemsOf(c.gather(c.reader(), always("web"))), 1, "no ingester has a row")
		time.Sleep(11 * time.Second) // the ingester is back in it, and was the only one
		c.reads(c.reader(), all)
	})
}

// The table cannot be listed: it is unknown which ingesters hold records.
func TestVerifyTableAway(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		all := c.running()
		time.Sleep(11 * time.Second)
		c.reads(c.reader(c.via("i0")), all) // the ingester has listed its own row
		time.Sleep(time.Second)
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Scan && strings.HasPrefix(key, lease.Table) {
				return storagetest.Fault{Delay: time.Hour}
			}
			return storagetest.Fault{}
		})
		c.reads(c.reader(c.via("i0")), all, "the table of ingesters cannot be read, so nobody knows who holds records that are in no blob")
		g := c.gather(c.reader(), always("web"))
		c.tells(g, "the table of ingesters cannot be read, so nobody knows")
		if g.Live {
			t.Error("all have answered, it says")
		}
	})
}

// A note says that the row of a best-effort ingester is no guarantee.
func TestVerifyBestEffort(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.all[0].Lease.BestEffort = true
		all := c.running()
		g := c.reads(c.reader(), all)
		says(t, g.Report.Notes, 1, "ingester 00000001 on i0 is announced with best effort only")
		c.all[0].Drain()
		g = c.reads(c.reader(), all)
		says(t, g.Report.Notes, 0)
	})
}

// A tail, and a follower that ends by itself, report the same as a read.
func TestVerifyTailAndOnce(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		all := c.running()
		f := follow(c.reader(), s.options(always("web")))
		time.Sleep(time.Second)
		cursor := f.end(t)
		c.all[1].Kill()
		time.Sleep(2 * time.Minute)
		q := always("web")
		q.Limit = 10
		names, report := c.tail(c.reader(), q)
		if !slices.Equal(names, namesOf(all)) || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Error(), "00000002") {
			t.Errorf("a tail gives %v and %v", names, report.Problems)
		}
		got := &screen{c: c}
		o := got.options(always("web"))
		o.After, o.Once = cursor, true
		if _, err := c.reader().Follow(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		says(t, got.problems, 2, "00000002")
	})
}

// The same beside a Scout, which reads the expired days of the roster meanwhile.
func TestVerifyRestartedAhead(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.running()
		reader := restarted(t, c)
		for range 20 {
			r, lists := reader()
			q := always("web")
			q.Ahead = true
			c.gather(r, q)
			if *lists != 2 {
				t.Errorf("%d lists", *lists)
			}
		}
	})
}

// restarted kills and starts an ingester. It makes readers that begin with the list of ingesters
// from before that, and count their lists.
func restarted(t *testing.T, c *company) (reader func() (r *unflushed.Reader, lists *int)) {
	t.Helper()
	old, _, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.all[0].Kill()
	c.all[0].start()
	time.Sleep(time.Second)
	return func() (*unflushed.Reader, *int) {
		lists := new(int)
		return c.reader(c.via("i0"), func(o *unflushed.Options) {
			o.Ingesters = func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
				if *lists++; *lists == 1 {
					return old, c.Now(), nil
				}
				return c.List(ctx)
			}
		}), lists
	}
}
