package buffer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the buffer's own; they work unregistered too.
type metrics struct {
	records, bytes      prometheus.Counter
	duplicates, refused prometheus.Counter
	cut, stored         prometheus.Counter
	failures, aside     prometheus.Counter
	damaged, salvaged   prometheus.Counter
	store               prometheus.Histogram
}

func newMetrics(b *Buffer) *metrics {
	reg := b.o.Metrics
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "blobtail_buffer_" + name, Help: help})
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_" + name, Help: help}, f))
	}
	m := &metrics{
		records:    counter("records_total", "Records appended to the log."),
		bytes:      counter("bytes_total", "Bytes of canonical lines appended to the log."),
		duplicates: counter("duplicates_total", "Requests recognised as repeats."),
		refused:    counter("refused_total", "Requests refused because the log or its disk is full."),
		cut:        counter("batches_cut_total", "Batches cut."),
		stored:     counter("batches_stored_total", "Batches surely stored."),
		failures:   counter("store_failures_total", "Attempts to store a batch that failed or whose outcome is unknown."),
		aside:      counter("batches_aside_total", "Batches that cannot be rebuilt from the log and were set aside."),
		damaged:    counter("log_damaged_total", "Damaged spans found in the log on start."),
		salvaged:   counter("batches_salvaged_total", "Batches that lacked runs at a start; what was there of them was cut anew."),
		store: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "blobtail_buffer_store_seconds", Help: "Time to encode and store a batch.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
	}
	reg.MustRegister(m.store)
	gauge("log_bytes", "Bytes of the log on disk.", func() float64 { return float64(b.log.Size()) })
	gauge("buffer_open_batches", "Batches that still grow.", func() float64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return float64(len(b.open))
	})
	gauge("buffer_queued_batches", "Batches cut and not stored.", func() float64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return float64(len(b.queue))
	})
	gauge("oldest_unflushed_seconds", "Age of the oldest record that is not in a blob; 0 when there is none.", func() float64 {
		return b.oldest().Seconds()
	})
	return m
}

// oldest is how long the oldest unstored record has been here (since the start,
// where a start found it).
func (b *Buffer) oldest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, age := time.Now(), time.Duration(0)
	for _, ob := range b.open {
		age = max(age, now.Sub(ob.since))
	}
	for _, batch := range b.queue {
		age = max(age, now.Sub(batch.since))
	}
	return age
}
