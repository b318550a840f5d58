package main

import (
	"maps"
	"slices"
	"strconv"

	"blobtail/buffer/ship"
	"blobtail/internal/clockskew"
	"blobtail/internal/count"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/tailindex"
)

// Packages that logquery links too count in plain numbers; here these become
// metrics.

// counters registers counters that call a function for their value.
type counters struct{ reg *count.Registry }

func (c counters) counter(name, help string, value func() uint64) {
	c.reg.CounterFunc(name, help, func() float64 { return float64(value()) })
}

// results registers a counter with the label result: good or failed.
func (c counters) results(name, help, good string, values func() (good, failed uint64)) {
	c.reg.Collect(func(p *count.Page) {
		worked, failed := values()
		p.Family(name, "counter", help)
		p.Value(float64(failed), "result", "failed")
		p.Value(float64(worked), "result", good)
	})
}

func (c counters) gauge(name, help string, value func() float64) { c.reg.GaugeFunc(name, help, value) }

// showCompany registers the metrics of the announcements.
func showCompany(a *lease.Announcer, clock *clockskew.Checker, reg *count.Registry) {
	c := counters{reg}
	c.results("blobtail_heartbeat_total", "Writes of its row, by result. Without, it refuses records when it holds none.", "written", a.Beats)
	c.gauge("blobtail_lane", "Lane of this ingester; two should not have the same.", func() float64 { return float64(a.Lane()) })
	c.gauge("blobtail_clock_skew_seconds", "How far the clock is ahead of the store's; 0: not known. Beyond 300: not ready.", func() float64 { return clock.Skew().Seconds() })
}

// showShip registers the metrics of the shipped log.
func showShip(s *ship.Shipper, reg *count.Registry) {
	c := counters{reg}
	c.results("blobtail_ship_objects_total", "Attempts to ship a part of the log, by result; else nothing is shipped.", "created",
		func() (made, failed uint64) { made, failed, _ = s.Stats(); return made, failed })
	c.counter("blobtail_ship_bytes_total", "Bytes of the parts of the log in the store, compressed.",
		func() uint64 { _, _, n := s.Stats(); return n })
}

// showTail registers the metrics of the tail's writer.
func showTail(w *tailindex.Writer, reg *count.Registry) {
	c := counters{reg}
	c.results("blobtail_tail_writes_total", "Writes to the tables of the newest records, one for each service, by result.", "written",
		func() (written, failed uint64) { s := w.Stats(); return s.Written, s.Failed })
	c.counter("blobtail_tail_records_total", "Records in rows of the newest records.", func() uint64 { return w.Stats().Records })
	c.counter("blobtail_tail_omitted_total", "Records beyond 100 of a row, or over 16 KiB.", func() uint64 { return w.Stats().Omitted })
	c.counter("blobtail_tail_outside_total", "Records over 24 h old, or 10 min ahead: in blobs alone.", func() uint64 { return w.Stats().Outside })
	c.gauge("blobtail_tail_behind_seconds", "Age of the oldest record that waits to be written to the tables of the newest.",
		func() float64 { _, behind := w.Waiting(); return behind.Seconds() })
	c.gauge("blobtail_tail_pending_services", "Services with records that wait to be written to the tables.",
		func() float64 { n, _ := w.Waiting(); return float64(n) })
	c.gauge("blobtail_tail_held_bytes", "Memory of waiting records; 64 MiB at most.", func() float64 { return float64(w.Stats().Held) })
}

// showLive registers the metrics of questions for unflushed records.
func showLive(h *live.Handler, reg *count.Registry) {
	c := counters{reg}
	reg.Collect(func(p *count.Page) {
		all := h.Stats().Questions
		all[200] += 0 // rates need it from the start
		p.Family("blobtail_live_requests_total", "counter", "Questions for live records by status; 499: the reader left; 503: too many.")
		for _, code := range slices.Sorted(maps.Keys(all)) {
			p.Value(float64(all[code]), "code", strconv.Itoa(code))
		}
	})
	reg.CounterFunc("blobtail_live_seconds_total", "Time that answers to them took. Over 5 s for each: an ingester is slow.",
		func() float64 { return h.Stats().Seconds })
	c.counter("blobtail_live_records_total", "Live records that were sent in answers.", func() uint64 { return h.Stats().Records })
	c.counter("blobtail_live_peers_failed_total",
		"Other ingesters that did not answer, or not to the end: reads are incomplete.", func() uint64 { return h.Stats().PeersFailed })
}
