package catalog_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func meta(batch byte, first, last time.Time, records int64, compacted int) blobfmt.Meta {
	m := blobfmt.Meta{Batch: blobfmt.BatchID{batch}, First: first.UnixNano(), Last: last.UnixNano(), Records: records, RawBytes: records * 50, Compacted: compacted}
	m.Levels[record.Info] = records
	return m
}

func put(t rapid.TB, s storage.BlobStore, key string, metadata map[string]string) {
	t.Helper()
	storagetest.Put(t, s, key, nil, storage.Attrs{Metadata: metadata})
}

// blob stores an object that looks like a blob of a period.
func blob(t rapid.TB, s storage.BlobStore, service string, period time.Time, number int) string {
	t.Helper()
	key := blobfmt.Name{Service: service, Period: period, Number: number}.String()
	put(t, s, key, meta(byte(number), period, period, 1, 0).Map())
	return key
}

func keys(t rapid.TB, entries iter.Seq2[catalog.Entry, error]) (out []string) {
	t.Helper()
	for e, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Key)
	}
	return out
}

// Each object is judged by its name and its metadata, and none is left out.
func TestStates(t *testing.T) {
	s := mem.New(mem.Options{})
	sound := meta(1, noon, noon.Add(time.Minute), 10, 0)
	newer := sound.Map()
	newer["format"] = "3"
	for name, metadata := range map[string]map[string]string{
		"1200/000001.log": sound.Map(),
		"1200/000002.log": {"format": "1", "batch": "?"},
		"1200/000003.log": newer,
		"1200/000004.log": nil,
		"1200/000005.log": nil,
		"1200/000006.log": nil,
		"1200/notes.txt":  sound.Map(),
	} {
		put(t, s, "web/2026/11/20/"+name, metadata)
	}
	away := errors.New("away")
	asked := storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
		switch {
		case op == storagetest.Stat && strings.HasSuffix(key, "5.log"):
			return storagetest.Fault{Before: storage.ErrDamaged}
		case op == storagetest.Stat && strings.HasSuffix(key, "6.log"):
			return storagetest.Fault{Before: away}
		}
		return storagetest.Fault{}
	})
	want := []catalog.State{catalog.Sound, catalog.Damaged, catalog.Newer, catalog.Foreign, catalog.Damaged, catalog.Unknown, catalog.Foreign}
	n := 0
	for e, err := range catalog.Blobs(t.Context(), asked, "web", catalog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.State != want[n] || (e.Err == nil) != (e.State == catalog.Sound) || e.Named() != (n < 6) {
			t.Errorf("%s: %+v, want state %d", e.Key, e, want[n])
		}
		switch {
		case e.State == catalog.Sound && e.Meta != sound:
			t.Errorf("%+v", e.Meta)
		case e.Named() && e.State != catalog.Sound && (e.Meta.First != noon.UnixNano() || e.Meta.Last != noon.Add(time.Hour-1).UnixNano()):
			t.Errorf("%s: bounds %d to %d", e.Key, e.Meta.First, e.Meta.Last)
		case n == 4 && !errors.Is(e.Err, storage.ErrDamaged), n == 5 && !errors.Is(e.Err, away):
			t.Errorf("%s: %v", e.Key, e.Err)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d entries", n)
	}
}

// A listing has exactly the blobs that begin in its range. Days and walks find the same
// ones, each in its direction.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New(mem.Options{})
		at := func(label string) time.Time {
			far := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour}).Draw(rt, label)
			return noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(rt, label)) * far)
		}
		stored := map[string]time.Time{}
		for range rapid.IntRange(0, 12).Draw(rt, "blobs") {
			period := at("period")
			if key := (blobfmt.Name{Service: "web", Period: period, Number: 1}).String(); stored[key].IsZero() {
				stored[key] = period
				blob(rt, s, "web", period, 1)
			}
		}
		blob(rt, s, "web2", noon, 1)
		r := catalog.Range{From: at("from"), To: at("to").Add(time.Duration(rapid.IntRange(-1, 1).Draw(rt, "ns")))}
		switch rapid.IntRange(0, 5).Draw(rt, "kind") {
		case 0:
			r.From = time.Time{}
		case 1:
			r.To = time.Time{}
		case 2:
			r = catalog.DayRange(horizon.DayOf(r.From))
		case 3:
			hour := r.From.UTC().Truncate(time.Hour)
			r = catalog.Range{From: hour, To: hour.Add(time.Hour)}
		}
		var want []string
		for key, period := range stored {
			if !period.Before(r.From) && (r.To.IsZero() || period.Before(r.To)) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		if got := keys(rt, catalog.Blobs(rt.Context(), s, "web", r)); !slices.Equal(got, want) {
			rt.Fatalf("%v to %v:\n got %q\nwant %q", r.From, r.To, got, want)
		}
		// A view of few services lists the same in parts, by any clock.
		view, now := catalog.NewView(s, []string{"web"}, horizon.Checked{}), at("now")
		view.InParts(func() time.Time { return now })
		if got := keys(rt, view.Blobs(rt.Context(), "web", r)); !slices.Equal(got, want) {
			rt.Fatalf("%v to %v, in parts:\n got %q\nwant %q", r.From, r.To, got, want)
		}

		var days, wantDays []horizon.Day
		var starts, wantStarts []time.Time
		for _, period := range stored {
			if horizon.DayOf(period) >= horizon.DayOf(r.From) {
				wantDays = append(wantDays, horizon.DayOf(period))
			}
			if period.Before(r.To) {
				wantStarts = append(wantStarts, period)
			}
		}
		for d, err := range catalog.Days(rt.Context(), s, "web", r.From) {
			if err != nil {
				rt.Fatal(err)
			}
			days = append(days, d)
		}
		slices.Sort(wantDays)
		if wantDays = slices.Compact(wantDays); !slices.Equal(days, wantDays) {
			rt.Fatalf("days from %v: %v, want %v", r.From, days, wantDays)
		}
		walk := catalog.NewView(s, []string{"web"}, horizon.Checked{}).Walk("web")
		for to := r.To; ; {
			start, ok, err := walk.Before(rt.Context(), to)
			if err != nil {
				rt.Fatal(err)
			}
			if !ok {
				break
			}
			starts, to = append(starts, start), start
		}
		slices.SortFunc(wantStarts, func(a, b time.Time) int { return b.Compare(a) })
		if !slices.EqualFunc(starts, wantStarts, time.Time.Equal) {
			rt.Fatalf("walk before %v: %v, want %v", r.To, starts, wantStarts)
		}
	})
}

