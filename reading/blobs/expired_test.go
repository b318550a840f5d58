package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

func day(t testing.TB, text string) horizon.Day {
	t.Helper()
	d, err := horizon.ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// days stores three records a day, one at its very end, from 2026-11-16 to 22.
func days(t testing.TB, b *builder, services ...string) (all []rec) {
	for n, service := range services {
		for d := range 7 {
			start := time.Date(2026, 11, 16+d, 0, 0, 0, 0, time.UTC)
			for i, at := range []time.Duration{0, 13 * time.Hour, 24*time.Hour - 1} {
				r := rec{service: service, time: start.Add(at).UnixNano(), origin: origin(uint64(100*n + d)), index: uint32(i)}
				r.line = line(r.time, "info", service, fmt.Sprintf("record %d of day %d", i, 16+d))
				b.add(time.Hour, []rec{r})
				all = append(all, r)
			}
		}
	}
	return all
}

func mark(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Expired days are hidden from every kind of read while their blobs are still stored,
// for that service alone. A read of them warns the caller.
func TestHidden(t *testing.T) {
	b := newBuilder(t, 0)
	all := days(t, b, "app", "app2", "web")
	mark(t, horizon.Publish(t.Context(), b.store, "app", day(t, "2026-11-17")))
	mark(t, horizon.Publish(t.Context(), b.store, "app", day(t, "2026-11-19")))
	mark(t, horizon.Drop(t.Context(), b.store, "app", day(t, "2026-11-18")))
	mark(t, horizon.Drop(t.Context(), b.store, "app", day(t, "2026-11-21")))
	mark(t, horizon.Drop(t.Context(), b.store, "app2", day(t, "2026-11-22")))
	b.put("app/2026/11/17/1200/000001.log", []byte("no blob"), nil) // also not reported
	r := blobs.New(b.store, blobs.Options{})
	visible := func(services []string, rng blobs.Range) (out []rec) {
		for _, rec := range all {
			d := horizon.DayOfNs(rec.time).String()
			hidden := rec.service == "app" && (d < "2026-11-19" || d == "2026-11-21") || rec.service == "app2" && d == "2026-11-22"
			if !hidden && slices.Contains(services, rec.service) && rec.time >= rng.From && (rec.time < rng.To || rng.To == blobs.Newest) {
				out = append(out, rec)
			}
		}
		return out
	}
	from := func(d string) int64 { return day(t, d).Start().UnixNano() }
	const app, app2 = "app: older than 2026-11-19 has expired, and so has 2026-11-21", "app2: 2026-11-22 has expired"
	for _, c := range []struct {
		services []string
		rng      blobs.Range
		says     []string
	}{
		// An open range asks for all that there is.
		{[]string{"app"}, blobs.Always(), []string{"app: 2026-11-21 has expired"}},
		{[]string{"app", "app2", "web"}, blobs.Always(), []string{"app: 2026-11-21 has expired", app2}},
		{[]string{"app"}, blobs.Range{From: blobs.Oldest, To: from("2026-11-20")}, nil},
		{[]string{"app"}, blobs.Range{From: blobs.Oldest, To: from("2026-11-18")}, []string{"app: older than 2026-11-19 has expired"}},
		{[]string{"app"}, blobs.Range{From: from("2026-11-16"), To: blobs.Newest}, []string{app}},
		{[]string{"app", "app2", "web"}, blobs.Range{From: from("2026-11-16"), To: blobs.Newest}, []string{app, app2}},
		{[]string{"web"}, blobs.Always(), nil},
		{[]string{"app"}, blobs.Range{From: from("2026-11-17"), To: from("2026-11-18")}, []string{"app: older than 2026-11-19 has expired"}},
		{[]string{"app"}, blobs.Range{From: from("2026-11-19"), To: from("2026-11-21")}, nil},
		{[]string{"app"}, blobs.Range{From: from("2026-11-19"), To: from("2026-11-21") + 1}, []string{"app: 2026-11-21 has expired"}},
		{[]string{"app"}, blobs.Range{From: from("2026-11-22") - 1, To: blobs.Newest}, []string{"app: 2026-11-21 has expired"}},
		{[]string{"app2"}, blobs.Range{From: from("2026-11-22"), To: blobs.Newest}, []string{app2}},
	} {
		want := visible(c.services, c.rng)
		check := func(what string, got int, sum blobs.Summary, err error) {
			t.Helper()
			var says []string
			for _, w := range sum.Warnings {
				says = append(says, w.Error())
			}
			if err != nil || got != len(want) || !sum.Complete() || !slices.Equal(says, c.says) {
				t.Errorf("%v %v: %s: %d, want %d; %q, %v, %v", c.services, c.rng, what, got, len(want), says, sum.Problems, err)
			}
		}
		q := blobs.Query{Services: c.services, Range: c.rng}
		got, sum := read(t, r, q)
		if !slices.Equal(got, lines(want)) {
			t.Errorf("%v %v: %s", c.services, c.rng, got)
		}
		check("read", len(got), sum, nil)
		plan, err := r.Plan(t.Context(), q)
		mark(t, err)
		n, sum, err := plan.Count(t.Context())
		check("count", int(n), sum, err)
		buckets, sum, err := plan.Histogram(t.Context(), blobs.Buckets{Length: time.Nanosecond})
		records := int64(0)
		for _, b := range buckets {
			records += b.Levels[record.Info]
		}
		check("histogram", int(records), sum, err)
		sum, err = plan.Entries(t.Context(), func(*record.Entry) error { return nil })
		check("entries", int(sum.Records), sum, err)
		q.Limit = 1000
		found, sum := newest(t, r, q)
		check("newest", len(found), sum, nil)
		v, err := r.Verify(t.Context(), q, blobs.VerifyOptions{}, func(blobs.Finding) {})
		if err != nil || v.Blobs != int64(len(want)) || v.Bad != 0 || v.Notes < int64(len(c.says)) {
			t.Errorf("%v %v: verify: %+v, %v", c.services, c.rng, v, err)
		}
		// A caller that gets as many records as it asked for misses nothing.
		q.Limit = 2
		if found, sum = newest(t, r, q); len(found) == 2 && (len(sum.Warnings) > 0 || !slices.Equal(found, lines(want)[len(want)-2:])) {
			t.Errorf("%v %v: newest: %s, %v", c.services, c.rng, found, sum.Warnings)
		}
	}
	listed, sum, err := r.List(t.Context(), blobs.Query{Services: []string{"app"}}, time.Time{})
	if err != nil || len(listed) != 3 || listed[0].Name != "2026-11-19" || len(sum.Warnings) != 1 {
		t.Errorf("%v, %+v, %v", listed, sum, err)
	}
	for key, expired := range map[string]bool{
		"app/2026/11/18/1300/000001.log": true, "app/2026/11/19/1300/000001.log": false,
		"app2/2026/11/22/1300/000001.log": true, "app2/2026/11/18/1300/000001.log": false, "app/2026/11/18/1300/000009.log": true,
	} {
		body, _, err := r.Body(t.Context(), key)
		if none := (*blobs.NoBlobError)(nil); (len(body) == 0) != expired || expired && (!errors.As(err, &none) || !none.Expired) {
			t.Errorf("%s: %d bytes, %v", key, len(body), err)
		}
	}
}

// A service with only expired days, deleted or not, is a known service. A walk back
// stops at its horizon.
func TestAllExpired(t *testing.T) {
	b := newBuilder(t, 0)
	days(t, b, "app")
	mark(t, horizon.Publish(t.Context(), b.store, "app", day(t, "2026-12-01")))
	mark(t, horizon.Publish(t.Context(), b.store, "was", day(t, "2026-12-01")))
	s := &counted{BlobStore: b.store}
	r := blobs.New(s, blobs.Options{})
	for _, service := range []string{"app", "was"} {
		q := blobs.Query{Services: []string{service}, Range: blobs.Always()}
		got, sum := read(t, r, q)
		q.Limit = 10
		found, newestSum := newest(t, r, q)
		for _, sum := range []blobs.Summary{sum, newestSum} {
			if len(got)+len(found) > 0 || !sum.Complete() || fmt.Sprint(sum.Warnings) != "["+service+": older than 2026-12-01 has expired]" {
				t.Errorf("%s: %d, %d, %+v", service, len(got), len(found), sum)
			}
		}
	}
	if s.dirs.Load() > 8 { // three of them guess
		t.Errorf("%d Dirs", s.dirs.Load())
	}
}

// The expired days of many services are reported in a few lines.
func TestExpiredLines(t *testing.T) {
	b := newBuilder(t, 0)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("s%02d", i))
		d := day(t, "2026-11-01")
		if i > 20 {
			d += horizon.Day(i)
		}
		mark(t, horizon.Publish(t.Context(), b.store, names[i], d))
	}
	for d := range horizon.Day(9) {
		mark(t, horizon.Drop(t.Context(), b.store, "s00", day(t, "2026-11-03")+2*d))
	}
	_, sum := read(t, blobs.New(b.store, blobs.Options{}), blobs.Query{Services: names, Range: blobs.Always()})
	var says strings.Builder
	for _, w := range sum.Warnings {
		fmt.Fprintln(&says, w)
	}
	if got, want := says.String(), `s00: older than 2026-11-01 has expired, and so have 2026-11-03, 2026-11-05, 2026-11-07 and 6 more
s01, s02, s03 and 17 more: older than 2026-11-01 has expired
s21: older than 2026-11-22 has expired
and days of 8 more services have expired
`; got != want {
		t.Errorf("%swant\n%s", got, want)
	}
}

