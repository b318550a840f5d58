package blobs_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// A Scout that looked before a service, an hour or a day came hides nothing of it.
func TestScoutIsOnlyAGuess(t *testing.T) {
	at := func(service string, since time.Duration) []rec {
		recs := some(service, 10, uint64(since))
		for i := range recs {
			recs[i].time = noon + int64(since) + int64(i)*1e9
			recs[i].line = line(recs[i].time, "info", service, "text")
		}
		return recs
	}
	later := map[string][]rec{
		"nothing":          nil,
		"a service":        at("next", time.Hour),
		"a future year":    at("web", 400*24*time.Hour),
		"the next month":   at("web", 10*24*time.Hour),
		"the next day":     at("web", 24*time.Hour),
		"the next hour":    at("web", time.Hour),
		"the hour before":  at("web", -time.Hour),
		"a day before":     at("web", -24*time.Hour),
		"a year before":    at("web", -400*24*time.Hour),
		"the same hour":    at("web", 30*time.Minute),
		"another service":  at("api", time.Hour),
		"before all of it": at("api", -time.Hour),
	}
	for name, recs := range later {
		for _, limit := range []int{0, 5, 25, 1000} {
			synctest.Test(t, func(t *testing.T) {
				b := newBuilder(t, 0)
				all := slices.Concat(at("web", 0), at("api", 0), recs)
				b.add(time.Hour, all[:10])
				b.add(time.Hour, all[10:20])
				s := &counted{BlobStore: b.store}
				r := blobs.New(s, blobs.Options{Now: func() time.Time { return time.Unix(0, noon+600e9) }})
				q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Limit: limit, Ahead: true}
				q.Scout = r.Scout(t.Context(), q, nil)
				defer q.Scout.Close()
				synctest.Wait() // it has looked at the store
				if len(recs) > 0 {
					b.add(time.Hour, recs)
				}
				scouted := s.dirs.Load()
				s.dirs.Store(0)
				got, sum := newest(t, r, q)
				slices.SortFunc(all, compareRecs)
				want := lines(all)
				if limit > 0 {
					want = want[max(0, len(want)-limit):]
				}
				if !slices.Equal(got, want) || !sum.Complete() {
					t.Errorf("%s, limit %d: %d lines, %v\n%swant %d\n%s", name, limit, len(got), sum.Problems, strings.Join(got, ""), len(want), strings.Join(want, ""))
				}
				// The services, and two listings of each for the hour.
				if want := int64(1 + 4*min(limit, 1)); scouted != want || name == "nothing" && limit < 20 && s.dirs.Load() > 1 {
					t.Errorf("%s, limit %d: %d Dirs ahead, want %d; %d of the read", name, limit, scouted, want, s.dirs.Load())
				}
			})
		}
	}
	// A Scout that is closed, or fails, finds nothing, and the read does without.
	b := newBuilder(t, 0)
	b.add(time.Hour, at("web", 0))
	away := failing(b.store, 1, storagetest.Dirs, "", storagetest.ErrFault)
	for _, store := range []storage.BlobStore{b.store, away} {
		for _, limit := range []int{0, 5} {
			r := blobs.New(store, blobs.Options{})
			q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Limit: limit}
			q.Scout = r.Scout(t.Context(), q, nil)
			q.Scout.Close()
			if got, sum := newest(t, r, q); len(got) != []int{10, 5}[min(limit, 1)] || !sum.Complete() {
				t.Errorf("limit %d: %d lines, %v", limit, len(got), sum.Problems)
			}
		}
	}
}

// A Scout begins with the blobs that are still there when the read lists them, and the read
// requests nothing twice. If one of them has gone, the read begins anew.
func TestScoutBegins(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(t *testing.T, b *builder)
		want      int   // records
		requests  int64 // in all
	}{
		{"nothing happens", func(*testing.T, *builder) {}, 60, 6},
		{"a blob comes", func(_ *testing.T, b *builder) { b.add(60*60e9, minutesOf("web", 6, 10)) }, 70, 7},
		{"a day expires", func(t *testing.T, b *builder) {
			mark(t, horizon.Publish(t.Context(), b.store, "web", day(t, "2026-11-23")))
		}, 30, 7},
		{"a service comes", func(_ *testing.T, b *builder) { b.add(60*60e9, minutesOf("new", 3, 10)) }, 70, 7},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBuilder(t, 0)
			for hour := range 6 { // from 21:00 of the day before on
				b.add(60*60e9, minutesOf("web", hour, 10))
			}
			s := &counted{BlobStore: b.store}
			r := blobs.New(s, blobs.Options{Distant: true})
			q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Ahead: true}
			q.Scout = r.Scout(t.Context(), q, nil)
			defer q.Scout.Close()
			synctest.Wait()
			begun := s.gets.Load()
			c.meanwhile(t, b)
			got, sum := newest(t, r, q)
			if len(got) != c.want || !sum.Complete() || len(sum.Warnings) > 0 {
				t.Errorf("%s: %d lines, %v, %v", c.name, len(got), sum.Problems, sum.Warnings)
			}
			if begun < 4 {
				t.Errorf("%s: the Scout requested %d blobs", c.name, begun)
			}
			if n := s.gets.Load(); n != c.requests || n != sum.Requests {
				t.Errorf("%s: %d requests, %d of them by the Scout, want %d; %+v", c.name, n, begun, c.requests, sum)
			}
		})
	}
}

// minutesOf are n records of an hour of a service, counted from 21:00 of 2026-11-22.
func minutesOf(service string, hour, n int) []rec {
	recs := some(service, n, uint64(100+hour))
	for i := range recs {
		recs[i].time = time.Date(2026, 11, 22, 21+hour, i, 0, 0, time.UTC).UnixNano()
		recs[i].line = line(recs[i].time, "info", service, "text")
	}
	return recs
}
