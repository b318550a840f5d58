package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// longs are records of two blobs, some of them longer than the parts in which lines are put aside.
func longs(t *testing.T) (*builder, []rec) {
	b := newBuilder(t, 64<<10)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).UnixNano()
	var all []rec
	for blob := range 2 {
		var recs []rec
		for i := range 1500 {
			n := i * 7919 % 3000
			if i%400 == 7 {
				n = 1_500_000
			}
			at := start + int64(2*i+blob)*1e6
			recs = append(recs, rec{service: "web", time: at, level: "info", origin: origin(uint64(blob + 1)), index: uint32(i), line: line(at, "info", "web", fmt.Sprint(i, strings.Repeat("x", n)))})
		}
		b.add(time.Hour, recs)
		all = append(all, recs...)
	}
	slices.SortFunc(all, compareRecs)
	return b, all
}

// Lines that come in the other order wait in little memory, and come out whole, with their
// identities.
func TestHeld(t *testing.T) {
	testkit.FullOnly(t, "it compares many MB")
	b, all := longs(t)
	r := blobs.New(b.store, blobs.Options{Workers: 2})
	for _, q := range []blobs.Query{{Limit: 2500}, {Limit: 40}, {First: 2500, Reverse: true}, {First: 3000, Reverse: true}, {Limit: 3000}} {
		q.Services, q.Range = []string{"web"}, blobs.Always()
		want := all[max(0, len(all)-q.Limit):]
		if q.First > 0 {
			want = slices.Clone(all[:q.First])
			slices.Reverse(want)
		}
		for _, limits := range []budget.Limits{{}, {Query: 3 << 20, Sure: 1}, {Query: 3, Sure: 1}} {
			ctx, made := budget.NewPool(limits).Begin(t.Context())
			var lines strings.Builder
			_, err := r.Newest(ctx, q, func(b []byte) error { lines.Write(b); return nil })
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			_, eerr := r.NewestEntries(ctx, q, func(e *record.Entry) error {
				if w := &want[n]; string(e.Line) != w.line || e.ID != (record.ID{Origin: w.origin, Index: w.index}) || e.Time != w.time {
					return fmt.Errorf("entry %d is %v %.50q, want %v %.50q", n, e.ID, e.Line, w.index, w.line)
				}
				n++
				return nil
			})
			rest := lines.String()
			for i := range want {
				var ok bool
				if rest, ok = strings.CutPrefix(rest, want[i].line); !ok {
					t.Fatalf("limit %d, first %d, %+v: line %d is %.60q", q.Limit, q.First, limits, i, rest)
				}
			}
			if eerr != nil || n != len(want) || rest != "" {
				t.Errorf("limit %d, first %d, %+v: %d entries, %d bytes more, %v", q.Limit, q.First, limits, n, len(rest), eerr)
			}
			if free := made.Spare(); made.Err() != nil || limits.Query == 0 && !made.Try(free) {
				t.Errorf("limit %d: the read keeps bytes; %v", q.Limit, made.Err())
			}
			made.End()
		}
	}
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 3000, MaxHeld: 5 << 20}
	_, err := r.Newest(t.Context(), q, func([]byte) error { return nil })
	if bad := (*blobs.BadQueryError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "more than 5MiB together") {
		t.Error(err)
	}
	if q.Reverse = true; true {
		if _, err := r.Newest(t.Context(), q, func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

// Without room for lines that wait a read fails, and none of them comes.
func TestNoRoomForHeld(t *testing.T) {
	testkit.FullOnly(t, "it compares many MB")
	b, _ := longs(t)
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	ctx, made := budget.NewPool(budget.Limits{Query: 3 << 20, Sure: 1}).Begin(t.Context())
	defer made.End()
	_, err := blobs.New(b.store, blobs.Options{}).Newest(ctx, blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 2500}, func(b []byte) error {
		t.Errorf("%d bytes come", len(b))
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "put records aside: ") {
		t.Error(err)
	}
}

// The records around one are taken from the budget, and so are the expressions of a filter. A
// filter ends with the budget.
func TestBudget(t *testing.T) {
	b, all := longs(t)
	r := blobs.New(b.store, blobs.Options{Workers: 2})
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always()}
	var over *budget.Error

	ctx, made := budget.NewPool(budget.Limits{Query: 1 << 20}).Begin(t.Context())
	_, _, err := r.Around(ctx, q, all[1000].time, record.ID{Origin: all[1000].origin, Index: all[1000].index}, 10, 10)
	if err != nil {
		t.Error(err)
	}
	_, _, _ = r.Around(ctx, q, all[1000].time, record.ID{Origin: all[1000].origin, Index: all[1000].index}, 900, 900)
	if !errors.As(made.Err(), &over) {
		t.Errorf("the records around one: %v", made.Err())
	}
	made.End()

	ctx, made = budget.NewPool(budget.Limits{Query: 1 << 20}).Begin(t.Context())
	q.Filter.Exprs = slices.Repeat([]string{`^` + strings.Repeat("(", 300) + `[\pL\pN]` + strings.Repeat(")", 300) + `$`}, 5)
	if _, err := r.Plan(ctx, q); !errors.As(err, &over) {
		t.Errorf("expressions: %v", err)
	}
	made.End()

	ctx, stop := context.WithCancel(t.Context())
	ctx, made = budget.NewPool(budget.Limits{}).Begin(ctx)
	defer made.End()
	asked := 0
	q.Filter = blobs.Filter{Accept: func([]byte) bool {
		if asked++; asked == 10 {
			stop()
			<-ctx.Done()
			for made.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return true
	}}
	if _, err := blobs.New(b.store, blobs.Options{Workers: 1}).Newest(ctx, q, func([]byte) error { return nil }); !errors.Is(err, context.Canceled) || asked > 10 {
		t.Errorf("a filter is asked %d times; %v", asked, err)
	}
}
