package buffer

import (
	"blobtail/internal/count"
	"time"
)

// metrics are the buffer's own; they work unregistered too.
type metrics struct {
	records, bytes      *count.Counter
	duplicates, refused *count.Counter
	cut                 count.Counters // by reason
	stored              *count.Counter
	failures, aside     *count.Counter
	damaged, salvaged   *count.Counter
	lost                *count.Counter
	redelivered, parked *count.Counter
	expired             *count.Counter // records
	batchesExpired      *count.Counter
	store               *count.Histogram
}

func newMetrics(b *Buffer) *metrics {
	reg := b.o.Metrics
	named := func(name, help string) *count.Counter {
		return reg.Counter("blobtail_"+name, help)
	}
	counter := func(name, help string) *count.Counter { return named("buffer_"+name, help) }
	gauge := func(name, help string, f func() float64) {
		reg.GaugeFunc("blobtail_"+name, help, f)
	}
	m := &metrics{
		records:    counter("records_total", "Records appended to the log."),
		bytes:      counter("bytes_total", "Bytes of lines appended to the log."),
		duplicates: counter("duplicates_total", "Requests that came before. Many: answers get lost, or senders wait too briefly."),
		refused:    counter("refused_total", "Attempts of requests that found the log or its disk full; after 5 s senders get 429."),
		cut: reg.Counters("blobtail_buffer_batches_cut_total",
			"Batches cut, by reason: request, one waits for a blob; messages, too many wait; log, over log.soft; disk, full.", "reason"),
		stored:      counter("batches_stored_total", "Batches surely stored. They follow batches_cut, less batches_expired."),
		failures:    counter("store_failures_total", "Attempts to store a batch that failed or whose outcome is unknown; see the log."),
		aside:       counter("batches_aside_total", "Batches that cannot be stored, because the log under them is damaged or was copied."),
		damaged:     counter("log_damaged_total", "Damaged spans found in the log on start."),
		salvaged:    counter("batches_salvaged_total", "Batches that lacked runs; the other runs were cut anew. Without log_damaged it is the result of a power cut."),
		lost:        counter("records_lost_total", "Records that were damaged in the log, or missing from it, before they were stored: at least so many."),
		redelivered: counter("redelivered_total", "Messages delivered again before their first copy was stored. Many: one was killed."),
		parked:      counter("batches_parked_total", "Batches copied to the log's end because they held it: the store refuses a service."),
		expired: named("records_expired_total",
			"Records of dropped days, which were not kept. Without old logs: a policy keeps too little, or a sender's clock is wrong."),
		batchesExpired: named("batches_expired_total", "Batches that waited for longer than logs are kept, and were not stored."),
		store:          reg.Histogram("blobtail_buffer_store_seconds", "Time to encode and store a batch.", count.Powers(0.005, 2, 14)),
	}
	for _, why := range []reason{bySize, byAge, byMaxAge, byRequest, byMessages, byLog, byDisk, byFlush} {
		m.cut.With(string(why)) // served from the start
	}
	b.showLoad(gauge)
	return m
}

// showLoad serves the sizes of the log and the queues.
func (b *Buffer) showLoad(gauge func(name, help string, f func() float64)) {
	gauge("log_bytes", "Bytes of the log on disk.", func() float64 { return float64(b.log.Size()) })
	locked := func(name, help string, n func() int) {
		gauge(name, help, func() float64 {
			b.mu.Lock()
			defer b.mu.Unlock()
			return float64(n())
		})
	}
	locked("buffer_open_batches", "Batches that still grow. Thousands: many services, old logs.", func() int { return len(b.index.open) })
	locked("buffer_queued_batches", "Batches cut and not stored.", func() int { return b.index.oldest.Len() - len(b.index.open) })
	locked("buffer_messages", "Messages of JetStream accepted and not stored.", func() int { return len(b.messages.byOrigin) })
	gauge("flush_max_age_seconds", "flush.max-age in force: at this age a record goes to the store.", b.o.MaxAge.Seconds)
	gauge("oldest_unflushed_seconds", "Age of the oldest record that is in no blob, since it came to this log; 0: none.", func() float64 {
		since, ok := b.Oldest()
		if !ok {
			return 0
		}
		return max(0, time.Since(since).Seconds())
	})
}

// Oldest is the arrival of the oldest unflushed record, in this process or one before;
// ok is false when there is none.
func (b *Buffer) Oldest() (since time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index.oldest.Len() == 0 {
		return since, false
	}
	return b.index.oldest.all[0].since, true
}

// Earliest is the least time of the unflushed records, in Unix nanoseconds; ok is false when there
// is none. It may be less if a start has not found the times of some records.
func (b *Buffer) Earliest() (ns int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.index.earliest.Len() == 0 {
		return ns, false
	}
	return b.index.earliest.all[0].span.First, true
}
