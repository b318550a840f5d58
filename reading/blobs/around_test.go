package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

func linesOf(entries []record.Entry) (out []string) {
	for i := range entries {
		out = append(out, string(entries[i].Line))
	}
	return out
}

// However the records reached the store, the neighbours of each place are those in the list of
// all records in their order, in the range, and accepted by the filter.
func TestAroundAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		now := time.Unix(0, w.start).Add(time.Duration(rapid.IntRange(-60, 60).Draw(rt, "now")) * time.Hour)
		r := blobs.New(w.b.store, blobs.Options{Workers: 2, Now: func() time.Time { return now }})
		q := drawQuery(rt, w)
		q.Limit, q.First, q.Reverse = 0, 0, false
		if len(w.visible) == 0 || len(w.expect(q)) == 0 {
			return
		}
		at := rapid.SampledFrom(w.visible).Draw(rt, "at")
		place := record.Entry{Time: at.time, ID: record.ID{Origin: at.origin, Index: at.index}}
		if rapid.IntRange(0, 4).Draw(rt, "nobody's place") == 0 {
			place.ID.Index += 1000
		}
		before, after := rapid.IntRange(0, 12).Draw(rt, "before"), rapid.IntRange(0, 12).Draw(rt, "after")
		all := q
		all.Range, all.Filter = blobs.Always(), blobs.Filter{}
		accepted := map[rec]bool{}
		for _, r := range w.expect(q) {
			accepted[r] = true
		}
		var older, newer []string
		itself := -1
		for i, r := range w.expect(all) {
			order := entry(r).Compare(&place)
			switch {
			case order == 0 && itself < 0: // a second one of the place is of another service
				itself = i
			case accepted[r] && order < 0:
				older = append(older, r.line)
			case accepted[r]:
				newer = append(newer, r.line)
			}
		}

		n, sum, err := r.Around(context.Background(), q, place.Time, place.ID, before, after)
		if err != nil || !w.complete(sum) {
			rt.Fatal(err, sum.Problems)
		}
		if got, want := linesOf(n.Before), older[max(0, len(older)-before):]; !slices.Equal(got, want) || n.MoreBefore != (len(older) > before) {
			rt.Fatalf("%+v %v: before are %q %v, want %q", q, place, got, n.MoreBefore, want)
		}
		if got, want := linesOf(n.After), newer[:min(after, len(newer))]; !slices.Equal(got, want) || n.MoreAfter != (len(newer) > after) {
			rt.Fatalf("%+v %v: after are %q %v, want %q", q, place, got, n.MoreAfter, want)
		}
		found, _, err := r.Find(context.Background(), q, place.Time, place.ID)
		if (itself >= 0) != (n.Record != nil) || (itself >= 0) != (found != nil) || err != nil {
			rt.Fatalf("%v is found: %v and %v, %v", place, n.Record, found, err)
		}
		if itself >= 0 && (found.Compare(&place) != 0 || n.Record.Compare(&place) != 0) {
			rt.Fatalf("%v is found as %v and %v", place, n.Record, found)
		}
	})
}

// Of many records of one ns, each has its true neighbours: in blobs, in a compacted blob, and
// among unflushed records.
func TestAroundOneInstant(t *testing.T) {
	testkit.FullOnly(t, "a thousand reads, one after another")
	b := newBuilder(t, 700)
	var all []rec
	add := func(from, to int) (recs []rec) {
		for i := from; i < to; i++ {
			recs = append(recs, rec{service: "web", time: noon, origin: origin(uint64(i % 7)), index: uint32(i), line: line(noon, "info", "web", fmt.Sprint("record ", i))})
		}
		all = append(all, recs...)
		return recs
	}
	stored := add(0, 150)
	key, id := b.add(time.Hour, stored)
	b.add(time.Hour, add(150, 300))
	held := unflushed(t, entries(sorted(add(300, 350)))...)
	all = sorted(all)
	check := func(how string) {
		t.Helper()
		r := blobs.New(b.store, blobs.Options{})
		q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{held}}
		for i, at := range all {
			n, sum, err := r.Around(t.Context(), q, at.time, entry(at).ID, 3, 2)
			if err != nil || !sum.Complete() || n.Record == nil || string(n.Record.Line) != at.line {
				t.Fatalf("%s: %v: %v", how, err, n)
			}
			if got, want := linesOf(n.Before), lines(all[max(0, i-3):i]); !slices.Equal(got, want) {
				t.Fatalf("%s: before record %d are %q, want %q", how, i, got, want)
			}
			if got, want := linesOf(n.After), lines(all[i+1:min(len(all), i+3)]); !slices.Equal(got, want) {
				t.Fatalf("%s: after record %d are %q, want %q", how, i, got, want)
			}
			if n.MoreBefore != (i > 3) || n.MoreAfter != (i+3 < len(all)) {
				t.Fatalf("%s: record %d: more before: %v, after: %v", how, i, n.MoreBefore, n.MoreAfter)
			}
		}
	}
	check("fresh")
	b.number = 990_000
	b.add(time.Hour, stored, id)
	check("compacted")
	remove(t, b.store, key)
	check("the old blob deleted")
}

func sorted(recs []rec) []rec {
	recs = slices.Clone(recs)
	slices.SortFunc(recs, compareRecs)
	return recs
}

// The neighbours of a record in a long store cost few requests, and the listing of a part of it.
func TestAroundRequests(t *testing.T) {
	w := week(t)
	r := blobs.New(w, blobs.Options{Now: func() time.Time { return time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC) }})
	at := time.Date(2026, 11, 18, 13, 30, 0, 0, time.UTC)
	id := record.ID{Origin: origin(2*24 + 13), Index: 30}
	n, sum, err := r.Around(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()}, at.UnixNano(), id, 40, 40)
	if err != nil || !sum.Complete() || n.Record == nil || len(n.Before) != 40 || len(n.After) != 40 || !n.MoreBefore || !n.MoreAfter {
		t.Fatalf("%v %+v", err, n)
	}
	if w.listed > 30 {
		t.Errorf("%d blobs of %d are listed: %q", w.listed, 7*24, w.lists)
	}
}

// A blob that cannot be read is a problem of the answer.
func TestAroundDamaged(t *testing.T) {
	b := newBuilder(t, 300)
	all := some("web", 30, 1)
	key, _ := b.add(time.Hour, all)
	fail := errors.New("no")
	r := blobs.New(failing(b.store, -1, storagetest.Get, key, fail), blobs.Options{})
	_, sum, err := r.Around(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()}, all[3].time, entry(all[3]).ID, 5, 5)
	if err != nil || len(sum.Problems) != 1 {
		t.Errorf("%v %v", err, sum.Problems)
	}
}
