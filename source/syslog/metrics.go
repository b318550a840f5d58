package syslog

import (
	"blobtail/internal/count"
)

type metrics struct {
	accepted, rejected, lost              *count.Counter
	plain                                 *count.Counter
	served, denied, tooMany, untrusted    *count.Counter
	idle, slow, broken, crowded, finished *count.Counter
	foreign, noise                        *count.Counter
	bytes, full                           *count.Counter
}

// newMetrics registers the counters with r, or nowhere when it is nil.
func newMetrics(r *count.Registry, s *Source) *metrics {
	records := r.Counters("blobtail_syslog_records_total", "Records of syslog, by result: accepted; rejected, kept in the service _rejected; lost, because the log accepted nothing until the ingester ended.", "result")
	conns := r.Counters("blobtail_syslog_connections_total", "Connections of syslog, by result: served; denied, from no allowed network; full, beyond syslog.max-connections; tls, without a handshake or a certificate.", "result")
	ended := r.Counters("blobtail_syslog_ended_total", "Connections that were served and have ended, by reason: closed by the sender; idle; slow, within a message; broken; memory, there was none for a message; foreign, another protocol; noise, it began with three messages of XML or no text.", "reason")
	r.GaugeFunc("blobtail_syslog_connections", "Connections of syslog that are open.", func() float64 { return float64(s.open.Load()) })
	r.GaugeFunc("blobtail_syslog_buffer_bytes", "Bytes that connections buffer; 64 MiB at most.", func() float64 { return float64(s.held.Load()) })
	return &metrics{
		accepted:  records.With("accepted"),
		rejected:  records.With("rejected"),
		lost:      records.With("lost"),
		served:    conns.With("served"),
		denied:    conns.With("denied"),
		tooMany:   conns.With("full"),
		untrusted: conns.With("tls"),
		finished:  ended.With("closed"),
		idle:      ended.With("idle"),
		slow:      ended.With("slow"),
		broken:    ended.With("broken"),
		crowded:   ended.With("memory"),
		foreign:   ended.With("foreign"),
		noise:     ended.With("noise"),
		plain:     r.Counter("blobtail_syslog_plain_total", "Messages in no known form, kept as text. Many: another protocol."),
		bytes:     r.Counter("blobtail_syslog_received_bytes_total", "Bytes that were received over connections of syslog, without TLS."),
		full:      r.Counter("blobtail_syslog_full_total", "Times that all senders had to wait because the log accepted nothing."),
	}
}
