package count_test

import (
	"flag"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"blobtail/internal/count"
)

var update = flag.Bool("update", false, "write testdata/page.prom anew")

// all makes one metric of each kind, with the characters that the format escapes.
func all(r *count.Registry) {
	r.Counter("test_sent_total", "Sent.").Add(3)
	r.CounterFunc("test_seconds_total", "Seconds.", func() float64 { return 0.25 })
	r.Gauge("test_depth", `A \ and`+"\na line.").Set(-1.5)
	r.GaugeFunc("test_limit", "A limit.", func() float64 { return math.Inf(1) })
	c := r.Counters("test_requests_total", "Requests.", "code", "protocol")
	c.With("404", `"quoted" \ `+"\n").Inc()
	c.With("200", "native").Add(1 << 53)
	h := r.Histogram("test_size_bytes", "Sizes.", count.Powers(1, 10, 3))
	for _, v := range []float64{0, 1, 1.5, 10, 100, 101} {
		h.Observe(v)
	}
	r.Histograms("test_wait_seconds", "Waits.", []float64{0.5}, "route").With("/a").Observe(0.25)
	r.Collect(func(p *count.Page) {
		p.Family("test_pause_seconds", "summary", "Pauses.")
		p.Value(0.5, "quantile", "0.5")
		p.Part("_sum", 7)
		p.Part("_count", 8)
	})
}

// A page has each metric with its help and its kind, in order. Prometheus' own parser reads
// the same page in internal/dev/tools/promcheck.
func TestPage(t *testing.T) {
	r := new(count.Registry)
	all(r)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, nil)
	if kind := w.Header().Get("Content-Type"); kind != count.ContentType {
		t.Error(kind)
	}
	const name = "testdata/page.prom"
	if *update {
		if err := os.WriteFile(name, w.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Body.String(); got != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A written page is read, by its series.
func TestRead(t *testing.T) {
	r := new(count.Registry)
	all(r)
	read := count.Read(r.Page())
	for series, want := range map[string]float64{
		"test_sent_total": 3, "test_depth": -1.5, `test_requests_total{code="200",protocol="native"}`: 1 << 53,
		`test_size_bytes_bucket{le="10"}`: 4, `test_size_bytes_bucket{le="+Inf"}`: 6, "test_size_bytes_sum": 213.5, "test_pause_seconds_count": 8,
	} {
		if read[series] != want {
			t.Errorf("%s: %v, want %v", series, read[series], want)
		}
	}
	if odd := count.Read([]byte("\n# a b\nx\n y\nz q\n{} 1 2\nlast 5")); len(odd) != 2 || odd["last"] != 5 {
		t.Error(odd)
	}
}

// Nobody is told without a registry, and nothing breaks.
func TestUnregistered(t *testing.T) {
	all(nil)
	count.Counters{}.With("a").Inc()
}

// A counter never falls.
func TestCounterRises(t *testing.T) {
	c := new(count.Counter)
	c.Add(2)
	c.Add(-1)
	if c.Value() != 2 {
		t.Error(c.Value())
	}
}

// Many goroutines count, and others read, at once.
func TestAtOnce(t *testing.T) {
	const goroutines, each = 8, 500
	r := new(count.Registry)
	c, of := r.Counter("test_a_total", "A."), r.Counters("test_b_total", "B.", "who")
	h := r.Histogram("test_c", "C.", []float64{1})
	var working sync.WaitGroup
	for i := range goroutines {
		working.Go(func() {
			for range each {
				c.Inc()
				of.With(string(rune('a' + i%3))).Inc()
				h.Observe(0.5)
			}
			r.Page()
		})
	}
	working.Wait()
	read := count.Read(r.Page())
	all := read[`test_b_total{who="a"}`] + read[`test_b_total{who="b"}`] + read[`test_b_total{who="c"}`]
	if read["test_a_total"] != goroutines*each || all != goroutines*each || read["test_c_sum"] != goroutines*each/2 {
		t.Error(read)
	}
}

// A counter by labels that is there costs no memory, because each request asks for one.
func TestLabelsAllocateNothing(t *testing.T) {
	c := new(count.Registry).Counters("test_total", "Test.", "code", "protocol")
	if n := testing.AllocsPerRun(100, func() { c.With("200", "native").Inc() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Two metrics of one name are a mistake in the program, which each of its starts shows.
func TestOneName(t *testing.T) {
	defer func() {
		if reason, ok := recover().(string); !ok || !strings.Contains(reason, "test_total") {
			t.Error(reason)
		}
	}()
	r := new(count.Registry)
	r.Counter("test_total", "One.")
	r.Counter("test_total", "Two.")
}

func BenchmarkWith(b *testing.B) {
	c := new(count.Registry).Counters("test_total", "Test.", "code", "protocol")
	for b.Loop() {
		c.With("200", "native").Inc()
	}
}
