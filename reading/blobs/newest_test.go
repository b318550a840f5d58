package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// counted counts the requests that look for blobs.
type counted struct {
	storage.BlobStore
	dirs, lists, listed atomic.Int64
	gets                atomic.Int64
	marks               atomic.Int64 // requests for horizons
	accounts            atomic.Int64 // lists of the parts of days
}

func (c *counted) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c.dirs.Add(1)
	return c.BlobStore.Dirs(ctx, prefix)
}

func (c *counted) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	c.gets.Add(1)
	return c.BlobStore.Get(ctx, key, off, n)
}

func (c *counted) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	if isMark(prefix) {
		c.marks.Add(1)
		return c.BlobStore.List(ctx, prefix, after)
	}
	if isAccount(prefix) {
		c.accounts.Add(1)
		return c.BlobStore.List(ctx, prefix, after)
	}
	c.lists.Add(1)
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range c.BlobStore.List(ctx, prefix, after) {
			c.listed.Add(1)
			if !yield(b, err) {
				return
			}
		}
	}
}

// isMark reports whether a listing is of horizons.
func isMark(prefix string) bool {
	return strings.HasPrefix(prefix, "_horizon/") || strings.HasPrefix(prefix, "_dropped/")
}

// isAccount reports whether a listing is of the parts of a day. A near store has one for each day
// that a read touches in part.
func isAccount(prefix string) bool { return strings.HasSuffix(prefix, "/_closed.") }

func newest(t *testing.T, r *blobs.Reader, q blobs.Query) ([]string, blobs.Summary) {
	t.Helper()
	var out strings.Builder
	sum, err := r.Newest(t.Context(), q, func(lines []byte) error { out.Write(lines); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(out.String())), sum
}

// The newest records of a week are found by few requests, without listing the week.
func TestNewestRequests(t *testing.T) {
	start := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	store := week(t).BlobStore
	end := start.Add(7 * 24 * time.Hour)
	var ahead []rec // an hour of unflushed records, one each second
	for i := range 3600 {
		at := end.Add(time.Duration(i) * time.Second).UnixNano()
		ahead = append(ahead, rec{service: "web", time: at, origin: origin(1000), index: uint32(i), line: line(at, "info", "web", "new")})
	}
	live := unflushed(t, entries(ahead)...)
	few := unflushed(t, entries(ahead[:10])...)
	errorsOnly, _ := blobs.ParseLevels("error")
	// The guess that today has records costs a request if it has none.
	for _, c := range []struct {
		name                string
		q                   blobs.Query
		now                 time.Duration // since the end of the records
		records             int
		dirs, lists, listed int64 // at most
	}{
		{"some", blobs.Query{Limit: 50, Range: blobs.Always()}, -time.Minute, 50, 2, 1, 1},
		{"some of an hour that has just begun", blobs.Query{Limit: 50, Range: blobs.Always()}, -55 * time.Minute, 50, 2, 1, 2},
		{"some of yesterday", blobs.Query{Limit: 50, Range: blobs.Always()}, time.Minute, 50, 3, 1, 1},
		{"some of a past month", blobs.Query{Limit: 50, Range: blobs.Always()}, 30 * 24 * time.Hour, 50, 2 + 4, 1, 1},
		{"some by a clock that is late", blobs.Query{Limit: 50, Range: blobs.Always()}, -30 * time.Hour, 50, 3, 1, 1},
		{"an hour and more", blobs.Query{Limit: 100, Range: blobs.Always()}, -time.Minute, 100, 4, 2, 4},
		{"an hour and more of yesterday", blobs.Query{Limit: 100, Range: blobs.Always()}, 0, 100, 5, 2, 4},
		{"a day", blobs.Query{Limit: 1440, Range: blobs.Always()}, -time.Minute, 1440, 4, 5, 35},
		{"everything", blobs.Query{Limit: 1e6, Range: blobs.Always()}, -time.Minute, 7 * 24 * 60, 7, 8, 7*24 + 7},
		{"until", blobs.Query{Limit: 50, Range: blobs.Range{From: blobs.Oldest, To: start.Add(50 * time.Hour).UnixNano()}}, 0, 50, 2, 1, 2},
		{"nothing in the range", blobs.Query{Limit: 50, Range: blobs.Range{From: end.UnixNano(), To: blobs.Newest}}, 0, 0, 5, 1, 0},
		{"enough is unflushed", blobs.Query{Limit: 100, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{live}}, 0, 100, 0, 1, 0},
		{"some is unflushed", blobs.Query{Limit: 50, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{few}}, 0, 50, 4, 2, 2},
		{"no such level", blobs.Query{Limit: 50, Range: blobs.Always(), Filter: blobs.Filter{Levels: errorsOnly}}, -time.Minute, 0, 7, 8, 7*24 + 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &counted{BlobStore: store}
			c.q.Services = []string{"web"}
			r := blobs.New(s, blobs.Options{Now: func() time.Time { return end.Add(c.now) }})
			// The walk cannot use the listings of a guess that was begun early.
			for _, scouted := range []int64{0, 3} {
				s.dirs.Store(0)
				s.lists.Store(0)
				s.listed.Store(0)
				s.marks.Store(0)
				if c.q.Scout = nil; scouted > 0 {
					c.q.Scout = r.Scout(t.Context(), c.q, nil)
					defer c.q.Scout.Close()
				}
				got, sum := newest(t, r, c.q)
				if len(got) != c.records || !sum.Complete() || c.records == 0 && sum.BlobsOpened > 0 {
					t.Errorf("%d records, %+v", len(got), sum)
				}
				if d, l, n := s.dirs.Load(), s.lists.Load(), s.listed.Load(); d > c.dirs+scouted || l > c.lists || n > c.listed {
					t.Errorf("scouted %d: %d Dirs, %d Lists of %d blobs; want at most %d, %d of %d", scouted, d, l, n, c.dirs+scouted, c.lists, c.listed)
				}
				if n := s.accounts.Swap(0); n > 4 {
					t.Errorf("%d Lists of accounts", n)
				}
				// The horizons are read concurrently with the first request, and with each read
				// of listed blobs.
				if m := s.marks.Load(); m > 4+2*s.lists.Load() {
					t.Errorf("%d Lists of what has expired", m)
				}
			}
		})
	}
}

