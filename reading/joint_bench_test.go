package reading_test

import (
	"fmt"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// BenchmarkNumbers measures numbers of the lines of one store, without workers.
func BenchmarkNumbers(b *testing.B) {
	h, noon := readingtest.New(b, 1), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for hour := range 4 {
		for range 5 {
			var lines []readingtest.Line
			for i := range 5000 {
				lines = append(lines, readingtest.Line{
					Time: noon.Add(time.Duration(hour)*time.Hour + time.Duration(i)*700*time.Millisecond), Service: "web",
					Msg:    fmt.Sprintf("GET /p%d took %d ms", i%7, i%900),
					Fields: fmt.Sprintf(`"status":%d,"path":"/p%d","v":%v`, 200+i%5, i%7, float64(i%977)/7),
				})
			}
			h.Send(0, lines...)
		}
		h.Flush()
	}
	s, day := h.Reader().For(nil), reading.Range{From: noon.UnixNano(), To: noon.Add(4 * time.Hour).UnixNano()}
	for _, query := range []string{
		`sum by (path) (sum_over_time({service="web"} | unwrap v [5m]))`, `sum by (path) (count_over_time({service="web"} |= "took" [5m]))`,
	} {
		b.Run(query, func(b *testing.B) {
			measured(b, func() {
				rows, out, err := s.Table(b.Context(), reading.Table{LogQL: query, Range: day, Step: time.Minute})
				if err != nil || !out.Complete() || len(rows) != 7 {
					b.Fatal(len(rows), out.Problems(), err)
				}
			})
		})
	}
	b.Run("split", func(b *testing.B) {
		measured(b, func() {
			a := reading.Ask{Services: []string{"web"}, Range: day, Texts: []string{"took"}}
			g, out, err := s.Histogram(b.Context(), a, reading.Slices{By: time.Minute, Split: []string{"path", "status"}})
			if err != nil || !out.Complete() || len(g.Values) != 7 {
				b.Fatal(out.Problems(), err)
			}
		})
	})
}