// remove deletes the blobs with a key prefix.
func remove(t testing.TB, store storage.BlobStore, prefix string) {
	for b, err := range store.List(context.Background(), prefix, "") {
		mark(t, err)
		mark(t, store.Delete(context.Background(), b))
	}
}

// A blob that vanishes during a read may have expired: then the rest of its day is
// left out, and the read is otherwise complete. Or it was compacted. Or it is
// missing.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name    string
		what    func(t *testing.T, b *builder)
		most    int // records of that day
		warning string
		problem string
	}{
		{"horizon", func(t *testing.T, b *builder) {
			mark(t, horizon.Publish(context.Background(), b.store, "web", day(t, "2026-11-18")))
			remove(t, b.store, "web/2026/11/17/")
		}, 0, "2026-11-17 of web expired while it was read", ""},
		{"first horizon", func(t *testing.T, b *builder) {
			remove(t, b.store, "_horizon/")
			mark(t, horizon.Publish(context.Background(), b.store, "web", day(t, "2026-11-18")))
			remove(t, b.store, "web/2026/11/17/1300/") // so that the rest of the day is left out
		}, 1, "2026-11-17 of web expired while it was read", ""},
		{"dropped", func(t *testing.T, b *builder) {
			mark(t, horizon.Drop(context.Background(), b.store, "web", day(t, "2026-11-17")))
			remove(t, b.store, "web/2026/11/17/2300/")
		}, 2, "2026-11-17 of web expired while it was read", ""},
		{"another one's", func(t *testing.T, b *builder) {
			mark(t, horizon.Publish(context.Background(), b.store, "we", day(t, "2026-11-18")))
			remove(t, b.store, "web/2026/11/17/1300/")
		}, 2, "", "web/2026/11/17/1300/000001.log: get web/2026/11/17/1300/000001.log: does not exist"},
		{"compacted", func(t *testing.T, b *builder) {
			var id blobfmt.BatchID
			for o := range b.store.List(context.Background(), "web/2026/11/17/1300/", "") {
				meta, err := blobfmt.ParseMeta(o.Metadata)
				mark(t, err)
				id = meta.Batch
			}
			b.number = 990000
			at := time.Date(2026, 11, 17, 13, 0, 0, 0, time.UTC).UnixNano()
			b.add(time.Hour, []rec{{service: "web", time: at, origin: origin(9), line: line(at, "info", "web", "x")}}, id)
			remove(t, b.store, "web/2026/11/17/1300/000001")
		}, 2, "", "web/2026/11/17/1300/000001.log: compacted while it was read; read again: get web/2026/11/17/1300/000001.log: does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder(t, 0)
			all := days(t, b, "web")
			mark(t, horizon.Publish(t.Context(), b.store, "web", day(t, "2026-11-17")))
			s := beforeGet(b.store, "", func() { c.what(t, b) })
			r := blobs.New(s, blobs.Options{Workers: 1})
			plan, err := r.Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: all[3].time, To: blobs.Newest}})
			mark(t, err)
			var out strings.Builder
			sum, err := plan.Read(t.Context(), func(lines []byte) error { out.Write(lines); return nil })
			mark(t, err)
			var warning, problem string
			for _, w := range sum.Warnings {
				warning = w.Error()
			}
			for _, p := range sum.Problems {
				problem = p.Error()
			}
			if warning != c.warning || problem != c.problem || len(sum.Warnings)+len(sum.Problems) != 1 {
				t.Errorf("%q, %q", sum.Warnings, sum.Problems)
			}
			got := slices.Collect(strings.Lines(out.String()))
			rest := lines(all[6:])
			if n := len(got) - len(rest); n < 0 || n > c.most || c.problem != "" && n != 2 || !slices.Equal(got[n:], rest) {
				t.Errorf("%s", got)
			}
			if n, sum, err := plan.Count(t.Context()); err != nil || n != 18 || !sum.Complete() {
				t.Errorf("counted %d from the metadata, %+v, %v", n, sum, err)
			}
		})
	}
}

