package httpguard

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"blobtail/internal/exposition"
)

// counts are the numbers of a guard.
type counts struct {
	mu       sync.Mutex
	inFlight int
	requests map[answered]int64
	refused  map[string]int64
	seconds  map[string]*spread // by route
	fetched  int64
}

// answered is a series of requests.
type answered struct {
	route string
	code  int
}

// spread is a histogram of seconds.
type spread struct {
	counts []int64
	sum    float64
}

// bounds are those of the histograms, in seconds.
func bounds() []float64 { return []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 120} }

// reasons are those of refusals.
func reasons() []string {
	return []string{"crowded", "expired", "forbidden", "host", "missing", "origin", "secret", "unknown"}
}

func (c *counts) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight++
}

func (c *counts) refuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = make(map[string]int64)
	}
	c.refused[reason]++
}

func (c *counts) end(route Route, code int, took time.Duration, fetched int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	c.fetched += fetched
	if c.requests == nil {
		c.requests, c.seconds = make(map[answered]int64), make(map[string]*spread)
	}
	c.requests[answered{route.Name, code}]++
	if route.Kind == Tail {
		return // how long people look on is no speed
	}
	s := c.seconds[route.Name]
	if s == nil {
		s = &spread{counts: make([]int64, len(bounds())+1)}
		c.seconds[route.Name] = s
	}
	at, _ := slices.BinarySearch(bounds(), took.Seconds())
	s.counts[at]++
	s.sum += took.Seconds()
}

// Metrics adds the numbers of the guard to a page.
func (g *Guard) Metrics(p *exposition.Page) {
	c := &g.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Family("blobtail_serve_requests_total", "counter", "Answered requests by route and code; 499: the client went away.")
	for _, k := range slices.SortedFunc(maps.Keys(c.requests), func(a, b answered) int {
		return cmp.Or(cmp.Compare(a.route, b.route), cmp.Compare(a.code, b.code))
	}) {
		p.Value(float64(c.requests[k]), "route", k.route, "code", strconv.Itoa(k.code))
	}
	p.Family("blobtail_serve_request_seconds", "histogram", "Time of requests by route, without tails.")
	for _, route := range slices.Sorted(maps.Keys(c.seconds)) {
		s := c.seconds[route]
		p.Histogram(bounds(), s.counts, s.sum, "route", route)
	}
	p.Family("blobtail_serve_refused_total", "counter", "Requests that the doors refused, by reason.")
	for _, reason := range reasons() {
		p.Value(float64(c.refused[reason]), "reason", reason)
	}
	p.Family("blobtail_serve_in_flight", "gauge", "Requests under way, with tails.")
	p.Value(float64(c.inFlight))
	p.Family("blobtail_serve_queries", "gauge", "Queries that run.")
	p.Value(float64(len(g.queries.slots)))
	p.Family("blobtail_serve_queries_max", "gauge", "Queries that may run at once.")
	p.Value(float64(cap(g.queries.slots)))
	p.Family("blobtail_serve_queries_waiting", "gauge", "Queries that wait for others to end.")
	p.Value(float64(g.queries.waits()))
	p.Family("blobtail_serve_tails", "gauge", "Tails under way.")
	p.Value(float64(len(g.tails.slots)))
	p.Family("blobtail_serve_fetched_bytes_total", "counter", "Bytes that queries fetched from the store.")
	p.Value(float64(c.fetched))
}

// waits is how many wait.
func (g *gate) waits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}
