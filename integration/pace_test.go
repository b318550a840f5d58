package integration_test

import (
	"sync"
	"time"
)

// paced measures how late this machine wakes a sleeping goroutine. The delay grows
// with the load. A limit for work that several processes do in turn is an idle
// machine's limit plus some such delays.
type paced struct {
	stop chan struct{}
	done sync.WaitGroup
	most time.Duration
}

func measurePace() *paced {
	p := &paced{stop: make(chan struct{})}
	p.done.Go(func() {
		const nap = 5 * time.Millisecond
		for {
			asleep := time.Now()
			select {
			case <-p.stop:
				return
			case <-time.After(nap):
				p.most = max(p.most, time.Since(asleep)-nap)
			}
		}
	})
	return p
}

// end ends the measurement and converts an idle machine's limit to this machine's.
func (p *paced) end(idle time.Duration) time.Duration {
	close(p.stop)
	p.done.Wait()
	return idle + 10*p.most
}
