package blobs_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
)

// The parts of a fold have each record of a read once, also of blobs that share records. Kept ones
// are the same in the same order, and only a range that cuts a block has it read again.
func TestFold(t *testing.T) {
	b := newBuilder(t, 2000)
	recs := some("web", 3000, 1)
	b.add(time.Hour, recs[:1000])
	b.add(time.Hour, recs[1000:2000])
	b.add(time.Hour, recs[1900:]) // 100 of them again
	b.add(time.Hour, some("orders", 500, 2))
	r := blobs.New(b.store, blobs.Options{Indexes: indexcache.New(0), Findings: 4 << 20})
	fold := func(q blobs.Query, id string) (parts []string, sum blobs.Summary) {
		t.Helper()
		plan, err := r.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sum, err = plan.Fold(t.Context(), blobs.Fold{ID: id, Of: func(lines []byte) (any, int64, error) {
			return string(bytes.Clone(lines)), int64(len(lines)), nil
		}}, func(part any) error { parts = append(parts, part.(string)); return nil })
		if err != nil || !sum.Complete() {
			t.Fatal(err, sum.Problems)
		}
		return parts, sum
	}
	for _, filter := range []blobs.Filter{{}, {Texts: []string{"7"}}, {Exprs: []string{"1[0-9]+ of"}}, {Texts: []string{"nothing of it"}}} {
		for _, rng := range []blobs.Range{blobs.Always(), {From: recs[150].time, To: recs[1950].time}} {
			q := blobs.Query{Services: []string{"*"}, Range: rng, Filter: filter}
			want, wantSum := read(t, blobs.New(b.store, blobs.Options{}), q)
			slices.Sort(want)
			var first []string
			var decoded [3]int64
			for round := range 3 {
				parts, sum := fold(q, "lines")
				decoded[round] = sum.BlocksRead
				got := slices.Sorted(strings.Lines(strings.Join(parts, "")))
				if !slices.Equal(got, want) || sum.Records != wantSum.Records {
					t.Fatalf("%+v, round %d: %d lines, %d said, want %d, %d", q, round, len(got), sum.Records, len(want), wantSum.Records)
				}
				if round == 0 {
					first = parts
				} else if !slices.Equal(parts, first) {
					t.Errorf("%+v, round %d: other parts", q, round)
				}
			}
			if bare, _ := fold(q, ""); !slices.Equal(bare, first) {
				t.Errorf("%+v: other parts without an ID", q)
			}
			if decoded[1] != decoded[2] || rng == blobs.Always() && len(want) > 0 && decoded[1] >= decoded[0] {
				t.Errorf("%+v: blocks read %v", q, fmt.Sprint(decoded))
			}
		}
	}
}

// A fold over a distant store makes no more requests than a read if it keeps nothing.
func TestRequestsOfFold(t *testing.T) {
	b := newBuilder(t, 2000)
	recs := some("web", 3000, 1)
	for i := range 3 { // they overlap
		var part []rec
		for j := i; j < len(recs); j += 3 {
			part = append(part, recs[j])
		}
		b.add(time.Hour, part)
	}
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	_, want := read(t, blobs.New(b.store, blobs.Options{Distant: true}), q)
	plan, err := blobs.New(b.store, blobs.Options{Distant: true}).Plan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	sum, err := plan.Fold(t.Context(), blobs.Fold{Of: func(lines []byte) (any, int64, error) {
		return bytes.Count(lines, []byte("\n")), 8, nil
	}}, func(part any) error { lines += part.(int); return nil })
	if err != nil || !sum.Complete() || lines != 3000 || sum.Records != 3000 || sum.Requests != want.Requests {
		t.Errorf("%d lines, %d said, %d requests, want %d: %v", lines, sum.Records, sum.Requests, want.Requests, err)
	}
}
