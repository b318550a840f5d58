package main

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/cli"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/openstore"
	"blobtail/storage"
	"blobtail/storage/traffic"
)

const (
	// readyFor is how long an answer of the store counts. Probes need no token, and each
	// question to the store costs.
	readyFor = 5 * time.Second
	// readyWait is how long the store may take.
	readyWait = 5 * time.Second
)

// readiness tells whether the store answers.
type readiness struct {
	store *openstore.Store
	log   zerolog.Logger

	mu   sync.Mutex
	last time.Time
	err  error
}

// check asks the store, unless it was asked just before.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.last) < readyFor {
		return r.err
	}
	// The question outlives a client that goes away: the next one has its answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWait)
	defer cancel()
	was := r.err
	r.err = nil
	for _, err := range r.store.Blobs.List(ctx, nowhere, "") {
		r.err = err
		break
	}
	r.last = time.Now()
	switch {
	case r.err != nil && (was == nil || storage.Gist(was) != storage.Gist(r.err)):
		r.log.Warn().Err(r.store.Explained(r.err)).Msg("not ready: the store does not answer")
	case r.err == nil && was != nil:
		r.log.Info().Msg("ready again")
	}
	return r.err
}

// nowhere is the beginning of no key, so that a listing is one small page.
const nowhere = ".-"

func (r *readiness) answer(w http.ResponseWriter, q *http.Request) {
	if err := r.check(q.Context()); err != nil {
		door.Say(w, http.StatusServiceUnavailable, "not ready: the store does not answer; the log has the reason")
		return
	}
	door.Say(w, http.StatusOK, "ready")
}

// showIndexes registers the numbers of the indexes of blobs in memory.
func (s *server) showIndexes(reg *count.Registry) {
	reg.Collect(func(p *count.Page) {
		n := s.reader.Indexes()
		p.Family("blobtail_serve_index_lookups_total", "counter", "Indexes of blobs that queries looked up in memory.")
		p.Value(float64(n.Lookups))
		p.Family("blobtail_serve_index_hits_total", "counter", "Indexes of blobs that were found in memory.")
		p.Value(float64(n.Hits))
		p.Family("blobtail_serve_indexes", "gauge", "Indexes of blobs in memory.")
		p.Value(float64(n.Kept))
		p.Family("blobtail_serve_index_bytes", "gauge", "Bytes of the indexes in memory.")
		p.Value(float64(n.Bytes))
	})
}

// show registers the numbers of the store, of the indexes and of the process.
func (s *server) show(reg *count.Registry) {
	s.showIndexes(reg)
	kinds := func(name, help string, value func(requests, bytes int64) int64) {
		reg.Collect(func(p *count.Page) {
			p.Family(name, "counter", help)
			for kind := range traffic.Kinds {
				requests, bytes := s.a.store.Traffic.Of(kind)
				if kind == traffic.Live {
					requests, bytes = s.a.sent.Of(kind)
				}
				p.Value(float64(value(requests, bytes)), "kind", kind.String())
			}
		})
	}
	kinds("blobtail_serve_storage_requests_total", "Requests to the store, and to ingesters (live), by kind.", func(requests, _ int64) int64 { return requests })
	kinds("blobtail_serve_storage_bytes_total", "Bytes of their answers, by kind.", func(_, bytes int64) int64 { return bytes })
	reg.Gauge("blobtail_serve_start_time_seconds", "When the process started, in seconds since 1970.").Set(float64(s.a.started.UnixMilli()) / 1000)
	reg.GaugeFunc("blobtail_serve_memory_bytes", "Memory that the process has from the system.", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Sys - m.HeapReleased)
	})
	reg.GaugeFunc("blobtail_serve_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	reg.Collect(func(p *count.Page) {
		p.Family("blobtail_serve_info", "gauge", "Always 1; the version is a label.")
		p.Value(1, "version", cli.Version())
	})
}
