package stage_test

import (
	"fmt"
	"testing"

	"blobtail/logql"
	"blobtail/logql/stage"
)

// benchLines are records of a web server, about 300 bytes each.
func benchLines(b testing.TB) (lines [][]byte, bytes int64) {
	for i := range 1000 {
		level := []string{"info", "info", "info", "warn", "error"}[i%5]
		line := stored(b, "web", fmt.Sprintf(`{"ts":"2026-11-20T15:04:05.%03dZ","level":%q,"msg":"GET /basket/%d took %d ms, user said \"ok\"","status":%d,"user_id":"u%d",`+
			`"took_ms":%d,"http":{"method":"GET","path":"/basket/%d","agent":"Mozilla/5.0 (X11; Linux x86_64)"},"trace_id":"4bf92f3577b34da6a3ce929d0e0e%04x","tags":["a","b"]}`,
			i, level, i, i%300, 200+100*(i%4), i%70, i%300, i, i))
		lines = append(lines, line)
		bytes += int64(len(line))
	}
	return lines, bytes
}

var benchQueries = []string{
	`{} |= "basket/77"`,
	`{} |= "nothing of this"`,
	`{} |~ "basket/7[0-9] took"`,
	`{} |~ "(?i)BASKET/77"`,
	`{} |> "GET <_> took <_> ms<_>"`,
	`{} | status="500"`,
	`{} | status>=500`,
	`{} | user_id="u7"`,
	`{} | http_path="/basket/77"`,
	`{} | none="x"`,
	`{service_name="web", level="error"} |= "took"`,
	`{} | json | logfmt | drop __error__, __error_details__ | status="500"`,
	`{} | json | a="5"`,
	`{} | line_format "{{.status}} {{.user_id}}" |= "500 u7"`,
	`{} | line_format "{{.status | int | add 1}}" |= "501"`,
}

func BenchmarkKeep(b *testing.B) {
	lines, bytes := benchLines(b)
	for _, v := range []stage.View{{}, {Lines: true}} {
		for _, query := range benchQueries {
			p := compile(b, v, query)
			b.Run(fmt.Sprintf("lines=%v/%s", v.Lines, query), func(b *testing.B) {
				b.SetBytes(bytes / int64(len(lines)))
				b.ReportAllocs()
				for i := range b.N {
					p.Keep(lines[i%len(lines)])
				}
			})
		}
	}
}

func BenchmarkEntry(b *testing.B) {
	lines, _ := benchLines(b)
	for _, query := range []string{`{}`, `{} | json`, `{} | line_format "{{.status}}"`} {
		for _, v := range []stage.View{{}, {Lines: true}} {
			p := compile(b, v, query)
			b.Run(fmt.Sprintf("lines=%v/%s", v.Lines, query), func(b *testing.B) {
				var e stage.Entry
				b.ReportAllocs()
				for i := range b.N {
					p.Entry(lines[i%len(lines)], &e)
				}
			})
		}
	}
}

func BenchmarkSample(b *testing.B) {
	lines, _ := benchLines(b)
	for _, c := range []struct {
		query string
		by    []string
	}{{`{}`, []string{"status"}}, {`{}`, []string{"level"}}, {`{} | json`, []string{"http_path"}}, {`{} | json`, nil}} {
		w := stage.Wanted{}
		if c.by != nil {
			w.Only = &logql.Grouping{Labels: c.by}
		}
		for _, v := range []stage.View{{}, {Lines: true}} {
			s, err := v.Sampler(&logql.LogRange{Log: parse(b, c.query)}, w)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("lines=%v/%s by %v", v.Lines, c.query, c.by), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if _, _, _, err := s.Sample(lines[i%len(lines)]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
