package newest

import "time"

// later is a result that is being worked out.
type later[T any] struct {
	begun  time.Time
	done   chan struct{}
	result T
}

func begin[T any](work func() T) *later[T] {
	l := &later[T]{begun: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.result = work()
	}()
	return l
}

// wait returns the result once it is there.
func (l *later[T]) wait() *T {
	<-l.done
	return &l.result
}

// repeated is work that is done again and again in the background.
type repeated[T any] struct {
	every   time.Duration
	next    time.Time // no work begins before it
	running *later[T] // nil: none
}

// poll begins the work if it is time. It returns the work once when it has ended, else nil.
func (r *repeated[T]) poll(begin func() *later[T]) *later[T] {
	if r.running == nil && !time.Now().Before(r.next) {
		r.next, r.running = time.Now().Add(r.every), begin()
	}
	if l := r.running; l != nil {
		select {
		case <-l.done:
			r.running = nil
			return l
		default: // slow tables delay no record
		}
	}
	return nil
}

// end waits for the work in progress.
func (r *repeated[T]) end() {
	if r.running != nil {
		r.running.wait()
	}
}
