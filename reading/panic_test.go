package reading_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/storage/fanout"
	"blobtail/storage/storagetest"
)

// A panic while some queries share a question to ingesters, or a listing, is one of each of them, so
// that a server answers them and goes on. Later queries are answered.
func TestSharedPanic(t *testing.T) {
	for name, at := range map[string]func(op storagetest.Op, key string) bool{
		"listing": func(op storagetest.Op, key string) bool {
			return op == storagetest.List && strings.HasPrefix(key, "web")
		},
		"horizon": func(op storagetest.Op, key string) bool { return op == storagetest.List && strings.HasPrefix(key, "_") },
		"any":     func(op storagetest.Op, _ string) bool { return op == storagetest.List },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := readingtest.New(t, 2)
				time.Sleep(time.Second)
				h.Send(0, readingtest.Line{Service: "web", Msg: "stored"})
				h.Flush()
				h.Send(1, readingtest.Line{Service: "web", Msg: "unflushed"})
				time.Sleep(time.Second)
				r := h.Reader()
				q := reading.Ask{Services: []string{"web"}, Range: reading.Range{From: time.Now().Add(-time.Hour).UnixNano(), To: reading.Newest}}
				ask := func(queries int) (panics int) {
					var mu sync.Mutex
					var all sync.WaitGroup
					for range queries {
						all.Go(func() {
							p := fanout.Keep(func() {
								if got, _, err := lines(t.Context(), r.For(nil), q); err != nil || len(got) != 2 {
									t.Errorf("%d lines, %v", len(got), err)
								}
							})
							if p != nil {
								mu.Lock()
								defer mu.Unlock()
								panics++
							}
						})
					}
					all.Wait()
					return panics
				}
				ask(4) // from now on they share
				h.Faults(func(op storagetest.Op, key string) storagetest.Fault {
					if at(op, key) {
						panic("a mistake")
					}
					return storagetest.Fault{}
				})
				if n := ask(4); n != 4 {
					t.Errorf("%d of 4 queries panicked", n)
				}
				h.Faults(func(storagetest.Op, string) storagetest.Fault { return storagetest.Fault{} })
				if n := ask(4); n != 0 {
					t.Errorf("%d of 4 later queries panicked", n)
				}
			})
		})
	}
}
