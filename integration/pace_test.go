package integration_test

import (
	"sync"
	"time"
)

// paced measures how late this machine wakes a sleeping goroutine, and how much longer than
// at best a little work takes. Both grow with the load. A limit for work that several
// processes do in turn is an idle machine's limit plus some such delays.
type paced struct {
	stop chan struct{}
	done sync.WaitGroup
	most time.Duration // of one delay
}

func measurePace() *paced {
	p := &paced{stop: make(chan struct{})}
	p.done.Go(func() {
		const nap = 5 * time.Millisecond
		best, sum := time.Hour, 0
		for round := 0; ; round++ {
			asleep := time.Now()
			select {
			case <-p.stop:
				return
			case <-time.After(nap):
				p.most = max(p.most, time.Since(asleep)-nap)
			}
			if round%10 == 0 { // a few milliseconds of work in a hundred
				begun := time.Now()
				for i := range 4 << 20 {
					sum = sum*31 + i
				}
				took := time.Since(begun)
				best = min(best, took)
				p.most = max(p.most, took-best)
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
