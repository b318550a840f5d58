package compact_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// change replaces the body and the metadata of a blob.
func (w *world) change(key string, f func(body []byte, meta map[string]string) []byte) {
	w.t.Helper()
	storagetest.Edit(w.t, w.store, key, func(b *storage.Blob, body []byte) []byte {
		b.Metadata = maps.Clone(b.Metadata)
		return f(body, b.Metadata)
	})
}

func blockDamage(body []byte, _ map[string]string) []byte {
	body[40] ^= 0x20
	return body
}

func indexDamage(body []byte, _ map[string]string) []byte {
	body[len(body)-40] ^= 0x20
	return body
}

// partial is a reader's result for a damaged store, with its warnings.
func (w *world) partial() string {
	w.t.Helper()
	plan, err := blobs.New(w.store, blobs.Options{Workers: 1}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	w.must(err)
	var out strings.Builder
	sum, err := plan.Read(context.Background(), func(lines []byte) error { out.Write(lines); return nil })
	w.must(err)
	for _, p := range sum.Problems {
		out.WriteString(p.Error() + "\n")
	}
	return out.String()
}

const (
	second = "web/2026/11/20/1500/000002.log"
	first  = "web/2026/11/20/1500/990001.log"
)

// A blob that is damaged before compaction stays as it is and is reported; the others
// are compacted.
func TestDamagedSource(t *testing.T) {
	for name, damage := range map[string]func(body []byte, meta map[string]string) []byte{
		"a block":             blockDamage,
		"the index":           indexDamage,
		"cut short":           func(body []byte, _ map[string]string) []byte { return body[:len(body)-100] },
		"damaged metadata":    func(body []byte, meta map[string]string) []byte { meta["records"] = "x"; return body },
		"metadata of another": func(body []byte, meta map[string]string) []byte { meta["crc"] = "00000000"; return body },
		"a newer format":      func(body []byte, meta map[string]string) []byte { meta["format"] = "3"; return body },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.minutes(5)
			w.change(second, damage)
			before := w.partial()
			for range 2 {
				got, err := w.compact(t.Context(), w.store, compact.Options{})
				if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), second) {
					t.Errorf("run: %+v, %v", got, err)
				}
				w.now = w.now.Add(time.Hour)
			}
			if keys := w.keys(); !slices.Equal(keys, []string{second, first}) {
				t.Errorf("the store has %v", keys)
			}
			if after := w.partial(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// If a replacing blob is damaged or forged when the replaced blobs are due, those
// stay.
func TestDamagedReplacement(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		damage func(body []byte, meta map[string]string) []byte
		stay   int // of five
	}{
		{"a block of the compacted blob", first, blockDamage, 5},
		{"its index", first, indexDamage, 5},
		{"a block of one that it replaces", second, blockDamage, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.minutes(5)
			w.run(compact.Options{})
			w.change(c.key, c.damage)
			before := w.partial()
			w.now = w.now.Add(2 * time.Hour)
			got, err := w.compact(t.Context(), w.store, compact.Options{})
			if err != nil || len(got.Problems) != 1 || got.Deleted != 5-c.stay {
				t.Errorf("run: %+v, %v", got, err)
			}
			if n := len(w.keys()); n != c.stay+1 {
				t.Errorf("the store has %v", w.keys())
			}
			if after := w.partial(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// A blob that names another as replaced, but does not have all its records, is no
// reason to delete the other.
func TestForgedReplacement(t *testing.T) {
	w := newWorld(t)
	w.put(1, hour, request(1, 10, 10*time.Minute, time.Minute))
	w.putAs(77, 990001, hour, request(2, 50, 0, time.Hour), batch(1))
	w.now = w.now.Add(2 * time.Hour)
	got, err := w.compact(t.Context(), w.store, compact.Options{})
	if err != nil || got.Deleted != 0 || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), "is not there") {
		t.Errorf("run: %+v, %v", got, err)
	}
}

// If blobs contradict each other, their hour is left alone.
func TestContradictions(t *testing.T) {
	for name, make := range map[string]func(w *world){
		"one id, two contents": func(w *world) {
			w.putAs(1, 9, hour, request(4000, 3, 0, time.Hour))
		},
		"one identity, two records": func(w *world) {
			recs := request(1001, 10, time.Minute, time.Minute)
			recs[3].line = line("web", recs[3].time, "info", "another one")
			w.put(9, hour, recs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.minutes(5)
			make(w)
			before := w.dump()
			got, err := w.compact(t.Context(), w.store, compact.Options{})
			if err != nil || len(got.Problems) != 1 || w.dump() != before {
				t.Errorf("run: %+v, %v", got, err)
			}
		})
	}
}

// Two compactors made blobs of nearly the same records; a later run joins the two.
func TestOverlap(t *testing.T) {
	w := newWorld(t)
	w.minutes(3)
	all := slices.Concat(request(1000, 10, 0, time.Minute), request(1001, 10, time.Minute, time.Minute))
	w.putAs(80, 990001, hour, all, batch(1), batch(2))
	w.putAs(81, 990002, hour, append(all, request(1002, 10, 2*time.Minute, time.Minute)...), batch(1), batch(2), batch(3))
	before := w.answer()
	for range 3 {
		w.run(compact.Options{Target: 3 << 10}) // so that both are full
		if w.answer() != before {
			t.Fatal("another answer")
		}
		w.now = w.now.Add(time.Hour)
	}
	if keys := w.keys(); !slices.Equal(keys, []string{"web/2026/11/20/1500/990003.log"}) {
		t.Errorf("the store has %v", keys)
	}
}
