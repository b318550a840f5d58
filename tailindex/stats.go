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
	held := w.bytes
	w.mu.Unlock()
	w.reporter.mu.Lock()
	defer w.reporter.mu.Unlock()
	s := w.reporter.stats
	s.Held = held
	return s
}

// Waiting returns the number of services with records to write, and the longest wait. It
// reads the state of each service.
func (w *Writer) Waiting() (services int, behind time.Duration) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.services {
		since := s.since
		if since.IsZero() && s.batch != nil {
			since = s.batch.since
		}
		if !since.IsZero() {
			services++
			behind = max(behind, now.Sub(since))
		}
	}
	return services, behind
}

// reporter counts. It logs each kind of failure once, and once the end of all failures.
type reporter struct {
	log     zerolog.Logger
	mu      sync.Mutex
	stats   Stats
	failing int // services with a failed last write
	told    map[string]bool
}

// maxKinds bounds the kinds of failure that are logged before all services recover.
const maxKinds = 10

func (r *reporter) count(f func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// wrote notes the result of a write after a number of failures.
func (r *reporter) wrote(j *job, err error, fails int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.stats.Written++
		r.stats.Records += uint64(j.lines)
		r.stats.Omitted += uint64(j.omitted)
		if fails == 0 {
			return
		}
		if r.failing--; r.failing == 0 {
			clear(r.told)
			r.log.Info().Msg("the newest records are written again")
		}
		return
	}
	r.stats.Failed++
	if fails == 0 {
		r.failing++
	}
	if k := storage.Gist(err); !r.told[k] && len(r.told) < maxKinds {
		r.told[k] = true
		r.log.Warn().Err(err).Msg("the newest records cannot be written; they are taken and stored as before, and missing in what tail shows")
	}
}
