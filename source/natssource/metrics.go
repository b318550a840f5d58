package natssource

import (
	"blobtail/internal/count"
)

type metrics struct {
	taken, poison, empty, full          *count.Counter
	accepted, rejected                  *count.Counter
	bytes, redelivered                  *count.Counter
	acks, naks, lost                    *count.Counter
	streamPending, streamUnacknowledged *count.Gauge
	untaken                             *count.Gauge
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r *count.Registry, l *ledger, ready func() bool) *metrics {
	messages := r.Counters("blobtail_nats_messages_total", "Messages that were taken, by result; unreadable ones are in _rejected.", "result")
	records := r.Counters("blobtail_nats_records_total", "Records of messages, by result; rejected ones go to the service _rejected.", "result")
	settled := r.Counters("blobtail_nats_settled_total", "Deliveries settled, by how: ack, confirmed by the server; nak; lost, an acknowledgement without an answer: the message comes again.", "how")
	r.GaugeFunc("blobtail_nats_ready", "1 while messages are taken: there is a connection, the stream is there and loses nothing, and all consumers answer.", func() float64 {
		if ready() {
			return 1
		}
		return 0
	})
	r.GaugeFunc("blobtail_nats_held_messages", "Messages that this ingester was delivered and that are not stored.", func() float64 { return float64(l.len()) })
	return &metrics{
		taken:                messages.With("accepted"),
		poison:               messages.With("unreadable"),
		empty:                messages.With("empty"),
		accepted:             records.With("accepted"),
		rejected:             records.With("rejected"),
		acks:                 settled.With("ack"),
		naks:                 settled.With("nak"),
		lost:                 settled.With("lost"),
		full:                 r.Counter("blobtail_nats_full_total", "Times that a message had to wait because the log was full, or could not be written."),
		bytes:                r.Counter("blobtail_nats_received_bytes_total", "Bytes of message bodies, as they came."),
		redelivered:          r.Counter("blobtail_nats_redelivered_total", "Messages that were delivered not for the first time."),
		streamPending:        r.Gauge("blobtail_nats_lag_messages", "Messages that no ingester was delivered, of all that this one may take."),
		streamUnacknowledged: r.Gauge("blobtail_nats_pending_messages", "Messages delivered and not acknowledged, of all that this one may take. 500,000: no more come."),
		untaken:              r.Gauge("blobtail_nats_untaken_messages", "Messages in partitions of the stream that no ingester asks for."),
	}
}