// A read stops at any point when it is older than half the grace. It returns the
// lines so far, and reports that.
func TestTooOld(t *testing.T) {
	for _, c := range []struct {
		name        string
		get, reader time.Duration // for a GET; for the receiver of a line
		age         time.Duration
		after       time.Duration
		least       int
	}{
		{"in time", time.Minute, 0, 0, 0, 21},
		{"GETs", 10 * time.Minute, 0, 0, 30 * time.Minute, 1},
		{"a GET that hangs", 100 * time.Hour, 0, 0, 30 * time.Minute, 0},
		{"who reads it", 0, 5 * time.Minute, 0, 30 * time.Minute, 6},
		{"as configured", time.Minute, 0, 3 * time.Minute, 3 * time.Minute, 1},
	} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", c.name, reverse), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBuilder(t, 0)
					all := lines(days(t, b, "web"))
					slow := storagetest.Faulty(b.store, storagetest.Times(-1, storagetest.Get, "", storagetest.Fault{Delay: c.get}))
					r := blobs.New(slow, blobs.Options{Workers: 1, MaxAge: c.age})
					q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Reverse: reverse}
					begun := time.Now()
					plan, err := r.Plan(t.Context(), q)
					mark(t, err)
					var got []string
					take := func(text []byte) error {
						got = append(got, string(text))
						time.Sleep(c.reader)
						return nil
					}
					check := func(what string, least int, sum blobs.Summary, err error, begun time.Time) {
						t.Helper()
						took := time.Since(begun)
						if err != nil || sum.Complete() != (c.after == 0) || len(sum.Problems) > 1 || c.after > 0 && (took < c.after || took >= c.after+c.reader+1) {
							t.Errorf("%s: %v, %v, after %s", what, sum.Problems, err, took)
						}
						if len(got) < least || len(got) == len(all) && c.after > 0 {
							t.Errorf("%s: %d lines", what, len(got))
						}
						if c.after > 0 && !strings.HasPrefix(sum.Problems[0].Error(), fmt.Sprintf("stopped after %s: ", c.after)) {
							t.Error(sum.Problems[0])
						}
					}
					sum, err := plan.Read(t.Context(), take)
					check("read", c.least, sum, err, begun)
					want := slices.Clone(all)
					if reverse {
						slices.Reverse(want)
					}
					if !slices.Equal(got, want[:len(got)]) {
						t.Errorf("%s", got)
					}
					if c.after > 0 {
						// The plan is the old part, however often it is read.
						if sum, err = plan.Read(t.Context(), take); err != nil || sum.Complete() || sum.Records > 0 {
							t.Errorf("%+v, %v", sum, err)
						}
					}
					got = nil
					begun = time.Now()
					q.Limit = 20
					sum, err = r.Newest(t.Context(), q, take)
					if c.reader == 0 || reverse { // otherwise everything has been read by then
						check("newest", 0, sum, err, begun)
					}
				})
			})
		}
	}
}

