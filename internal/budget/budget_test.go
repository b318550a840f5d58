package budget_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/budget"
)

func begin(t *testing.T, l budget.Limits) (context.Context, *budget.Budget) {
	t.Helper()
	ctx, b := budget.NewPool(l).Begin(t.Context())
	t.Cleanup(b.End)
	return ctx, b
}

// Bytes beyond the limit end the budget and the context of the query, with both figures.
func TestLimit(t *testing.T) {
	ctx, b := begin(t, budget.Limits{Query: 1 << 20, Sure: 1 << 10})
	if got := budget.Of(ctx); got != b {
		t.Fatal("the context does not have the budget")
	}
	if err := b.Take(1 << 19); err != nil || b.Err() != nil {
		t.Fatal(err, b.Err())
	}
	if b.Try(1) {
		t.Error("a try took what the workers need")
	}
	b.Give(1 << 19)
	if !b.Try(b.Spare()) || b.Try(1) {
		t.Errorf("%d bytes are not what may be left out", b.Spare())
	}
	b.Give(b.Spare())
	if err := b.Take(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := b.Fits(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := b.Err(); err != nil {
		t.Errorf("a try ended the budget: %v", err)
	}
	var over *budget.Error
	if err := b.Take(1 << 20); !errors.As(err, &over) || over.Bytes != 2<<20 || over.Limit != 1<<20 {
		t.Fatalf("%v", err)
	}
	if text := over.Error(); !strings.Contains(text, "query: 2MiB") || !strings.Contains(text, "limit: 1MiB") {
		t.Error(text)
	}
	b.Give(1 << 20)
	if err := b.Take(1); err != over || b.Err() != over || b.Try(1) {
		t.Errorf("the budget goes on: %v", err)
	}
	if ctx.Err() == nil || context.Cause(ctx) != over {
		t.Errorf("the context goes on: %v, %v", ctx.Err(), context.Cause(ctx))
	}
}

// A deadline ends the budget too.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, b := budget.NewPool(budget.Limits{}).Begin(ctx)
		defer b.End()
		share := b.Share()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := b.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := share.Take(1 << 20); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Each query has its sure bytes, and all of them share the rest.
func TestPool(t *testing.T) {
	p := budget.NewPool(budget.Limits{Query: 100, Sure: 10, All: 150})
	var all []*budget.Budget
	for range 4 {
		_, b := p.Begin(t.Context())
		defer b.End()
		all = append(all, b)
	}
	if err := errors.Join(all[0].Take(100), all[1].Take(70), all[2].Take(10)); err != nil {
		t.Fatalf("90 + 60 bytes beyond the sure ones: %v", err)
	}
	if !all[3].Try(10) || all[3].Try(1) {
		t.Error("a query has not just its sure bytes")
	}
	var busy *budget.BusyError
	if err := all[3].Take(1); !errors.As(err, &busy) || busy.Limit != 150 {
		t.Errorf("%v", err)
	}
	all[0].End()
	if err := all[2].Take(90); err != nil {
		t.Errorf("the bytes of an ended query are not there: %v", err)
	}
}

// Many goroutines that take and give leave a pool as it was, also if some fail.
func TestBalance(t *testing.T) {
	p := budget.NewPool(budget.Limits{Query: 1000, Sure: 100, All: 1500})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 200 {
				_, b := p.Begin(t.Context())
				var inside sync.WaitGroup
				for n := range int64(4) {
					inside.Go(func() {
						for i := range int64(20) {
							if b.Take(50*n+i) == nil {
								b.Give(50*n + i)
							}
							if b.Try(300) {
								b.Give(300)
							}
						}
					})
				}
				inside.Wait()
				b.End()
			}
		})
	}
	work.Wait()
	_, b := p.Begin(t.Context())
	defer b.End()
	_, c := p.Begin(t.Context())
	defer c.End()
	if b.Take(1000) != nil || c.Take(700) != nil || c.Take(1) == nil {
		t.Error("900 + 600 bytes beyond the sure ones are all")
	}
}

// Workers of a query make much of one record at a time, so that together they stay within its
// budget.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := budget.NewPool(budget.Limits{Query: 64 << 20}).Begin(t.Context())
		defer b.End()
		var work sync.WaitGroup
		for range 2 * runtime.GOMAXPROCS(0) {
			work.Go(func() {
				s := b.Share()
				for range 10 {
					for range 30 {
						if err := s.Take(1 << 20); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Millisecond)
					}
					s.Back(1 << 20)
					s.Release()
				}
			})
		}
		work.Wait()
		if err := b.Take(64 << 20); err != nil {
			t.Errorf("shares keep bytes: %v", err)
		}
	})
}

// Nothing bounds without a budget.
func TestNone(t *testing.T) {
	ctx, _ := begin(t, budget.Limits{})
	if budget.Of(budget.Without(ctx)) != nil {
		t.Error("a context without a budget has one")
	}
	b := budget.Of(t.Context())
	s := b.Share()
	if b != nil || b.Err() != nil || b.Take(1<<40) != nil || !b.Try(1<<40) || s.Take(1<<40) != nil {
		t.Error("there are bounds")
	}
	s.Back(0)
	s.Release()
	b.Give(1)
}
