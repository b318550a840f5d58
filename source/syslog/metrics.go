package syslog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	accepted, rejected, lost              prometheus.Counter
	plain                                 prometheus.Counter
	served, denied, tooMany, untrusted    prometheus.Counter
	idle, slow, broken, crowded, finished prometheus.Counter
	bytes, full                           prometheus.Counter
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r prometheus.Registerer, s *Source) *metrics {
	f := promauto.With(r)
	records := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_syslog_records_total",
		Help: "Records of syslog, by result: accepted; rejected, kept in the service _rejected; lost, because the log accepted nothing until the ingester ended."},
		[]string{"result"})
	conns := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_syslog_connections_total",
		Help: "Connections of syslog, by result: served; denied, from no allowed network; full, more than may be open; tls, without a handshake."},
		[]string{"result"})
	ended := f.NewCounterVec(prometheus.CounterOpts{Name: "blobtail_syslog_ended_total",
		Help: "Connections that were served and have ended, by reason: closed by the sender; idle; slow, within a message; broken; memory, there was none for a message."},
		[]string{"reason"})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_syslog_connections",
		Help: "Connections of syslog that are open."}, func() float64 { return float64(s.open.Load()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "blobtail_syslog_buffer_bytes",
		Help: "Bytes that the buffers of connections have."}, func() float64 { return float64(s.held.Load()) })
	return &metrics{
		accepted:  records.WithLabelValues("accepted"),
		rejected:  records.WithLabelValues("rejected"),
		lost:      records.WithLabelValues("lost"),
		served:    conns.WithLabelValues("served"),
		denied:    conns.WithLabelValues("denied"),
		tooMany:   conns.WithLabelValues("full"),
		untrusted: conns.WithLabelValues("tls"),
		finished:  ended.WithLabelValues("closed"),
		idle:      ended.WithLabelValues("idle"),
		slow:      ended.WithLabelValues("slow"),
		broken:    ended.WithLabelValues("broken"),
		crowded:   ended.WithLabelValues("memory"),
		plain: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_syslog_plain_total",
			Help: "Messages in no known form; their records have all of it as text."}),
		bytes: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_syslog_received_bytes_total",
			Help: "Bytes that were received over connections of syslog, without TLS."}),
		full: f.NewCounter(prometheus.CounterOpts{Name: "blobtail_syslog_full_total",
			Help: "Times that a batch had to wait because the log accepted nothing."}),
	}
}
