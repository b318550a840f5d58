package tailindex

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// queue holds the services to be written, by their due times. Services with a failed last
// write may occupy only some of the workers: services that hang must not keep the rest
// waiting.
type queue struct {
	turn     chan struct{} // is full while a worker waits
	wake     chan struct{} // is full when the first service may have changed
	mu       sync.Mutex
	well     byDue
	failed   byDue // services with a failed last write
	retrying int   // of those, services with a worker
}

func newQueue() *queue {
	return &queue{turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// put adds a service that is not in the queue.
func (q *queue) put(s *service, due time.Time) {
	q.mu.Lock()
	s.due = due
	if s.fails > 0 {
		heap.Push(&q.failed, s)
	} else {
		heap.Push(&q.well, s)
	}
	q.mu.Unlock()
	q.signal()
}

// retried ends the work on a service that take returned after a failed write.
func (q *queue) retried() {
	q.mu.Lock()
	q.retrying--
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits until a service is due and removes it. Once ctx has ended all are due, and
// nil means that none is left.
func (q *queue) take(ctx context.Context) *service {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	for {
		ended := ctx.Err() != nil
		s, wait := q.next(time.Now(), ended)
		if s != nil || ended {
			return s
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next removes and returns the first service if it is due; otherwise it returns the time
// until then.
func (q *queue) next(now time.Time, all bool) (*service, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := &q.well
	if len(q.failed) > 0 && (all || q.retrying < retriers) && (len(q.well) == 0 || q.failed[0].due.Before(q.well[0].due)) {
		first = &q.failed
	}
	if len(*first) == 0 {
		return nil, time.Hour
	}
	if wait := (*first)[0].due.Sub(now); wait > 0 && !all {
		return nil, wait
	}
	if first == &q.failed {
		q.retrying++
	}
	return heap.Pop(first).(*service), 0
}

// byDue implements [heap.Interface].
type byDue []*service

func (d byDue) Len() int           { return len(d) }
func (d byDue) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d byDue) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push implements [heap.Interface].
func (d *byDue) Push(s any) { *d = append(*d, s.(*service)) }

// Pop implements [heap.Interface].
func (d *byDue) Pop() any {
	last := len(*d) - 1
	s := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return s
}
