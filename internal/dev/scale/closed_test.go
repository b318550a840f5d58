package scale_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/scale"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/reading"
	"blobtail/retention/closing"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// A question is one of a reader, of the first service or of all.
type question struct {
	name string
	all  bool
	how  func(ctx context.Context, s *reading.Store) (*reading.Outcome, error)
}

// questions are those of a reader, about days that are closed and days that are open.
func questions(now time.Time) []question {
	const day = 24 * time.Hour
	span := func(from, to time.Duration) reading.Range {
		midnight := now.Truncate(day)
		return reading.Range{From: midnight.Add(from).UnixNano(), To: midnight.Add(to).UnixNano()}
	}
	since := func(d time.Duration) reading.Range {
		return reading.Range{From: now.Add(-d).UnixNano(), To: reading.Newest}
	}
	var out []question
	type how func(ctx context.Context, s *reading.Store, a reading.Ask) (*reading.Outcome, error)
	for _, services := range [][]string{{serviceName(0)}, {"*"}} {
		add := func(name string, how how, rng reading.Range, limit int) {
			a := reading.Ask{Services: services, Range: rng, Limit: limit}
			ask := func(ctx context.Context, s *reading.Store) (*reading.Outcome, error) { return how(ctx, s, a) }
			out = append(out, question{services[0] + ", " + name, services[0] == "*", ask})
		}
		records := func(ctx context.Context, s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			return s.Records(ctx, a, silent)
		}
		tail := func(ctx context.Context, s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			return s.Tail(ctx, a, silent)
		}
		count := func(ctx context.Context, s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			return s.Count(ctx, a)
		}
		hist := func(ctx context.Context, s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			_, out, err := s.Histogram(ctx, a, reading.Slices{})
			return out, err
		}
		add("the newest", records, reading.Always(), 10)
		add("the newest, back to closed days", records, reading.Always(), 100)
		add("the newest of a closed day", records, span(-4*day, -3*day), 10)
		add("tail", tail, reading.Always(), 10)
		add("the last day", records, since(day), 0)
		add("since a closed day", records, since(3*day+time.Hour), 0)
		add(closedHour, records, span(-3*day, -3*day+time.Hour), 0)
		add(openHour, records, span(-day, -day+time.Hour), 0)
		add("two minutes of a closed day", records, span(-3*day+time.Minute, -3*day+3*time.Minute), 0)
		add("over midnight", records, span(-3*day-time.Hour, -3*day+time.Hour), 0)
		add("a week", records, since(7*day), 0)
		add("a bounded week", records, span(-9*day, -2*day+time.Hour), 0)
		add("count", count, reading.Always(), 0)
		add("count of an hour", count, span(-3*day, -3*day+time.Hour), 0)
		add("hist of a week", hist, since(7*day), 0)
		add("hist of a part of a day", hist, span(-3*day, -3*day+6*time.Hour), 0)
	}
	return append(out, question{"ls", true, func(ctx context.Context, s *reading.Store) (*reading.Outcome, error) {
		_, out, err := s.Services(ctx, reading.Ask{Range: reading.Always()})
		return out, err
	}})
}

const closedHour, openHour = "an hour of a closed day", "an hour of an open day"

// answered is what a reader got, and what it asked for.
type answered struct {
	records  int64
	requests map[string]int64
}

// ask asks a question by a right. The read has to be complete.
func (p *place) ask(t *testing.T, q question, prefixes []string) answered {
	t.Helper()
	store, tables := p.open()
	o := reading.OpenOptions{Blobs: store, Tables: tables, Now: func() time.Time { return p.now }, Distant: !p.near, Unasked: true}
	if prefixes != nil {
		o.Blobs, o.Unasked, o.Off = &door{BlobStore: store, prefixes: prefixes}, false, true
	}
	r, err := reading.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	before := p.counts()
	out, err := q.how(t.Context(), r.For(nil))
	if err != nil || !out.Complete() || out.Records == 0 && q.name != "ls" {
		t.Fatalf("%s: %+v, %v", q.name, out, err)
	}
	is := answered{out.Records, p.counts()}
	for kind, n := range before {
		is.requests[kind] -= n
	}
	maps.DeleteFunc(is.requests, func(_ string, n int64) bool { return n == 0 })
	return is
}

// askAll asks all questions, by all rights that suffice for them.
func (p *place) askAll(t *testing.T) map[string]answered {
	t.Helper()
	out := map[string]answered{}
	for by, prefixes := range grants() {
		for _, q := range questions(p.now) {
			if prefixes == nil || !q.all {
				out[q.name+", by "+by] = p.ask(t, q, prefixes)
			}
		}
	}
	return out
}

