package body_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/record/meaning"
	"blobtail/source/body"
)

// BenchmarkMapped measures records of JSON and by parts, without names of fields, with names for
// all services, and with names for the service.
func BenchmarkMapped(b *testing.B) {
	names := meaning.Names{Time: []string{"when", "meta.at"}, Level: []string{"prio"}}
	for _, m := range []struct {
		name    string
		mapping *meaning.Mapping
	}{
		{"none", nil},
		{"all", meaning.NewMapping([]meaning.Naming{{Names: names}})},
		{"one service", meaning.NewMapping([]meaning.Naming{{Services: []string{"we*"}, Names: names}, {Names: meaning.Names{Service: []string{"team"}}}})},
	} {
		gather := func(b *testing.B, add func(g *body.Gatherer)) {
			g := body.NewGatherer()
			for b.Loop() {
				g.Clear()
				g.After = func(int) bool { return true }
				g.Arrive(body.Arrival{Time: arrival.UnixNano(), Source: "test", Clock: "the clock", Fields: m.mapping})
				add(g)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5000, "ns/record")
		}
		b.Run("JSON, "+m.name, func(b *testing.B) {
			var text strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&text, `{"ts":"2026-11-20T10:00:00.%03dZ","level":"info","service":"web","msg":"GET /orders took %d ms","status":200,"path":"/orders","user":{"id":7,"name":"ann"}}`+"\n", i%1000, i)
			}
			form, err := body.ParseForm("application/x-ndjson", nil)
			if err != nil {
				b.Fatal(err)
			}
			gather(b, func(g *body.Gatherer) {
				if err := form.Decode([]byte(text.String()), g); err != nil || g.Accepted != 5000 {
					b.Fatal(err, g.Accepted)
				}
			})
		})
		b.Run("parts, "+m.name, func(b *testing.B) {
			gather(b, func(g *body.Gatherer) {
				for i := range 5000 {
					p := g.Begin(meaning.Head{Time: arrival.UnixNano() + int64(i), Level: []byte("info"), Service: []byte("web"), Msg: []byte("GET /orders took 12 ms"), Renames: true})
					p.Int("status", 200)
					p.Text("path", []byte("/orders"))
					p.JSON("user", []byte(`{"id":7,"name":"ann"}`))
					g.Record(nil, 1, i)
				}
			})
		})
	}
}