// late is a store that runs a function between the first check of horizons and the
// listing.
type late struct {
	storage.BlobStore
	looks sync.WaitGroup
	what  func()
}

func (s *late) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		if !isMark(prefix) && s.what != nil {
			s.looks.Wait()
			s.what()
			s.what = nil
		}
		for b, err := range s.BlobStore.List(ctx, prefix, after) {
			if !yield(b, err) {
				return
			}
		}
		if isMark(prefix) && s.what != nil {
			s.looks.Done()
		}
	}
}

// A day that is dropped and deleted before it is listed is reported, even if the
// service has no other records left.
func TestGoneBeforeListed(t *testing.T) { synctest.Test(t, testGoneBeforeListed) }

func testGoneBeforeListed(t *testing.T) {
	for _, limit := range []int{0, 1000} {
		for _, left := range []bool{false, true} {
			b := newBuilder(t, 0)
			all := days(t, b, "web")
			if !left {
				remove(t, b.store, "web/2026/11/1")
				remove(t, b.store, "web/2026/11/20")
				remove(t, b.store, "web/2026/11/22")
				all = nil
			}
			all = slices.DeleteFunc(all, func(r rec) bool { return horizon.DayOfNs(r.time) == day(t, "2026-11-21") })
			s := &late{BlobStore: b.store, what: func() {
				mark(t, horizon.Drop(context.Background(), b.store, "web", day(t, "2026-11-21")))
				time.Sleep(horizon.Settle)
				remove(t, b.store, "web/2026/11/21")
			}}
			s.looks.Add(2)
			r := blobs.New(s, blobs.Options{})
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: limit}
			var got []string
			var sum blobs.Summary
			if limit == 0 {
				got, sum = read(t, r, q)
			} else {
				got, sum = newest(t, r, q)
			}
			if !slices.Equal(got, lines(all)) || !sum.Complete() || fmt.Sprint(sum.Warnings) != "[2026-11-21 of web expired while it was read]" {
				t.Errorf("limit %d, left %v: %d lines, %v %v", limit, left, len(got), sum.Problems, sum.Warnings)
			}
		}
	}
}

