// Package count counts the work of a program, and tells Prometheus.
//
// A part of a program is given a [Registry] and makes its metrics there: a [Counter], a
// [Gauge] or a [Histogram], or [Counters] and [Histograms] by labels. A part that keeps plain
// numbers gives a function ([Registry.CounterFunc], [Registry.GaugeFunc], [Registry.Collect]).
// With a nil Registry all of these count, and nobody is told. The Registry answers GET
// /metrics, in the text format of Prometheus.
//
// Each start of logquery links this package. It has no tables and imports no library, because
// those take their time before a command does anything.
package count

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Registry has the metrics of a program. The zero value is empty. Its methods may be called
// at once.
type Registry struct {
	mu    sync.Mutex
	names map[string]bool
	all   []func(*Page)
}

// Collect has a function write some metrics whenever a page is made. Their names must be in
// no other metric of the registry. The function must not register anything.
func (r *Registry) Collect(write func(*Page)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, write)
}

// family registers one metric. Two metrics of one name are a mistake in the program, and
// Prometheus would take neither.
func (r *Registry) family(name, kind, help string, write func(*Page)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[name] {
		panic("count: there are two metrics " + name)
	}
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[name] = true
	r.all = append(r.all, func(p *Page) {
		p.Family(name, kind, help)
		write(p)
	})
}

// Page returns all metrics as they are now.
func (r *Registry) Page() []byte {
	r.mu.Lock()
	all := slices.Clone(r.all)
	r.mu.Unlock()
	p := new(Page)
	for _, write := range all {
		write(p)
	}
	return p.Bytes()
}

// ServeHTTP answers with all metrics.
func (r *Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ContentType)
	_, _ = w.Write(r.Page()) // a client that has gone needs no answer
}

// Counter is a number that only rises. Its methods may be called at once.
type Counter struct{ n atomic.Uint64 }

// Inc adds 1.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n, unless it is negative.
func (c *Counter) Add(n int64) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

// Value is the number.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Counter makes a counter.
func (r *Registry) Counter(name, help string) *Counter {
	c := new(Counter)
	r.CounterFunc(name, help, func() float64 { return float64(c.Value()) })
	return c
}

// CounterFunc makes a counter that takes its number from a function.
func (r *Registry) CounterFunc(name, help string, value func() float64) {
	r.family(name, "counter", help, func(p *Page) { p.Value(value()) })
}

// Gauge is a number that rises and falls. Its methods may be called at once.
type Gauge struct{ bits atomic.Uint64 }

// Set sets the number.
func (g *Gauge) Set(v float64) { g.bits.Store(math.Float64bits(v)) }

// Value is the number.
func (g *Gauge) Value() float64 { return math.Float64frombits(g.bits.Load()) }

// Gauge makes a gauge.
func (r *Registry) Gauge(name, help string) *Gauge {
	g := new(Gauge)
	r.GaugeFunc(name, help, g.Value)
	return g
}

// GaugeFunc makes a gauge that takes its number from a function.
func (r *Registry) GaugeFunc(name, help string, value func() float64) {
	r.family(name, "gauge", help, func(p *Page) { p.Value(value()) })
}

// Histogram has values by size. Its methods may be called at once.
type Histogram struct {
	bounds []float64
	counts []atomic.Int64 // the last is beyond the last bound
	sum    Gauge
}

func newHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// Observe adds a value. It belongs to the first bound that is not less.
func (h *Histogram) Observe(v float64) {
	at, _ := slices.BinarySearch(h.bounds, v)
	h.counts[at].Add(1)
	for {
		was := h.sum.bits.Load()
		if h.sum.bits.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+v)) {
			return
		}
	}
}

func (h *Histogram) write(p *Page, labels ...string) {
	counts := make([]int64, len(h.counts))
	for i := range h.counts {
		counts[i] = h.counts[i].Load()
	}
	p.histogram(h.bounds, counts, h.sum.Value(), labels...)
}

// Histogram makes a histogram with bounds in ascending order.
func (r *Registry) Histogram(name, help string, bounds []float64) *Histogram {
	h := newHistogram(bounds)
	r.family(name, "histogram", help, func(p *Page) { h.write(p) })
	return h
}

// Powers returns n bounds, each factor times the one before.
func Powers(first, factor float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = first
		first *= factor
	}
	return all
}

// mostLabels is how many labels a metric may have.
const mostLabels = 2

// byLabels has the metrics of one name by the values of their labels.
type byLabels[T any] struct {
	labels []string
	fresh  func() *T
	mu     sync.RWMutex
	all    map[[mostLabels]string]*T
}

func newByLabels[T any](labels []string, fresh func() *T) *byLabels[T] {
	if len(labels) == 0 || len(labels) > mostLabels {
		panic(fmt.Sprintf("count: a metric by %d labels", len(labels)))
	}
	return &byLabels[T]{labels: labels, fresh: fresh, all: map[[mostLabels]string]*T{}}
}

// with returns the metric of some values, one for each label.
func (b *byLabels[T]) with(values []string) *T {
	var key [mostLabels]string
	if copy(key[:], values); len(values) != len(b.labels) {
		panic(fmt.Sprintf("count: %d values for the labels %q", len(values), b.labels))
	}
	b.mu.RLock()
	m := b.all[key]
	b.mu.RUnlock()
	if m != nil {
		return m
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m = b.all[key]; m == nil {
		m = b.fresh()
		for i := range key {
			key[i] = strings.Clone(key[i])
		}
		b.all[key] = m
	}
	return m
}

// each calls a function for each metric with its pairs of a label and its value, in order.
func (b *byLabels[T]) each(f func(m *T, pairs []string)) {
	b.mu.RLock()
	all := maps.Clone(b.all)
	b.mu.RUnlock()
	for _, key := range slices.SortedFunc(maps.Keys(all), func(x, y [mostLabels]string) int { return slices.Compare(x[:], y[:]) }) {
		var pairs []string
		for i, label := range b.labels {
			pairs = append(pairs, label, key[i])
		}
		f(all[key], pairs)
	}
}

// Counters are counters by labels. The values of labels must be few: each has a series for
// as long as the program runs. The zero value counts for nobody.
type Counters struct{ *byLabels[Counter] }

// With returns the counter of some values, one for each label. It is served from then on.
func (c Counters) With(values ...string) *Counter {
	if c.byLabels == nil {
		return new(Counter)
	}
	return c.with(values)
}

// Counters makes counters by at most two labels.
func (r *Registry) Counters(name, help string, labels ...string) Counters {
	c := Counters{newByLabels(labels, func() *Counter { return new(Counter) })}
	r.family(name, "counter", help, func(p *Page) {
		c.each(func(one *Counter, pairs []string) { p.Value(float64(one.Value()), pairs...) })
	})
	return c
}

// Histograms are histograms by labels.
type Histograms struct{ *byLabels[Histogram] }

// With returns the histogram of some values, one for each label. It is served from then on.
func (h Histograms) With(values ...string) *Histogram { return h.with(values) }

// Histograms makes histograms by at most two labels, with bounds in ascending order.
func (r *Registry) Histograms(name, help string, bounds []float64, labels ...string) Histograms {
	h := Histograms{newByLabels(labels, func() *Histogram { return newHistogram(bounds) })}
	r.family(name, "histogram", help, func(p *Page) {
		h.each(func(one *Histogram, pairs []string) { one.write(p, pairs...) })
	})
	return h
}