// A view hides the dropped days in its listings and its walks, and a second Look may hide
// more.
func TestViewHides(t *testing.T) {
	s := mem.New(mem.Options{})
	day := horizon.DayOf(noon)
	for d := range horizon.Day(6) {
		blob(t, s, "web", (day + d).Start(), 1)
	}
	put(t, s, "web/readme", nil)
	if err := horizon.Publish(t.Context(), s, "web", day+2); err != nil {
		t.Fatal(err)
	}
	if err := horizon.Drop(t.Context(), s, "web", day+4); err != nil {
		t.Fatal(err)
	}
	v := catalog.NewView(s, []string{"web"}, horizon.Checked{})
	var hidden []bool
	for e, err := range v.Blobs(t.Context(), "web", catalog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		hidden = append(hidden, e.Hidden)
	}
	if want := []bool{true, true, false, false, true, false, false}; !slices.Equal(hidden, want) {
		t.Errorf("hidden: %v, want %v", hidden, want)
	}
	walk := v.Walk("web")
	for _, want := range []horizon.Day{day + 5, day + 3, day + 2} {
		start, ok, err := walk.Before(t.Context(), (want + 1).Start())
		if err != nil || !ok || horizon.DayOf(start) != want {
			t.Fatalf("%v, %t, %v; want %v", start, ok, err, want)
		}
	}
	if start, ok, err := walk.Before(t.Context(), (day + 2).Start()); ok || err != nil || !walk.Seen {
		t.Errorf("below the horizon: %v, %t, %v", start, ok, err)
	}
	if err := horizon.Publish(t.Context(), s, "web", day+3); err != nil {
		t.Fatal(err)
	}
	if v.Hides("web", day+2) {
		t.Error("hidden before it was looked at")
	}
	if err := v.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, last := v.Dropped("web"); !v.Hides("web", day+2) || first.First != day+2 || last.First != day+3 {
		t.Errorf("first %+v, last %+v", first, last)
	}
}

// A view that cannot read the dropped days lists nothing.
func TestViewKnowsOrFails(t *testing.T) {
	s := mem.New(mem.Options{})
	blob(t, s, "web", noon, 1)
	away := errors.New("away")
	v := catalog.NewView(storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.List && strings.HasPrefix(key, "_") {
			return storagetest.Fault{Before: away}
		}
		return storagetest.Fault{}
	}), []string{"web"}, horizon.Checked{})
	for _, service := range []string{"web", "none"} {
		n := 0
		for e, err := range v.Blobs(t.Context(), service, catalog.Range{}) {
			if n++; !errors.Is(err, away) || e.Key != "" {
				t.Errorf("%s: %+v, %v", service, e, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d entries", service, n)
		}
	}
	if _, _, err := v.Walk("web").Before(t.Context(), noon.Add(time.Hour)); !errors.Is(err, away) {
		t.Errorf("a walk: %v", err)
	}
}

// Only the indexes of compacted blobs that may replace another of their hour are worth a
// request.
func TestReplacing(t *testing.T) {
	s := mem.New(mem.Options{})
	later := noon.Add(10 * time.Minute)
	for _, b := range []struct {
		hour, number int
		meta         blobfmt.Meta
	}{
		{0, 1, meta(1, noon, later, 10, 0)},
		{0, 990001, meta(2, noon, later, 30, 2)},  // holds the first and perhaps the third
		{0, 990002, meta(3, noon, later, 20, 1)},  // may hold the first too
		{1, 1, meta(4, noon, later.Add(1), 9, 0)}, // too late for the next
		{1, 990001, meta(5, noon, later, 10, 2)},
		{2, 990001, meta(6, noon, later, 10, 2)}, // alone
	} {
		name := blobfmt.Name{Service: "web", Period: noon.Add(time.Duration(b.hour) * time.Hour), Number: b.number}
		put(t, s, name.String(), b.meta.Map())
	}
	var all []catalog.Entry
	for e, err := range catalog.Blobs(t.Context(), s, "web", catalog.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	var got []string
	for _, e := range catalog.Replacing(all) {
		got = append(got, fmt.Sprintf("%d", e.Meta.Batch[0]))
	}
	if text := strings.Join(got, " "); text != "2 3" {
		t.Errorf("replacing: %s", text)
	}
}
