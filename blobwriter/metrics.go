package blobwriter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"blobtail/blobfmt"
)

// metrics are the writer's own; they work unregistered too.
type metrics struct {
	blobs, records, raw, stored prometheus.Counter
	foreign, walks              prometheus.Counter
	create, size                prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: "blobtail_blob_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return with.NewHistogram(prometheus.HistogramOpts{Name: "blobtail_blob_" + name, Help: help, Buckets: buckets})
	}
	return &metrics{
		blobs:   counter("written_total", "Blobs surely written."),
		records: counter("records_total", "Records in them."),
		raw:     counter("raw_bytes_total", "Bytes of lines in them."),
		stored:  counter("stored_bytes_total", "Bytes that they take in the store."),
		foreign: counter("foreign_total", "Names found taken by another batch. Many: two ingesters share a lane."),
		walks:   counter("walks_total", "Times that a period was listed to find a number that is not taken."),
		create:  histogram("create_seconds", "Time of one create request.", prometheus.ExponentialBuckets(0.001, 2, 16)),
		size:    histogram("size_bytes", "Stored size of blobs. Small ones cost a request each.", prometheus.ExponentialBuckets(1<<10, 4, 9)),
	}
}

func (m *metrics) blob(meta blobfmt.Meta, size int) {
	m.blobs.Inc()
	m.records.Add(float64(meta.Records))
	m.raw.Add(float64(meta.RawBytes))
	m.stored.Add(float64(size))
	m.size.Observe(float64(size))
}