// compare reports each question that costs other requests in a store with accounts. Without any, a
// range with a day that has no blobs costs a list of roots.
func compare(t *testing.T, when string, with, without map[string]answered) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(with)) {
		a, b := with[name], without[name]
		delete(b.requests, "list _closed")
		if a.records != b.records || !maps.Equal(a.requests, b.requests) {
			t.Errorf("%s, %s: %d records for %v, and without accounts %d for %v", when, name, a.records, a.requests, b.records, b.requests)
		}
	}
}

// compareHours reports if an hour of a closed day costs more than one of an open day, besides some
// lists of accounts for each service.
func compareHours(t *testing.T, is map[string]answered, services, lists int64) {
	t.Helper()
	for name, open := range is {
		shut := is[strings.Replace(name, openHour, closedHour, 1)]
		more := maps.Clone(open.requests)
		if more["list parts"] = lists; strings.HasPrefix(name, "*") {
			more["list parts"] = lists * services
		}
		maps.DeleteFunc(more, func(_ string, n int64) bool { return n == 0 })
		if strings.Contains(name, openHour) && (open.records != shut.records || !maps.Equal(more, shut.requests)) {
			t.Errorf("%s costs %v, and for a closed day %v, want %v", name, open.requests, shut.requests, more)
		}
	}
}

// The accounts of closed days cost a reader of a distant store no request, of whatever kind and
// whatever the reader asks for: before the days are compacted, until the replaced blobs are deleted,
// and after that; by the right to the whole store, and by that to one service.
func TestClosedDaysCostNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
		a := scale.New(scale.Options{})
		estate{services: 12, days: 12, blobs: 3, every: 12}.fill(t, time.Now(), a.Add)
		p := placeOf(t, a)
		open := p.askAll(t)
		if out := p.close(t, closing.Options{}); out.Parts != 12*11 {
			t.Errorf("closed %+v", out)
		}
		is := p.askAll(t)
		compare(t, "closed", is, open)
		compareHours(t, is, 12, 0)

		for _, step := range []string{"compacted", "swept", "closed again"} {
			out := p.compact(t)
			if compacted := out.Out == 11*2 && out.Deleted == 0; compacted != (step == "compacted") {
				t.Errorf("%s: %+v", step, out)
			}
			if swept := out.Deleted == 11*2*3; swept != (step == "swept") {
				t.Errorf("%s: %+v", step, out)
			}
			if step == "closed again" {
				p.close(t, closing.Options{Daily: true})
			}
			is := p.askAll(t)
			p.without(t, func() { compare(t, step, is, p.askAll(t)) })
			time.Sleep(2 * time.Hour)
		}
	})
}

// The same by Azure's emulator and a store in memory. In a directory, which is near, a range that
// ends within a closed day costs one list for each service, and no account is read.
func TestClosedDaysCostByStore(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		blobs, tables := open()
		var mu sync.Mutex
		counts := map[string]int64{}
		p := &place{now: time.Now(), near: strings.HasSuffix(t.Name(), "/dir"), free: blobs}
		p.open = func() (storage.BlobStore, storage.TableStore) { return &door{blobs, nil, &mu, counts}, tables }
		p.counts = func() map[string]int64 { return maps.Clone(counts) }
		estate{services: 12, days: 12, blobs: 1, every: 24}.fill(t, p.now, func(key string, body []byte, attrs storage.Attrs) {
			storagetest.Put(t, blobs, key, body, attrs)
		})
		before := p.askAll(t)
		if out := p.close(t, closing.Options{}); out.Parts < 12*10 {
			t.Errorf("closed %+v", out)
		}
		is := p.askAll(t)
		compare(t, "closed", is, before)
		if p.near {
			compareHours(t, is, 12, 1)
		} else {
			compareHours(t, is, 12, 0)
		}
	})
}

