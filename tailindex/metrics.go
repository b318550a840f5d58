package tailindex

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/storage"
)

type metrics struct {
	writes                    *prometheus.CounterVec
	records, omitted, outside prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, w *Writer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blobtail_tail_writes_total", Help: "Writes to the tables of the newest records, one for each service, by result.",
		}, []string{"result"}),
		records: counter("blobtail_tail_records_total", "Records in rows of the newest records."),
		omitted: counter("blobtail_tail_omitted_total", "Records that such rows count and do not have."),
		outside: counter("blobtail_tail_outside_total", "Records that are too old for the newest, or ahead of the clock."),
	}
	m.writes.WithLabelValues("written")
	m.writes.WithLabelValues("failed")
	if reg == nil {
		return m
	}
	reg.MustRegister(m.writes, m.records, m.omitted, m.outside,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "blobtail_tail_behind_seconds", Help: "Age of the oldest record that waits to be written to the tables.",
		}, func() float64 { _, behind := w.waiting(); return behind.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "blobtail_tail_pending_services", Help: "Services with records that wait to be written to the tables.",
		}, func() float64 { n, _ := w.waiting(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "blobtail_tail_held_bytes", Help: "Memory that such records hold.",
		}, func() float64 { return float64(w.bytes.Load()) }))
	return m
}

// waiting is how many services have something to write, and for how long.
func (w *Writer) waiting() (services int, behind time.Duration) {
	now := time.Now()
	w.each(func(s *service) {
		since := s.since
		if since.IsZero() && s.batch != nil {
			since = s.batch.since
		}
		if !since.IsZero() {
			services++
			behind = max(behind, now.Sub(since))
		}
	})
	return services, behind
}

// reporter speaks once for each kind of failure, and once when all is over.
type reporter struct {
	log     zerolog.Logger
	mu      sync.Mutex
	failing int // services whose last write failed
	told    map[string]bool
}

// maxKinds bounds how many kinds of failure one trouble may have.
const maxKinds = 10

func (r *reporter) failed(err error, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first {
		r.failing++
	}
	k := failureKind(err)
	if r.told[k] || len(r.told) >= maxKinds {
		return
	}
	r.told[k] = true
	r.log.Warn().Err(err).Msg("the newest records cannot be written; they are taken and stored as before, and missing in what tail shows")
}

func (r *reporter) recovered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing--; r.failing == 0 {
		clear(r.told)
		r.log.Info().Msg("the newest records are written again")
	}
}

// failureKind is the part of an error's text that does not differ from one time to
// the next, nor from service to service.
func failureKind(err error) string {
	var key *storage.KeyError
	if errors.As(err, &key) {
		err = key.Err
	}
	s, _, _ := strings.Cut(err.Error(), " (request ")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, s)
}
