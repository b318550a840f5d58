package integration_test

import (
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// paced measures how late this machine wakes a sleeping goroutine, and for how long work
// waits for a processor. Both grow with the load. A limit for work that several processes
// do in turn is an idle machine's limit plus some such delays.
type paced struct {
	stop chan struct{}
	done sync.WaitGroup
	most time.Duration

	worked, took time.Duration // of all bursts of work: processor time, and time
}

func measurePace() *paced {
	p := &paced{stop: make(chan struct{})}
	p.done.Go(p.work)
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

// work works for 10 ms of processor time, five times a second at most.
func (p *paced) work() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		begun, before := time.Now(), threadTime()
		for threadTime()-before < 10*time.Millisecond {
		}
		p.took += time.Since(begun)
		p.worked += threadTime() - before
		select {
		case <-p.stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// threadTime returns the processor time of the calling thread.
func threadTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(unix.RUSAGE_THREAD, &u) // it cannot fail for the thread itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// end ends the measurement and converts an idle machine's limit to this machine's.
func (p *paced) end(idle time.Duration) time.Duration {
	close(p.stop)
	p.done.Wait()
	return idle + 10*p.most
}

// endBusy is end for work that takes processor time for much of the idle machine's limit:
// it takes longer by the factor by which the bursts took longer.
func (p *paced) endBusy(idle time.Duration) time.Duration {
	wait := p.end(0)
	return time.Duration(float64(idle)*float64(p.took)/float64(p.worked)) + wait
}
