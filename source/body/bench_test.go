package body_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/source/body"
)

// BenchmarkText measures bodies of lines without a trace: with a time and a level, with a level
// alone, with neither, and indented ones.
func BenchmarkText(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"timed", "2026-11-20 10:00:00,%03d INFO [exec-3] c.x.Orders: order 17 is stored in 12 ms for customer 4711\n"},
		{"levelled", "INFO  c.x.Orders: order %d is stored in 12 ms for customer 4711, which is as expected\n"},
		{"errors", "2026-11-20 10:00:00,%03d ERROR [exec-3] c.x.Orders: order 17 is not stored after 12 ms\n"},
		{"access", "10.0.0.%d - - [20/Nov/2026:11:00:00 +0100] \"GET /api/orders/17?full=true HTTP/1.1\" 200 512 \"-\" \"curl/8.5.0\"\n"},
		{"plain", "the order %d of a customer is stored, and the next one is taken from the queue\n"},
		{"logfmt", "time=2026-11-20T10:00:00.%03dZ level=info msg=\"order stored\" customer=4711 took=12ms path=/api/orders\n"},
		{"cri", "2026-11-20T10:00:00.%03d456789Z stdout F INFO [exec-3] c.x.Orders: order 17 is stored in 12 ms for customer 4711\n"},
		{"indented", "task %d\n    with a line of its own, that says more about it\n"},
	} {
		var text strings.Builder
		for i := 0; text.Len() < 1<<20; i++ {
			fmt.Fprintf(&text, c.line, i%1000)
		}
		raw := []byte(text.String())
		form, err := body.ParseForm("text/plain", nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			g := body.NewGatherer()
			g.After = func(int) bool { return true }
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				g.Clear()
				g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
				if err := form.Decode(raw, g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

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

// Exports of 5,000 records, with members that each record gets and without.
func BenchmarkExport(b *testing.B) {
	const line = `{"ts":"2026-11-20T10:00:00.%03dZ","level":"info","msg":"GET /orders took %d ms","status":200,"path":"/orders"}`
	var records []string
	for i := range 5000 {
		records = append(records, fmt.Sprintf(line, i%1000, i))
	}
	list := strings.Join(records, ",")
	for name, object := range map[string]string{
		"Records":   `{"Records":[` + list + `]}`,
		"logEvents": `{"owner":"123456789012","logGroup":"/aws/orders","logEvents":[` + list + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			g := body.NewGatherer()
			b.SetBytes(int64(len(object)))
			for b.Loop() {
				g.Clear()
				g.After = func(int) bool { return true }
				g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
				if err := body.JSON([]byte(object), g); err != nil || g.Accepted != 5000 {
					b.Fatal(err, g.Accepted)
				}
			}
		})
	}
}
