package wal

import (
	"fmt"
	"sync"
	"time"
)

// maxGathering bounds the time for which an fsync waits for more callers. Callers that
// send again as soon as they are answered come back within it.
const maxGathering = time.Millisecond

// commit is the state of the group commit. An fsync costs as much processor time as
// handling a small request. So the next one first waits for as many callers as there were lately.
// A lone caller does not wait.
type commit struct {
	mu      sync.Mutex
	done    sync.Cond // signalled when an fsync has ended
	running bool      // one caller runs an fsync for all
	durable Pos       // everything before this position is durable

	round    uint64        // number of the next fsync
	waiting  int           // callers that it will serve
	expected int           // callers of the last one, and those that came while it ran
	complete chan struct{} // gets a value when as many are waiting
	took     time.Duration // by the last one
}

func (c *commit) advance(to Pos) {
	c.mu.Lock()
	c.durable = max(c.durable, to)
	c.mu.Unlock()
}

// join counts a caller for the next fsync. c.mu is held.
func (c *commit) join() (round uint64) {
	c.waiting++
	if c.waiting == c.expected {
		select {
		case c.complete <- struct{}{}:
		default:
		}
	}
	return c.round
}

// leave ends the call of a caller that joined a round. c.mu is held.
func (c *commit) leave(round uint64) {
	if round == c.round {
		c.waiting-- // the fsync before this round served it
	}
}

// gather waits until the expected callers have come. On a fast disk the wait is shorter,
// so that it never takes most of the time. It begins the next round and returns the number
// of callers in this one. c.mu is held.
func (c *commit) gather() (callers int) {
	if c.waiting < c.expected {
		select {
		case <-c.complete: // of an earlier round
		default:
		}
		t := time.NewTimer(min(maxGathering, 4*c.took))
		c.mu.Unlock()
		select {
		case <-c.complete:
		case <-t.C:
		}
		t.Stop()
		c.mu.Lock()
	}
	callers = c.waiting
	c.round++
	c.waiting = 0
	return callers
}

// Sync returns when the record at p and all before it are durable. One fsync serves all
// waiting callers. One of them runs it for the records in the log at that time, and the
// others wait for it. If it started too early for some of them, one of these runs the
// next. Appends continue meanwhile.
func (l *Log) Sync(p Pos) error {
	if p.Offset() < headerSize+recordHeader {
		return fmt.Errorf("wal: sync: %d is not a position", p)
	}
	// p minus the header is the record's own offset, or lies inside the record. p itself
	// would not do: an empty payload lies at its record's end, which is the next record's
	// offset.
	return l.syncUpTo(p - recordHeader)
}

// syncAll makes all records durable that were appended before the call.
func (l *Log) syncAll() error {
	l.mu.Lock()
	end := l.end
	l.mu.Unlock()
	return l.syncUpTo(end - 1)
}

func (l *Log) syncUpTo(at Pos) error {
	c := &l.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.leave(c.join())
	for {
		if err := l.Err(); err != nil {
			return err
		}
		if at < c.durable {
			return nil
		}
		if c.running {
			c.done.Wait()
			continue
		}
		if err := l.syncRound(at); err != nil {
			return err
		}
	}
}

// syncRound runs one fsync for all callers. l.commit.mu is held, but for the fsync.
func (l *Log) syncRound(at Pos) error {
	c := &l.commit
	c.running = true
	callers := c.gather()
	c.mu.Unlock()
	begun := time.Now()
	upto, err := l.syncOnce(at)
	took := time.Since(begun)
	c.mu.Lock()
	c.durable = max(c.durable, upto)
	c.expected, c.took = callers+c.waiting, took
	c.running = false
	c.done.Broadcast()
	return err
}

// syncOnce makes the current contents of the log durable under names that a start will
// find. It returns their end.
func (l *Log) syncOnce(at Pos) (Pos, error) {
	f, end, err := l.settled()
	if err != nil {
		return 0, err
	}
	if f == nil {
		return 0, fmt.Errorf("wal: sync: %w", ErrClosed)
	}
	defer func() { _ = l.files.release(f) }()
	if at >= end {
		return 0, fmt.Errorf("wal: sync: %d lies behind the end of the log", at)
	}
	// A roll between these lines and the fsync does no harm: it syncs the same file.
	if err := l.syncFile(f); err != nil {
		return 0, err
	}
	if err := l.inPlace(f); err != nil {
		return 0, err
	}
	return end, nil
}

// settled returns the active segment and its end, once everything before the end is in the
// file. The caller must release the segment.
func (l *Log) settled() (*file, Pos, error) {
	l.held.mu.Lock()
	defer l.held.mu.Unlock()
	if err := l.writeHeld(); err != nil {
		return nil, 0, err
	}
	f, end := l.useActive()
	return f, end, nil
}