// Of many services only those with records in the window are listed. The roots of closed days are, if
// a service has nothing on a day that the window touches.
func TestNewestOfMany(t *testing.T) {
	b := newBuilder(t, 0)
	for s := range 40 {
		recs := some(fmt.Sprintf("service-%02d", s), 10, uint64(s))
		for i := range recs {
			recs[i].time -= int64(s/2) * 3600e9 // two services in each hour
			recs[i].line = line(recs[i].time, "info", recs[i].service, "text")
		}
		b.add(time.Hour, recs)
	}
	s := &counted{BlobStore: b.store}
	r := blobs.New(s, blobs.Options{})
	for _, c := range []struct {
		limit       int
		dirs, lists int64
	}{{15, 1 + 4*40, 3}, {50, 1 + 4*40, 7}, {1000, 1 + 7*40, 40}} {
		s.dirs.Store(0)
		s.lists.Store(0)
		got, sum := newest(t, r, blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Limit: c.limit})
		if len(got) != min(c.limit, 400) || !sum.Complete() {
			t.Errorf("%d: %d lines, %+v", c.limit, len(got), sum)
		}
		if d, l := s.dirs.Load(), s.lists.Load(); d > c.dirs || l > c.lists {
			t.Errorf("%d: %d Dirs, %d Lists; want at most %d, %d", c.limit, d, l, c.dirs, c.lists)
		}
	}
}

// A record at the very end of an hour is in that hour's window.
func TestNewestEndOfHour(t *testing.T) {
	b := newBuilder(t, 0)
	var all, stored []rec
	for i := range 20 {
		for j, at := range []int64{noon + int64(i)*3600e9, noon + int64(i+1)*3600e9 - 1} {
			r := rec{service: "web", time: at, origin: origin(uint64(i)), index: uint32(j), line: line(at, "info", "web", "text")}
			all = append(all, r)
			if i%3 > 0 {
				stored = append(stored, r)
			}
		}
		if i%3 > 0 {
			b.add(time.Hour, stored[len(stored)-2:])
		}
	}
	l := unflushed(t, entries(all[:30])...)
	for limit := 1; limit <= 40; limit++ {
		got, _ := newest(t, blobs.New(b.store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: limit, Unflushed: []*blobs.Unflushed{l}})
		want := lines(append(slices.Clone(all[:30]), stored[len(stored)-6:]...))
		if want = want[max(0, len(want)-limit):]; !slices.Equal(got, want) {
			t.Fatalf("%d:\n%swant\n%s", limit, strings.Join(got, ""), strings.Join(want, ""))
		}
	}
}

