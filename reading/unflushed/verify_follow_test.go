package unflushed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/reading/unflushed"
	"blobtail/storage/storagetest"
)

// A follower that cannot read the id of its store at the beginning shows records once it
// can.
func TestFollowStoreAwayAtFirst(t *testing.T) {
	scene(t, 1, func(t *testing.T, c *company, s *screen) {
		c.running()
		begun := time.Now()
		r := c.reader(c.via("i0"), func(o *unflushed.Options) {
			o.Store = func(ctx context.Context) (string, error) {
				if time.Since(begun) < 20*time.Second {
					return "", errors.New("the store is away")
				}
				return storeID, nil
			}
		})
		f := follow(r, s.options(always("web")))
		time.Sleep(30 * time.Second)
		last := c.all[0].send(line{service: "web"})
		time.Sleep(3 * time.Second)
		f.end(t)
		if !slices.Contains(s.names(), last[0].name) {
			t.Errorf("shown are %v; %q", s.names(), s.problems)
		}
		says(t, s.problems, 2, "the id of the store (_store) cannot be read")
	})
}

// A follower reports an ingester that the asked one does not know, but none that has just
// started.
func TestFollowUnasked(t *testing.T) {
	for _, cut := range []bool{false, true} {
		scene(t, 1, func(t *testing.T, c *company, s *screen) {
			c.all[0].start()
			time.Sleep(6 * time.Second)
			f := follow(c.reader(c.via("i0")), s.options(always("web")))
			time.Sleep(6 * time.Second)
			c.all[0].Cut.Store(cut)
			for range 8 { // at any moment of the checks
				in := c.add()
				c.all = append(c.all, in)
				in.start()
				in.send(line{service: "other"})
				time.Sleep(2100 * time.Millisecond)
				if cut {
					time.Sleep(10 * time.Second)
					break
				}
			}
			f.end(t)
			if cut {
				says(t, s.problems, 1, "ingester 00000002 on i1", "is not among those that answered")
			} else {
				says(t, s.problems, 0)
			}
		})
	}
}

// A listing of the horizons that hangs for ever must not end the checks of a follower: it
// fetches the records of an ingester that has ended.
func TestHungHorizons(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.all[0].start()
		c.all[1].start()
		time.Sleep(time.Second)
		q := always("web")
		q.Limit = 10
		f := follow(c.reader(), s.options(q))
		time.Sleep(30 * time.Second)
		first := c.all[1].send(line{service: "web"})
		time.Sleep(10 * time.Second)
		var lists atomic.Int64
		never := make(chan struct{})
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.List && strings.HasPrefix(key, "_horizon/") && lists.Add(1) == 1 {
				return storagetest.Fault{Block: never}
			}
			return storagetest.Fault{}
		})
		time.Sleep(35 * time.Second)
		second := c.all[1].send(line{service: "web"})
		c.all[1].Drain()
		time.Sleep(3 * time.Minute)
		s.shows(namesOf(first, second)...)
		close(never)
		f.end(t)
	})
}
