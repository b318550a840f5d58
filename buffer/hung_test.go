package buffer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/storage/fsys/simdisk"
)

// hungSink answers no Write of services whose names begin with hung, until their time-out.
type hungSink struct {
	memSink
	timeout time.Duration

	mu     sync.Mutex
	now    map[string]int // writes that hang
	most   int            // of one service, at once
	stored map[string]time.Time
}

func (s *hungSink) Write(ctx context.Context, b *buffer.Batch) error {
	note := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[b.Service()] += n
		s.most = max(s.most, s.now[b.Service()])
	}
	if strings.HasPrefix(b.Service(), "hung") {
		note(1)
		defer note(-1)
		select {
		case <-time.After(s.timeout):
		case <-ctx.Done():
		}
		return context.DeadlineExceeded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[b.Service()] = time.Now()
	return nil
}

// Uploads of many services hang, for minutes each: others get workers within seconds, at the first
// moment and later, when those services are known for it.
func TestHungServices(t *testing.T) {
	for _, services := range []int{1, 3, 10, 100} {
		t.Run(fmt.Sprint(services), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &hungSink{timeout: 150 * time.Second, now: map[string]int{}, stored: map[string]time.Time{}}
				p := startOn(t, simdisk.New(1), "/wal", sink, buffer.Options{Size: 1, Workers: 10}, true)
				defer p.stop()
				for range 6 {
					for n := range services {
						p.accept(request(0, line{fmt.Sprint("hung", n), time.Now().UnixNano(), "x"}))
					}
				}
				for i, within := range []time.Duration{time.Duration(services/10+2) * 3 * time.Second, 3 * time.Second, 3 * time.Second} {
					begun, service := time.Now(), fmt.Sprint("web", i)
					p.accept(request(0, line{service, time.Now().UnixNano(), "x"}))
					time.Sleep(time.Minute)
					synctest.Wait()
					sink.mu.Lock()
					if at := sink.stored[service]; at.IsZero() || at.Sub(begun) > within {
						t.Errorf("%s is stored at %v, want within %v", service, at.Sub(begun), within)
					} else {
						t.Logf("%s is stored at %v", service, at.Sub(begun))
					}
					sink.mu.Unlock()
				}
				if sink.most > 4 {
					t.Errorf("%d uploads of one service at once", sink.most)
				}
			})
		})
	}
}
