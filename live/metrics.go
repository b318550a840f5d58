package live

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	records  prometheus.Counter
	failed   prometheus.Counter
	seconds  prometheus.Histogram
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	m := &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_live_requests_total",
			Help: "Questions for live records by status code; 499 is a reader that did not wait."}, []string{"code"}),
		records: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_live_records_total",
			Help: "Records sent in answers to them."}),
		failed: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_live_peers_failed_total",
			Help: "Other ingesters that had to be asked and did not answer, or not to the end."}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{Name: "blobtail_live_seconds",
			Help:    "Time from the header of a question to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}),
	}
	m.requests.WithLabelValues("200") // there from the start, for who looks at rates
	return m
}
