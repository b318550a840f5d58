package body_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/source/body"
)

// benchGather reads a body of 5,000 lines.
func benchGather(b *testing.B, contentType, line string) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, line+"\n", i%1000, i)
	}
	form, err := body.ParseForm(contentType, nil)
	if err != nil {
		b.Fatal(err)
	}
	g := body.NewGatherer()
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		g.Clear()
		g.After = func(int) bool { return true }
		g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
		if err := form.Decode(data, g); err != nil || g.Accepted != 5000 {
			b.Fatal(err, g.Accepted)
		}
	}
}

// Lines with their time and level under the first names, and lines that are looked into.
func BenchmarkGather(b *testing.B) {
	const nd = "application/x-ndjson"
	for name, c := range map[string]struct{ form, line string }{
		"first names":   {nd, `{"ts":"2026-11-20T10:00:00.%03dZ","level":"info","msg":"GET /orders took %d ms","status":200,"path":"/orders","user":{"id":7,"name":"ann"}}`},
		"without level": {nd, `{"ts":"2026-11-20T10:00:00.%03dZ","msg":"GET /orders took %d ms","status":200,"path":"/orders"}`},
		"level within":  {nd, `{"time":"2026-11-20T10:00:00.%03dZ","log":"ERROR disk %d is full","stream":"stderr"}`},
		"text":          {"text/plain", `2026-11-20T10:00:00.%03dZ ERROR disk %d is full on host web-7`},
		"plain text":    {"text/plain", `2026-11-20T10:00:00.%03dZ request %d was answered by host web-7`},
	} {
		b.Run(name, func(b *testing.B) { benchGather(b, c.form, c.line) })
	}
}
