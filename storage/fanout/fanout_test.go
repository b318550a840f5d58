package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/storage/fanout"
)

// All calls are made, in no more than their number at once, and errors have their places.
func TestAll(t *testing.T) {
	for _, atOnce := range []int{0, 1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			var now, most, made atomic.Int64
			errs := fanout.All(20, atOnce, func(i int) error {
				made.Add(1)
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Second)
				now.Add(-1)
				if i%7 == 3 {
					return fmt.Errorf("call %d", i)
				}
				return nil
			})
			want := int64(atOnce)
			if atOnce == 0 || atOnce > 20 {
				want = 20
			}
			if most.Load() != want || made.Load() != 20 || len(errs) != 20 {
				t.Errorf("%d at once: %d were, of %d, with %d errors", atOnce, most.Load(), made.Load(), len(errs))
			}
			for i, err := range errs {
				if (err != nil) != (i%7 == 3) || err != nil && err.Error() != fmt.Sprintf("call %d", i) {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
	if errs := fanout.All(0, 4, nil); len(errs) != 0 {
		t.Error(errs)
	}
}

// The first error ends the calls under way, and no other call begins.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		var made, ended atomic.Int64
		err := fanout.Each(t.Context(), 100, 4, func(ctx context.Context, i int) error {
			made.Add(1)
			if i == 6 {
				return failed
			}
			select {
			case <-time.After(time.Second):
				if i >= 4 {
					t.Errorf("call %d goes on after an error", i)
				}
				return nil
			case <-ctx.Done():
				ended.Add(1)
				return ctx.Err()
			}
		})
		if err != failed || made.Load() > 8 || made.Load()-ended.Load() != 5 {
			t.Errorf("%v, %d calls, %d ended", err, made.Load(), ended.Load())
		}
	})
}

// A caller that leaves gets an error, though no call failed.
func TestEachLeft(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	made := 0
	err := fanout.Each(ctx, 10, 1, func(context.Context, int) error {
		if made++; made == 3 {
			leave()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || made != 3 {
		t.Errorf("%v after %d calls", err, made)
	}
	if err := fanout.Each(ctx, 0, 1, nil); err != nil {
		t.Errorf("no calls: %v", err)
	}
}
