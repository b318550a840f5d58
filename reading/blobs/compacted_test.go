package blobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/reading/blobs"
	"blobtail/storage/storagetest"
)

// rewritten stores an hour of blobs of several periods, and a compacted blob that
// replaces all of them but the last, which came late.
func rewritten(t *testing.T, b *builder) (all []rec, compacted string) {
	t.Helper()
	var ids []blobfmt.BatchID
	var replaced []rec
	for i := range 8 {
		period := []time.Duration{15 * time.Minute, time.Hour, 30 * time.Minute}[i%3]
		var recs []rec
		for k := range 10 {
			at := noon + int64(i)*400e9 + int64(k)*30e9
			recs = append(recs, rec{service: "web", time: at, origin: origin(uint64(i)), index: uint32(k),
				line: line(at, []string{"info", "error"}[k%2], "web", fmt.Sprintf("%d of %d", k, i))})
		}
		_, id := b.add(period, recs)
		all = append(all, recs...)
		if i < 7 {
			ids, replaced = append(ids, id), append(replaced, recs...)
		}
	}
	body, meta, _ := b.encode(replaced, ids...)
	compacted = blobfmt.Name{Service: "web", Period: time.Unix(0, noon).UTC(), Number: 990001}.String()
	b.put(compacted, body, meta.Map())
	slices.SortFunc(all, compareRecs)
	return all, compacted
}

// Lines, counts and the newest records are right for a range that begins or ends
// anywhere in an hour that is half compacted. Replaced blobs are not opened.
func TestCompactedAcrossTheRange(t *testing.T) {
	b := newBuilder(t, 300)
	all, _ := rewritten(t, b)
	r := blobs.New(b.store, blobs.Options{})
	for from := -1; from < 30; from++ {
		for to := from + 1; to < 30; to += 3 {
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: noon + int64(from)*120e9, To: noon + int64(to)*120e9 + 7}}
			var want []string
			errors := int64(0)
			for _, c := range all {
				if c.time >= q.Range.From && c.time < q.Range.To {
					want = append(want, c.line)
					errors += int64(strings.Count(c.line, `"level":"error"`))
				}
			}
			got, sum := read(t, r, q)
			if !slices.Equal(got, want) || sum.Copies > 0 || sum.BlobsOpened > 3 || len(sum.Warnings)+len(sum.Problems) > 0 {
				t.Errorf("%d to %d: %d lines, want %d; %+v", from, to, len(got), len(want), sum)
			}
			plan, err := r.Plan(t.Context(), q)
			mark(t, err)
			n, sum, err := plan.Count(t.Context())
			if err != nil || n != int64(len(want)) || sum.Copies > 0 {
				t.Errorf("%d to %d: counted %d, want %d; %+v, %v", from, to, n, len(want), sum, err)
			}
			buckets, _, err := plan.Histogram(t.Context(), blobs.Buckets{Length: time.Minute})
			mark(t, err)
			total := [2]int64{}
			for _, b := range buckets {
				for _, n := range b.Levels {
					total[0] += n
				}
			}
			q.Filter.Levels, _ = blobs.ParseLevels("error")
			plan, err = r.Plan(t.Context(), q)
			mark(t, err)
			total[1], _, err = plan.Count(t.Context())
			if err != nil || total != [2]int64{int64(len(want)), errors} {
				t.Errorf("%d to %d: %v, want %d and %d; %v", from, to, total, len(want), errors, err)
			}
			q.Filter.Levels, q.Limit = 0, 7
			if found, sum := newest(t, r, q); !slices.Equal(found, want[max(0, len(want)-7):]) || !sum.Complete() {
				t.Errorf("%d to %d: the newest are %s, %+v", from, to, found, sum)
			}
		}
	}
}

// The keys of a plan are those of the blobs that hold each record of the range once.
func TestKeys(t *testing.T) {
	b := newBuilder(t, 300)
	_, compacted := rewritten(t, b)
	late := strings.Replace(compacted, "990001", "000005", 1) // the fifth of the whole hour
	r := blobs.New(b.store, blobs.Options{})
	for _, c := range []struct {
		rng  blobs.Range
		want []string
	}{
		{blobs.Always(), []string{late, compacted}},
		{blobs.Range{From: noon, To: noon + 60e9}, []string{compacted}},
		{blobs.Range{From: noon + 2800e9, To: blobs.Newest}, []string{late}},
		{blobs.Range{From: noon + 7200e9, To: blobs.Newest}, nil},
	} {
		plan, err := r.Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: c.rng})
		mark(t, err)
		keys, sum := plan.Keys()
		if !slices.Equal(keys, c.want) || !sum.Complete() {
			t.Errorf("%v: %q, want %q; %+v", c.rng, keys, c.want, sum)
		}
	}
}

// A compacted blob with a damaged index replaces nothing. All blobs are read,
// possible duplicates are reported, and no line is missing. When the replaced blobs
// are deleted, its lines are found without the index. An index that fails only at the
// first GET does no harm.
func TestCompactedDamaged(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced are gone ", gone), func(t *testing.T) {
			b := newBuilder(t, 300)
			all, key := rewritten(t, b)
			object, err := b.store.Stat(t.Context(), key)
			mark(t, err)
			body := storagetest.Body(t, b.store, key)
			body[len(body)-40] ^= 1
			remove(t, b.store, key)
			b.put(key, body, object.Metadata)
			if gone {
				for o, err := range b.store.List(t.Context(), "web/", "") {
					mark(t, err)
					meta, err := blobfmt.ParseMeta(o.Metadata)
					if mark(t, err); o.Key != key && meta.Last < noon+7*400e9 {
						mark(t, b.store.Delete(t.Context(), o))
					}
				}
			}
			r := blobs.New(b.store, blobs.Options{})
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
			got, sum := read(t, r, q)
			if once := slices.Compact(slices.Clone(got)); !slices.Equal(once, lines(all)) {
				t.Errorf("%d lines, %d different, want %d", len(got), len(once), len(all))
			}
			if len(got) > len(all) && sum.Complete() || gone && !sum.Complete() || len(sum.Warnings) == 0 {
				t.Errorf("%d lines, want %d: %v %v", len(got), len(all), sum.Problems, sum.Warnings)
			}
			plan, err := r.Plan(t.Context(), q)
			mark(t, err)
			if n, sum, err := plan.Count(t.Context()); err != nil || n < int64(len(all)) || n > int64(len(all)) && sum.Complete() {
				t.Errorf("counted %d, want %d; %v, %v", n, len(all), sum.Problems, err)
			}
		})
	}
	b := newBuilder(t, 300)
	all, key := rewritten(t, b)
	r := blobs.New(failing(b.store, 1, storagetest.Get, key, storagetest.ErrFault), blobs.Options{})
	got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if !slices.Equal(got, lines(all)) || !sum.Complete() || sum.Copies != 70 || len(sum.Warnings) != 1 {
		t.Errorf("%d lines, %+v", len(got), sum)
	}
}
