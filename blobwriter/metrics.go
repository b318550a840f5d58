package blobwriter

import (
	"blobtail/blobfmt"
	"blobtail/internal/count"
)

// metrics are the writer's own; they work unregistered too.
type metrics struct {
	blobs, records, raw, stored *count.Counter
	foreign, walks              *count.Counter
	create, size                *count.Histogram
}

func newMetrics(reg *count.Registry) *metrics {
	counter := func(name, help string) *count.Counter {
		return reg.Counter("blobtail_blob_"+name, help)
	}
	histogram := func(name, help string, buckets []float64) *count.Histogram {
		return reg.Histogram("blobtail_blob_"+name, help, buckets)
	}
	return &metrics{
		blobs:   counter("written_total", "Blobs that were surely stored."),
		records: counter("records_total", "Records in the stored blobs."),
		raw:     counter("raw_bytes_total", "Bytes of the lines in the stored blobs. Divided by stored_bytes it is the compression."),
		stored:  counter("stored_bytes_total", "Bytes that the stored blobs take."),
		foreign: counter("foreign_total", "Names found taken by another batch. More than a few a minute: two ingesters share a lane."),
		walks:   counter("walks_total", "Times that a period was listed to find a free number. Many: two ingesters share a lane."),
		create:  histogram("create_seconds", "Time of one create request.", count.Powers(0.001, 2, 16)),
		size:    histogram("size_bytes", "Stored size of blobs. Most below 64 KiB: flush.max-age is short.", count.Powers(1<<10, 4, 9)),
	}
}

func (m *metrics) blob(meta blobfmt.Meta, size int) {
	m.blobs.Inc()
	m.records.Add(int64(meta.Records))
	m.raw.Add(meta.RawBytes)
	m.stored.Add(int64(size))
	m.size.Observe(float64(size))
}