// Records of another month, older than the first window, are deleted while that
// window is emitted: the read returns too few and reports the reason.
func TestGoneBeforeSearched(t *testing.T) {
	for _, c := range []struct {
		drop bool
		says string
	}{
		{true, "2026-10-31 of web expired while it was read"},
		{false, "stopped after 30m0s: "},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBuilder(t, 0)
			for n, start := range []time.Time{time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} {
				b.add(time.Hour, []rec{{service: "web", time: start.UnixNano(), origin: origin(uint64(n)), line: line(start.UnixNano(), "info", "web", "one")}})
			}
			lines := 0
			sum, err := blobs.New(b.store, blobs.Options{}).Newest(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 1000, Reverse: true}, func([]byte) error {
				if lines++; lines > 1 {
					return nil
				}
				if c.drop {
					mark(t, horizon.Drop(t.Context(), b.store, "web", day(t, "2026-10-31")))
					time.Sleep(horizon.Settle)
				} else {
					mark(t, horizon.Publish(t.Context(), b.store, "web", day(t, "2026-11-22")))
					time.Sleep(2 * time.Hour) // a slow pager
				}
				remove(t, b.store, "web/2026/10")
				return nil
			})
			said := fmt.Sprint(sum.Warnings, sum.Problems)
			if err != nil || lines != 1 || sum.Complete() != c.drop || !strings.Contains(said, c.says) {
				t.Errorf("%d lines, %v, %s", lines, err, said)
			}
		})
	}
}
