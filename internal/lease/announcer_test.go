package lease_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// The first unflushed record is announced at once, not with the next beat. Readers look
// for a killed ingester only if its row says that it had unflushed records.
func TestSoonUnflushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		var mu sync.Mutex
		var since time.Time
		set := func(at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			since = at
		}
		p := launch(t, s, identity{ID: "0badcafe"}, func(o *lease.Options) {
			o.Oldest = func() (time.Time, bool) {
				mu.Lock()
				defer mu.Unlock()
				return since, !since.IsZero()
			}
		})
		<-p.First()
		time.Sleep(time.Second)
		came := time.Now()
		set(came)
		time.Sleep(time.Second)
		if got := one(t, s, "").Oldest; !got.Equal(came) {
			t.Errorf("a second later the row says %v", got)
		}
		written, _ := p.Beats()
		time.Sleep(5 * time.Second)
		if again, _ := p.Beats(); again != written {
			t.Errorf("%d announcements more of what the row says already", again-written)
		}
	})
}

// The row is written every 10 s, however slow the tables are.
func TestPeriodOfSlowTables(t *testing.T) {
	for _, c := range []struct{ scan, swap time.Duration }{
		{0, 0}, {2 * time.Second, 2 * time.Second}, {time.Hour, 4 * time.Second},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWard(t)
				p := w.launch(logDisk(t))
				if err := w.enter(p.Announcer); err != nil {
					t.Fatal(err)
				}
				time.Sleep(11 * time.Second)
				var mu sync.Mutex
				var last time.Time
				var longest time.Duration
				n := 0
				w.setFault(func(op storagetest.Op, key string) storagetest.Fault {
					mu.Lock()
					defer mu.Unlock()
					switch op {
					case storagetest.Swap:
						if n++; n > 1 {
							longest = max(longest, time.Since(last))
						}
						last = time.Now()
						return storagetest.Fault{Delay: c.swap}
					case storagetest.Scan:
						return storagetest.Fault{Delay: c.scan}
					}
					return storagetest.Fault{}
				})
				for range 1500 {
					time.Sleep(100 * time.Millisecond)
					if err := p.Err(); err != nil {
						t.Fatal(err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if n < 12 || longest > 10500*time.Millisecond {
					t.Errorf("%d writes in 150 s, the longest pause is %v", n, longest)
				}
			})
		})
	}
}