// A range with closed days of which a service has nothing costs one list of roots, and one request
// for each root that has added parts of such days: of all services together. It costs nothing by the
// right to one service.
func TestGapsCostRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
		a := scale.New(scale.Options{})
		lacks := map[string]int{serviceName(0): 9, serviceName(5): 4}
		estate{services: 12, days: 12, blobs: 1, every: 12, lacks: lacks}.fill(t, time.Now(), a.Add)
		p := placeOf(t, a)
		for _, after := range []int{6, 3, 1} { // days: a root has the 14th to the 19th, then three, then two
			p.close(t, closing.Options{After: time.Duration(after)*24*time.Hour + 2*time.Hour})
		}
		const day = 24 * time.Hour
		midnight := p.now.Truncate(day)
		for _, c := range []struct {
			name        string
			services    []string
			from, to    time.Duration
			lists, gets int64
		}{
			{"with the day", []string{serviceName(0)}, -9 * day, -8 * day, 1, 1},
			{"all days", []string{serviceName(0)}, -12 * day, 0, 1, 3},
			{"days before and after", []string{serviceName(0)}, -8 * day, 0, 0, 0},
			{"of a service that has all", []string{serviceName(1)}, -12 * day, 0, 0, 0},
			{"of all", []string{"*"}, -12 * day, 0, 1, 3},
			{"of all, the later gap", []string{"*"}, -5 * day, 0, 1, 2},
			{"of all, an hour", []string{"*"}, -4 * day, -4*day + time.Hour, 1, 1},
			{"of all, of open days", []string{"*"}, -day, 0, 0, 0},
		} {
			for by, prefixes := range grants() {
				if c.services[0] != serviceName(0) && prefixes != nil {
					continue
				}
				is := p.ask(t, question{"ls", false, func(ctx context.Context, s *reading.Store) (*reading.Outcome, error) {
					return s.Count(ctx, reading.Ask{Services: c.services,
						Range: reading.Range{From: midnight.Add(c.from).UnixNano(), To: midnight.Add(c.to).UnixNano()}})
				}}, prefixes)
				lists, gets := c.lists, c.gets
				if prefixes != nil {
					lists, gets = 0, 0
				}
				if l, g := is.requests["list _closed"], is.requests["get _closed"]; l != lists || g != gets {
					t.Errorf("%s, by %s: %d lists and %d roots, want %d and %d; all: %v", c.name, by, l, g, lists, gets, is.requests)
				}
			}
		}
	})
}

// A read of an hour of a closed day lists that day alone, in as many pages as the day has: 5,760
// blobs are two. An hour of an open day is one page.
func TestClosedHourCostsPagesOfItsDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
		a := scale.New(scale.Options{})
		estate{services: 1, days: 4, blobs: 240, every: 1}.fill(t, time.Now(), a.Add)
		p := placeOf(t, a)
		p.close(t, closing.Options{})
		for at, pages := range map[time.Duration]int64{-24: 1, -24 + 9: 1, -1: 1, -3 * 24: 2, -3*24 + 9: 2, -2*24 - 1: 2} {
			from := p.now.Truncate(24 * time.Hour).Add(at * time.Hour)
			is := p.ask(t, question{"hour", false, func(ctx context.Context, s *reading.Store) (*reading.Outcome, error) {
				return s.Count(ctx, reading.Ask{Services: []string{serviceName(0)},
					Range: reading.Range{From: from.UnixNano(), To: from.Add(time.Hour).UnixNano()}})
			}}, nil)
			if n := is.requests["list blobs"]; n != pages || is.records != 240*5 {
				t.Errorf("%v: %d pages, want %d; %d records", from, n, pages, is.records)
			}
		}
	})
}

// A histogram of thousands of services costs no list more, though most of them have nothing on the
// closed days: their range has none. That of a week lists the roots, once for all services.
func TestClosedDaysOfManyServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
		a := scale.New(scale.Options{})
		shape{services: 10_000, busy: 10, days: 8, horizons: 100}.fill(t, a)
		p := placeOf(t, a)
		hist := func(d time.Duration) answered {
			return p.ask(t, question{"hist", true, func(ctx context.Context, s *reading.Store) (*reading.Outcome, error) {
				_, out, err := s.Histogram(ctx, reading.Ask{Services: []string{"*"}, Range: since(d)}, reading.Slices{})
				return out, err
			}}, nil)
		}
		open := hist(24 * time.Hour)
		if out := p.close(t, closing.Options{}); out.Parts != 10*7 {
			t.Errorf("closed %+v", out)
		}
		day, week := hist(24*time.Hour), hist(7*24*time.Hour)
		if !maps.Equal(day.requests, open.requests) {
			t.Errorf("a day costs %v, and %v without accounts", day.requests, open.requests)
		}
		open.requests["list _closed"], open.requests["get _closed"] = 1, 1
		if !maps.Equal(week.requests, open.requests) {
			t.Errorf("a week costs %v, want %v", week.requests, open.requests)
		}
	})
}