// Each foreign object in a window is reported once, and so is a blob that cannot be
// read. A missing service is reported as missing.
func TestNewestTells(t *testing.T) {
	b := newBuilder(t, 0)
	for h := range 40 {
		recs := some("web", 3, uint64(h))
		for i := range recs {
			recs[i].time += int64(h) * 3600e9
			recs[i].line = line(recs[i].time, "info", "web", "text")
		}
		b.add(time.Hour, recs)
	}
	b.put("web/2026/11/28/1000/notes.txt", []byte("x"), nil)
	b.put("web/2026/11/29/0200/notes.txt", []byte("x"), nil)
	b.put("web/zzz", []byte("x"), nil)
	b.put("odd/readme", []byte("x"), nil)
	b.put("web/2026/11/28/1100/000007.log", []byte("no blob"), nil)
	now := time.Unix(0, noon)
	r := blobs.New(b.store, blobs.Options{Now: func() time.Time { return now }})
	for _, limit := range []int{100, 1000} {
		for _, warnings := range []int{2, 1} {
			got, sum := newest(t, r, blobs.Query{Services: []string{"web", "odd"}, Range: blobs.Always(), Limit: limit})
			// Without a guess, hours without a period are not listed as long as there is a
			// period elsewhere.
			if len(got) != min(limit, 120) || len(sum.Problems) != 2 || len(sum.Warnings) != warnings || !strings.Contains(sum.Warnings[warnings-1].Error(), "web/: 3 objects") {
				t.Errorf("%d lines, %+v", len(got), sum)
			}
			now = now.AddDate(1, 0, 0)
		}
		now = time.Unix(0, noon)
	}
	if got, sum := newest(t, r, blobs.Query{Services: []string{"odd"}, Range: blobs.Always(), Limit: 5}); len(got) > 0 || !strings.Contains(fmt.Sprint(sum.Warnings), "odd/: 1 object is") {
		t.Errorf("%d lines, %+v", len(got), sum)
	}
	for _, name := range []string{"none", "n*", "../x"} {
		var none *blobs.NoServiceError
		_, err := r.Newest(t.Context(), blobs.Query{Services: []string{name}, Range: blobs.Always(), Limit: 5}, func([]byte) error { return nil })
		if !errors.As(err, &none) || none.Name != name {
			t.Errorf("%s: %v", name, err)
		}
		// Next to another one nothing is missing, and a name is worth a word.
		got, sum := newest(t, r, blobs.Query{Services: []string{"web", name}, Range: blobs.Always(), Limit: 5})
		told := len(sum.Absent) == 1 && sum.Absent[0].Name == name
		if len(got) != 5 || strings.Contains(fmt.Sprint(sum.Problems), name) || told != (name != "n*") {
			t.Errorf("%s: %d lines, %v, %v", name, len(got), sum.Problems, sum.Absent)
		}
	}
}

// Before the first blob there is no store. Unflushed records are read, with a
// warning, since a disk may be missing.
func TestUnflushedWithoutStore(t *testing.T) {
	recs := some("web", 10, 1)
	store := failing(mem.New(mem.Options{}), -1, storagetest.Dirs, "", storage.ErrNotExist)
	r := blobs.New(failing(store, -1, storagetest.List, "", storage.ErrNotExist), blobs.Options{})
	for _, pattern := range []string{"web", "*"} {
		q := blobs.Query{Services: []string{pattern}, Range: blobs.Always()}
		if _, err := r.Plan(t.Context(), q); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("nothing unflushed: %v", err)
		}
		q.Unflushed = []*blobs.Unflushed{unflushed(t, entries(recs)...)}
		got, sum := read(t, r, q)
		if !slices.Equal(got, lines(recs)) || len(sum.Warnings) != 1 || !sum.Complete() {
			t.Errorf("%d lines, %+v", len(got), sum)
		}
		for _, limit := range []int{5, 10, 20} {
			q.Limit = limit
			got, sum := newest(t, r, q)
			if len(got) != min(10, limit) || len(sum.Warnings) != 1 || !sum.Complete() {
				t.Errorf("newest %d: %d lines, %+v", limit, len(got), sum)
			}
		}
	}
}

// Of very many services the present hour is listed first, and a walk follows only if that has too
// few records.
func TestNewestOfVeryMany(t *testing.T) {
	testkit.FullOnly(t, "it counts requests")
	b := newBuilder(t, 0)
	const services = 1100
	for s := range services {
		recs := some(fmt.Sprintf("service-%04d", s), 1, uint64(s))
		b.add(time.Hour, recs)
	}
	s := &counted{BlobStore: b.store}
	for _, c := range []struct {
		name  string
		later time.Duration
		dirs  int64
	}{{"this hour", 40 * time.Minute, 1}, {"an hour that has just ended", 65 * time.Minute, 1}, {"yesterday", 24 * time.Hour, 1 + 4*services}} {
		s.dirs.Store(0)
		r := blobs.New(s, blobs.Options{Now: func() time.Time { return time.Unix(0, noon).Add(c.later) }})
		got, sum := newest(t, r, blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Limit: 5})
		if len(got) != 5 || !sum.Complete() || !sum.More || s.dirs.Load() > c.dirs {
			t.Errorf("%s: %d lines, %d Dirs of at most %d, %+v", c.name, len(got), s.dirs.Load(), c.dirs, sum)
		}
	}
}
