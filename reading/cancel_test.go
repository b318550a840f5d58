package reading_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/storage/storagetest"
)

// A query ends at once when its client has gone, at any call in which the store hangs, alone and
// among others.
func TestCancelled(t *testing.T) {
	for _, op := range []storagetest.Op{storagetest.List, storagetest.Get, storagetest.Scan} {
		for _, company := range []int{1, 5} {
			t.Run(fmt.Sprint(op, " ", company), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := readingtest.New(t, 1)
					time.Sleep(time.Second)
					h.Send(0, readingtest.Line{Service: "web", Msg: "stored"})
					h.Flush()
					h.Send(0, readingtest.Line{Service: "web", Msg: "held"})
					r := h.Reader()
					h.Faults(func(o storagetest.Op, key string) storagetest.Fault {
						if o == op {
							return storagetest.Fault{Delay: time.Hour}
						}
						return storagetest.Fault{}
					})
					defer h.Faults(nil)
					ctx, cancel := context.WithCancel(t.Context())
					var queries sync.WaitGroup
					for n := range company {
						queries.Go(func() {
							q := reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: n % 2 * 10}
							if _, _, err := lines(ctx, r.For(nil), q); !errors.Is(err, context.Canceled) {
								t.Errorf("it ends with %v", err)
							}
						})
					}
					time.Sleep(3 * time.Second)
					begun := time.Now()
					cancel()
					queries.Wait()
					if took := time.Since(begun); took > 0 {
						t.Errorf("it ends after %v", took)
					}
				})
			})
		}
	}
}

// A query asks its filter no more when its client has gone, also within a block of many records.
func TestCancelledFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		time.Sleep(time.Second)
		for range 100 {
			h.Send(0, readingtest.Line{Service: "web", Msg: "one of many"})
		}
		h.Flush()
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		_, err := h.Reader().For(nil).Filtered(ctx, reading.Ask{Services: []string{"web"}, Range: reading.Always()}, func([]byte) bool {
			asked++
			cancel()
			return true
		})
		if !errors.Is(err, context.Canceled) || asked != 1 {
			t.Errorf("it ends with %v after %d questions, want one", err, asked)
		}
	})
}
