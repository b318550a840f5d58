package buffer_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
)

// Requests that wait until they are stored, one after the other and of two services, have a batch of each
// cut at most once in StoredEvery, and wait no longer than that. The first does not wait for others.
func TestStoredEvery(t *testing.T) {
	for _, every := range []time.Duration{0, 5 * time.Second} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			sink := &memSink{}
			p := start(t, dir, sink, buffer.Options{StoredEvery: every}, true)
			defer p.stop()
			pause := max(every, time.Second)
			time.Sleep(time.Hour)
			began := time.Now()
			var waiting sync.WaitGroup
			for n, service := range []string{"web", "pay"} {
				waiting.Go(func() {
					for i := 0; time.Since(began) < time.Minute; i++ {
						sent := time.Now()
						if err := p.accept(request(0, line{service, at(1), fmt.Sprint(n, i)})).Wait(t.Context(), true); err != nil {
							t.Error(err)
						}
						if d := time.Since(sent); d > pause+500*time.Millisecond || i == 0 && d > time.Second {
							t.Errorf("request %d of %s waited %v", i, service, d)
						}
					}
				})
			}
			waiting.Wait()
			for _, service := range []string{"web", "pay"} {
				n, most := 0, int(time.Minute/pause)+2
				for _, b := range sink.all() {
					if b.service == service {
						n++
					}
				}
				if n > most || n < most/2 {
					t.Errorf("every %v: %d batches of %s, at most %d were expected", every, n, service, most)
				}
			}
		})
	}
}
