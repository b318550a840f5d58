package loki_test

import (
	"fmt"
	"testing"

	"blobtail/internal/dev/testkit"
)

// busy is a world with six hours of records like those of real services.
func busy(t testing.TB, records int64) *world {
	w := newWorld(t)
	for s := range int64(4) {
		service := fmt.Sprintf("service-%d", s)
		var recs []rec
		for i := range records / 4 {
			at := noon - 6*hour + i*(6*hour/(records/4)) + s
			fields := fmt.Sprintf(`"host":"%s-%d","request_id":"%032x","status":%d,"duration_ms":%d.%d,"path":"/api/v1/cart/%d/status","user_id":"u%d"`,
				service, i%7, i*7919, 200+i%5*100, i%500, i%10, i, i%1000)
			recs = append(recs, rec{at, canonical(service, []string{"info", "debug", "debug", "error"}[i%4], at, fmt.Sprintf(`sql: SELECT * FROM events WHERE id = $1 [args: %d] took "%dms"`, i, i%90), fields)})
		}
		w.add(service, recs...)
	}
	return w
}

// Processor time counts: the time of day depends on the other programs of a machine.
func bench(b *testing.B, w *world, params ...string) {
	if a := w.ask("GET", queryRange, grafana(), params...); a.code != 200 {
		b.Fatal(a.body)
	}
	begun := testkit.CPU()
	for b.Loop() {
		b.SetBytes(int64(len(w.ask("GET", queryRange, grafana(), params...).body)))
	}
	b.ReportMetric(float64((testkit.CPU()-begun).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

func BenchmarkLines(b *testing.B) {
	w := busy(b, 200_000)
	bench(b, w, "query", `{service_name="service-1"}`, "limit", "5000", "since", "6h")
}

func BenchmarkLinesOfAll(b *testing.B) {
	w := busy(b, 200_000)
	bench(b, w, "query", `{} |= "sql"`, "limit", "5000", "since", "6h")
}

func BenchmarkHistogram(b *testing.B) {
	w := busy(b, 200_000)
	bench(b, w, "query", `sum by (level, detected_level) (count_over_time({} |= "" | drop __error__[1m]))`, "since", "6h", "step", "60")
}

func BenchmarkScan(b *testing.B) {
	w := busy(b, 200_000)
	bench(b, w, "query", `sum by (status) (count_over_time({} |= "sql" [1m]))`, "since", "6h", "step", "60")
}
