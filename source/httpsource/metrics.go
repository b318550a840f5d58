package httpsource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests                       *prometheus.CounterVec
	accepted, rejected, duplicates prometheus.Counter
	wire, decoded                  prometheus.Counter
	seconds                        prometheus.Histogram
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r prometheus.Registerer, b *budget) *metrics {
	f := promauto.With(r)
	records := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_http_records_total",
		Help: "Records of HTTP requests that were appended to the log, by result; rejected ones go to the service _rejected."}, []string{"result"})
	received := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_http_received_bytes_total",
		Help: "Bytes of request bodies, as they came over the wire and decoded."}, []string{"form"})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_http_in_flight_bytes",
		Help: "Bytes that request bodies hold in memory."}, func() float64 { return float64(b.inUse()) })
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_http_requests_total",
			Help: "HTTP requests by status code and protocol; 499 is a client that had gone."}, []string{"code", "protocol"}),
		accepted:   records.WithLabelValues("accepted"),
		rejected:   records.WithLabelValues("rejected"),
		duplicates: records.WithLabelValues("duplicate"),
		wire:       received.WithLabelValues("wire"),
		decoded:    received.WithLabelValues("decoded"),
		seconds: f.NewHistogram(prometheus.HistogramOpts{Name: "blobtail_http_request_seconds",
			Help:    "Time from the header of a request to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}),
	}
}
