package live

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are a handler's counters since it was made. They are plain: readers link this
// package too, and a metrics library costs each start of a command a millisecond.
type Stats struct {
	// Questions by status code; 499 is a reader that did not wait.
	Questions map[int]uint64
	// Seconds is the time that those answered took, from the header of a question to
	// the end of its answer, added up.
	Seconds float64
	Records uint64 // sent in answers
	// PeersFailed is how often another ingester had to be asked and did not answer, or
	// not to the end.
	PeersFailed uint64
}

// counts are the values behind Stats.
type counts struct {
	mu        sync.Mutex
	questions map[int]uint64
	took      time.Duration

	records, failed atomic.Uint64
}

// question counts a question that was answered with a status.
func (c *counts) question(status int, took time.Duration, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions[status]++
	if answered {
		c.took += took
	}
}

// Stats returns the counters.
func (h *Handler) Stats() Stats {
	h.counts.mu.Lock()
	defer h.counts.mu.Unlock()
	return Stats{
		Questions: maps.Clone(h.counts.questions), Seconds: h.counts.took.Seconds(),
		Records: h.counts.records.Load(), PeersFailed: h.counts.failed.Load(),
	}
}
