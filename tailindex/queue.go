package tailindex

import (
	"container/heap"
	"sync"
	"time"
)

// queue holds the services that are to be written, by when. Two of them are used:
// services whose write failed have one of their own, with workers of its own, so
// that those that hang do not keep the others waiting.
type queue struct {
	mu   sync.Mutex
	due  byDue
	wake chan struct{} // has something in it when the first has changed
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put adds a service that is in no queue.
func (q *queue) put(s *service, due time.Time) {
	q.mu.Lock()
	s.due = due
	heap.Push(&q.due, s)
	first := q.due[0] == s
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// next takes out the first service if it is due, or says how long that will take.
func (q *queue) next(now time.Time) (*service, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return nil, time.Hour
	}
	if wait := q.due[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&q.due).(*service), 0
}

// all takes out everything.
func (q *queue) all() []*service {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.due
	q.due = nil
	return all
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
