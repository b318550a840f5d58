package httpsource

import (
	"blobtail/internal/count"
)

type metrics struct {
	requests                       count.Counters
	accepted, rejected, duplicates *count.Counter
	wire, decoded                  *count.Counter
	seconds                        *count.Histogram
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r *count.Registry, b *budget) *metrics {
	records := r.Counters("blobtail_http_records_total", "Records of HTTP requests that were appended to the log, by result; rejected ones go to the service _rejected.", "result")
	received := r.Counters("blobtail_http_received_bytes_total", "Bytes of request bodies, as they came and decoded.", "form")
	r.GaugeFunc("blobtail_http_in_flight_bytes", "Bytes of request bodies in memory.", func() float64 { return float64(b.inUse()) })
	return &metrics{
		requests:   r.Counters("blobtail_http_requests_total", "HTTP requests by status code and protocol; 499 is a client that had gone.", "code", "protocol"),
		accepted:   records.With("accepted"),
		rejected:   records.With("rejected"),
		duplicates: records.With("duplicate"),
		wire:       received.With("wire"),
		decoded:    received.With("decoded"),
		seconds:    r.Histogram("blobtail_http_request_seconds", "Time from the header of a request to its answer. Over 1 s: slow fsync, or full.", count.Powers(0.001, 4, 9)),
	}
}
