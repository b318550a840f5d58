package natssource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	taken, poison, empty, full          prometheus.Counter
	accepted, rejected                  prometheus.Counter
	bytes, redelivered                  prometheus.Counter
	acks, naks, lost                    prometheus.Counter
	streamPending, streamUnacknowledged prometheus.Gauge
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r prometheus.Registerer, l *ledger) *metrics {
	f := promauto.With(r)
	messages := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_nats_messages_total",
		Help: "Messages that were taken, by result: accepted, unreadable (kept whole in _rejected), empty."}, []string{"result"})
	records := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_nats_records_total",
		Help: "Records of messages, by result; rejected ones go to the service _rejected."}, []string{"result"})
	settled := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_nats_settled_total",
		Help: "Deliveries settled, by how: ack, confirmed by the server; nak; lost, an acknowledgement without an answer."}, []string{"how"})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_nats_ready",
		Help: "1 while messages are taken: there is a connection, the stream is there and loses nothing."}, func() float64 {
		if l.ready() {
			return 1
		}
		return 0
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_nats_held_messages",
		Help: "Messages that this ingester was delivered and that are not stored."}, func() float64 { return float64(l.len()) })
	return &metrics{
		taken:    messages.WithLabelValues("accepted"),
		poison:   messages.WithLabelValues("unreadable"),
		empty:    messages.WithLabelValues("empty"),
		accepted: records.WithLabelValues("accepted"),
		rejected: records.WithLabelValues("rejected"),
		acks:     settled.WithLabelValues("ack"),
		naks:     settled.WithLabelValues("nak"),
		lost:     settled.WithLabelValues("lost"),
		full: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_nats_full_total",
			Help: "Times that a message had to wait because the log was full."}),
		bytes: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_nats_received_bytes_total",
			Help: "Bytes of message bodies, as they came."}),
		redelivered: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_nats_redelivered_total",
			Help: "Messages that were delivered not for the first time."}),
		streamPending: f.NewGauge(prometheus.GaugeOpts{Name: "blobtail_nats_lag_messages",
			Help: "Messages of the stream that no ingester was delivered."}),
		streamUnacknowledged: f.NewGauge(prometheus.GaugeOpts{Name: "blobtail_nats_pending_messages",
			Help: "Messages of the stream that ingesters were delivered and have not acknowledged."}),
	}
}
