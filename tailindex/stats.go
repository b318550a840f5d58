package tailindex

import (
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage"
)

// Stats are a writer's counters since its creation.
type Stats struct {
	Written, Failed uint64 // writes, one for each service
	Records         uint64 // in written rows
	Omitted         uint64 // counted in written rows, but not included
	Outside         uint64 // outside the time bounds: too old for the newest, or ahead of the clock
	Held            int64  // bytes of memory
}

// Stats returns the counters.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Held = w.bytes
	return s
}

// Waiting returns the number of services with records to write, and the longest wait. It
// reads the state of each service.
func (w *Writer) Waiting() (services int, behind time.Duration) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.services {
		if s.job == nil && s.batch == nil {
			continue
		}
		services++
		if s.job != nil {
			behind = max(behind, now.Sub(s.job.since))
		} else {
			behind = max(behind, now.Sub(s.batch.since))
		}
	}
	return services, behind
}

// reporter logs each kind of failure once, and once the end of all failures.
type reporter struct {
	log     zerolog.Logger
	mu      sync.Mutex
	failing int // services with a failed last write
	told    map[string]bool
}

// maxKinds bounds the kinds of failure that are logged before all services recover.
const maxKinds = 10

// wrote notes the result of a write after a number of failures.
func (r *reporter) wrote(err error, fails int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && fails == 0 {
		r.failing++
	}
	if err == nil && fails > 0 {
		if r.failing--; r.failing == 0 {
			clear(r.told)
			r.log.Info().Msg("the newest records are written again")
		}
	}
	if err == nil || r.told[storage.Gist(err)] || len(r.told) >= maxKinds {
		return
	}
	r.told[storage.Gist(err)] = true
	r.log.Warn().Err(err).Msg("the newest records cannot be written; they are taken and stored as before, and missing in what tail shows")
}
