package door

import (
	"strconv"
	"sync/atomic"
	"time"

	"blobtail/internal/count"
)

// metrics are the numbers of [Reads].
type metrics struct {
	inFlight atomic.Int64
	requests count.Counters
	seconds  count.Histograms
	fetched  *count.Counter
	lacking  *count.Counter
}

func newMetrics(s *Reads) *metrics {
	reg := s.o.Metrics
	m := &metrics{
		requests: reg.Counters("blobtail_serve_requests_total", "Answers by route and code; 499: the client went away; 429: too many; 504: too long.", "route", "code"),
		seconds: reg.Histograms("blobtail_serve_request_seconds", "Time of requests by route, without tails.",
			[]float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 120}, "route"),
		fetched: reg.Counter("blobtail_serve_fetched_bytes_total", "Bytes that queries fetched from the store."),
		lacking: reg.Counter("blobtail_serve_incomplete_total", "Queries and tails whose answers lacked records."),
	}
	gauge := func(name, help string, value func() int) {
		reg.GaugeFunc("blobtail_serve_"+name, help, func() float64 { return float64(value()) })
	}
	gauge("in_flight", "Requests under way, with tails.", func() int { return int(m.inFlight.Load()) })
	gauge("queries", "Queries that run.", func() int { in, _ := s.queries.counts(); return in })
	gauge("queries_max", "Queries that may run at once.", func() int { return s.queries.places })
	gauge("queries_waiting", "Queries that wait for others to end.", func() int { _, waiting := s.queries.counts(); return waiting })
	gauge("tails", "Tails under way.", func() int { in, _ := s.tails.counts(); return in })
	return m
}

func (m *metrics) end(route Route, code int, took time.Duration, sum Read) {
	m.inFlight.Add(-1)
	m.fetched.Add(sum.Bytes)
	if sum.Incomplete && code != clientGone { // a client that goes away cuts its reads off
		m.lacking.Inc()
	}
	m.requests.With(route.Name, strconv.Itoa(code)).Inc()
	if route.Kind != Tail { // how long people look on is no speed
		m.seconds.With(route.Name).Observe(took.Seconds())
	}
}
