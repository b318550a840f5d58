package blobs_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// tiered is a store with tiers, by prefixes of keys.
type tiered struct {
	storage.BlobStore
	tiers map[string]string
}

func (s *tiered) tier(key string) string {
	for prefix, tier := range s.tiers {
		if strings.HasPrefix(key, prefix) {
			return tier
		}
	}
	return ""
}

func (s *tiered) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range s.BlobStore.List(ctx, prefix, after) {
			b.Tier = s.tier(b.Key)
			if !yield(b, err) {
				return
			}
		}
	}
}

func (s *tiered) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if s.tier(key) == storage.Archive {
		return nil, storage.AtKey("get", key, errors.New("409 BlobArchived"))
	}
	return s.BlobStore.Get(ctx, key, off, n)
}

// A read of much from cooler tiers says so once, before its first record unless it has a limit. A
// read of little, or of hot blobs, says nothing.
func TestCoolTiers(t *testing.T) {
	store := &tiered{BlobStore: week(t).BlobStore, tiers: map[string]string{"web/2026/11/16": "cold", "web/2026/11/17": "cool", "web/2026/11/18": "cool"}}
	size := map[string]int64{}
	for _, b := range storagetest.Objects(t, store, "web/") {
		size[b.Tier] += b.Size
	}
	at := func(day string) int64 {
		start, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		return start.UnixNano()
	}
	rare, err := where.Parse(nil, `n == 2`, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		query blobs.Query
		much  int64
		told  int
		bytes map[string]int64 // nil: not compared
	}{
		{"all of it", blobs.Query{}, size["cool"] + size["cold"], 1, map[string]int64{"cool": size["cool"], "cold": size["cold"]}},
		{"not much", blobs.Query{}, size["cool"] + size["cold"] + 1, 0, nil},
		{"hot alone", blobs.Query{Range: blobs.Range{From: at("2026-11-19"), To: blobs.Newest}}, 1, 0, nil},
		{"a day", blobs.Query{Range: blobs.Range{From: at("2026-11-16"), To: at("2026-11-17")}}, size["cold"], 1, map[string]int64{"cold": size["cold"]}},
		{"the newest few", blobs.Query{Limit: 10}, 1, 0, nil},
		{"the oldest few", blobs.Query{First: 10}, 1, 1, nil},
		{"the newest that there are not", blobs.Query{Limit: 1, Filter: blobs.Filter{Where: rare}}, 1000, 1, nil},
	} {
		for _, asked := range []bool{true, false} {
			emitted := 0
			var told []*blobs.CoolError
			o := blobs.Options{MuchCool: c.much}
			if asked {
				o.Cool = func(e *blobs.CoolError) {
					if told = append(told, e); !e.Fetched && emitted > 0 {
						t.Errorf("%s: told after %d records", c.name, emitted)
					}
				}
			}
			q := c.query
			q.Services = []string{"web"}
			if q.Range == (blobs.Range{}) {
				q.Range = blobs.Always()
			}
			p, err := blobs.New(store, o).Plan(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			sum, err := p.Read(t.Context(), func([]byte) error { emitted++; return nil })
			if err != nil || len(sum.Problems) > 0 || emitted == 0 && q.Filter.Where == nil {
				t.Fatalf("%s: %v, %v, %d", c.name, err, sum.Problems, emitted)
			}
			for _, w := range sum.Warnings {
				if e, ok := errors.AsType[*blobs.CoolError](w); ok && !asked {
					told = append(told, e)
				} else {
					t.Errorf("%s: %v", c.name, w)
				}
			}
			if len(told) != c.told {
				t.Fatalf("%s: told %d times, not %d", c.name, len(told), c.told)
			}
			for tier, n := range c.bytes {
				if told[0].Bytes[tier] != n || told[0].Fetched {
					t.Errorf("%s: %+v, want %v", c.name, told[0], c.bytes)
				}
			}
			if c.told > 0 && !strings.Contains(told[0].Error(), "GB of the tier co") {
				t.Error(told[0])
			}
		}
	}
}

// Blobs of the tier archive are one problem, which says how to bring them back. The others are
// read.
func TestArchived(t *testing.T) {
	store := &tiered{BlobStore: week(t).BlobStore, tiers: map[string]string{"web/2026/11/16": storage.Archive}}
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	p, err := blobs.New(store, blobs.Options{}).Plan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	sum, err := p.Read(t.Context(), func(lines []byte) error { read += strings.Count(string(lines), "\n"); return nil })
	if err != nil || read != 6*24*60 || len(sum.Problems) != 1 || sum.Complete() {
		t.Fatalf("%d records, %v, %v", read, sum.Problems, err)
	}
	for _, want := range []string{"web/2026/11/16/0000/000001.log: it and 23 other blobs of this read: ", "archive tier", "az storage blob set-tier --tier Hot"} {
		if !strings.Contains(sum.Problems[0].Error(), want) {
			t.Errorf("%v lacks %q", sum.Problems[0], want)
		}
	}
	if !errors.Is(sum.Problems[0], storage.ErrArchived) {
		t.Error(sum.Problems[0])
	}
	// Metadata alone give the number.
	if n, sum, err := p.Count(t.Context()); err != nil || n != 7*24*60 || len(sum.Problems) != 0 {
		t.Errorf("count: %d, %v, %v", n, sum.Problems, err)
	}
}

// Reads that are no pass, or several, say it once too: counts that indexes cannot give, checks of
// all blobs, and spans that are read one after another. Counts by indexes say nothing.
func TestCoolTiersOfOtherReads(t *testing.T) {
	store := &tiered{BlobStore: week(t).BlobStore, tiers: map[string]string{"web/2026/11/": "cool"}}
	all := int64(0)
	for _, b := range storagetest.Objects(t, store, "web/") {
		all += b.Size
	}
	rare, err := where.Parse(nil, `n == 2`, false)
	if err != nil {
		t.Fatal(err)
	}
	hist := func(length time.Duration) func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		return func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(t.Context(), q)
			if err != nil {
				return blobs.Summary{}, err
			}
			_, sum, err := p.Histogram(t.Context(), blobs.Buckets{Length: length})
			return sum, err
		}
	}
	for _, c := range []struct {
		name    string
		read    func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error)
		much    int64
		told    int
		fetched bool
	}{
		{"by seconds", hist(7 * time.Second), all, 1, false},
		{"by hours", hist(time.Hour), 1, 0, false},
		{"by minutes", hist(5 * time.Minute), 2 * all, 0, false}, // ends of small blobs are read whole,
		{"indexes", hist(5 * time.Minute), 1000, 1, true},
		{"a check", func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
			_, err := r.Verify(t.Context(), q, blobs.VerifyOptions{}, func(f blobs.Finding) { t.Error(f.Key, f.Err) })
			return blobs.Summary{}, err
		}, all, 1, false},
		{"the oldest that there are not", func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
			q.First, q.Filter.Where, q.Range = 5, rare, blobs.Range{From: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC).UnixNano(), To: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).UnixNano()}
			return r.Oldest(t.Context(), q, func([]byte) error { return nil })
		}, all * 3 / 4, 1, true},
		{"two of one", func(r *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
			q = r.Together(q)
			for range 2 {
				p, err := r.Plan(t.Context(), q)
				if err != nil {
					return blobs.Summary{}, err
				}
				if _, err = p.Read(t.Context(), func([]byte) error { return nil }); err != nil {
					return blobs.Summary{}, err
				}
			}
			return blobs.Summary{}, nil
		}, all, 1, false},
	} {
		var told []*blobs.CoolError
		r := blobs.New(store, blobs.Options{MuchCool: c.much, Cool: func(e *blobs.CoolError) { told = append(told, e) }})
		if _, err := c.read(r, blobs.Query{Services: []string{"web"}, Range: blobs.Always()}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(told) != c.told || c.told > 0 && told[0].Fetched != c.fetched {
			t.Errorf("%s: told %v", c.name, told)
		}
	}
}
