package meaning_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
)

// corpus makes n lines like those of a small fleet of web services: eleven
// fields, about 320 bytes, the message last.
func corpus(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory", "notifier", "billing"}
	levels := []string{"debug", "debug", "debug", "info", "info", "warn", "error"}
	messages := []string{
		"acquired connection from pool pool=primary idle=%d inuse=%d wait=%d.53ms",
		`sql: SELECT * FROM orders WHERE id = $1 [args: %d] rows=%d took %d.23ms and was not cached`,
		`search query=\"orders niaj\" hits=%d shards=%d took %d.77ms`,
		"request POST /api/v1/orders/%d from 10.7.236.%d failed: upstream timeout after %d.12ms shard-07 trace=b804e39ecd23069a",
	}
	var b bytes.Buffer
	ns := int64(1794312000000000000)
	for range n {
		ns += r.Int64N(10_000_000)
		service := services[r.IntN(len(services))]
		fmt.Fprintf(&b, `{"ts":"%s","level":"%s","service":"%s","host":"%s-21c4-%d","request_id":"%016x%016x","status":%d,"duration_ms":%d.%03d,"path":"/api/v1/orders/%d/items","user_id":"u%d","msg":"`,
			record.AppendTime(nil, ns), levels[r.IntN(len(levels))], service, service, r.IntN(10),
			r.Uint64(), r.Uint64(), 200+r.IntN(300), r.IntN(100), r.IntN(1000), r.IntN(50000), 100000+r.IntN(20000))
		fmt.Fprintf(&b, messages[r.IntN(len(messages))]+"\"}\n", r.IntN(100000), r.IntN(100), r.IntN(1000))
	}
	return b.Bytes()
}

// benchLines scans and appends all lines, and reports CPU nanoseconds per record.
func benchLines(b *testing.B, data []byte, d meaning.Defaults) {
	p := meaning.NewReader()
	dst := make([]byte, 0, 2*len(data))
	lines := bytes.Count(data, []byte("\n"))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		dst = dst[:0]
		for rest := data; len(rest) > 0; {
			n, err := p.Scan(rest)
			if err != nil {
				b.Fatal(err)
			}
			dst, _ = p.AppendLine(dst, &d)
			rest = rest[n+1:]
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(lines), "ns/record")
}

func BenchmarkCanonical(b *testing.B) { benchLines(b, corpus(5000), meaning.Defaults{}) }

// The service comes from the path, the time is in milliseconds, and the names are
// pino's.
func BenchmarkForeign(b *testing.B) {
	var data []byte
	for i := range 5000 {
		data = fmt.Appendf(data, `{"level":30,"time":%d,"pid":%d,"hostname":"node-%d","req": {"method":"GET","url":"\/orders"},"msg":"request %d completed\n"}`+"\n",
			1794312000000+i*7, i, i%40, i)
	}
	benchLines(b, data, meaning.Defaults{Service: "web"})
}

// Lines of containers name no level, so that all places for one are tried.
func BenchmarkNoLevel(b *testing.B) {
	var data []byte
	for i := range 5000 {
		data = fmt.Appendf(data, `{"log":"GET /orders/%d 200\n","stream":"stdout","time":"2026-11-20T10:00:06.%09dZ"}`+"\n", i, i)
	}
	benchLines(b, data, meaning.Defaults{Service: "web"})
}

// The level of a message that is JSON: a word, and a number, which other members may say more about.
func BenchmarkFirstLevel(b *testing.B) {
	for name, line := range map[string]string{
		"word":   `{"ts":"2026-11-20T10:00:06Z","level":"info","msg":"request completed","path":"/orders/1","status":200}`,
		"number": `{"level":30,"time":1795168806257,"pid":812,"hostname":"node-1","msg":"request completed"}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				names.FirstLevel([]byte(line))
			}
		})
	}
}

// Text lines; every tenth one needs escapes.
func BenchmarkText(b *testing.B) {
	var lines [][]byte
	for i := range 1000 {
		line := fmt.Appendf(nil, "Nov 20 15:04:05 node-%d sshd[%d]: Failed password for invalid user webmaster from 10.7.236.82 port %d ssh2", i%40, i, i*7)
		if i%10 == 0 {
			line = append(line, " \"Ünïcode\"\t"...)
		}
		lines = append(lines, line)
	}
	p := meaning.NewReader()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = dst[:0]
		for _, line := range lines {
			dst, _ = textLine(p, dst, line, meaning.Defaults{Service: "sshd", Time: 1794312000000000000})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(lines)), "ns/record")
}

// Logs of other projects, where they are beside the repository; BenchmarkCanonical has our own.
func BenchmarkLoghub(b *testing.B) {
	files, _ := filepath.Glob("../../shared/data/loghub/*.ndjson")
	if len(files) == 0 {
		b.Skip("no ../shared/data/loghub beside the repository")
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(name), func(b *testing.B) { benchLines(b, data, meaning.Defaults{}) })
	}
}

func BenchmarkAppendTime(b *testing.B) {
	dst := make([]byte, 0, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = record.AppendTime(dst[:0], 1794312000000000000+int64(i)*1_234_567)
	}
}

func BenchmarkLineTime(b *testing.B) {
	line := corpus(1)
	for b.Loop() {
		if _, ok := record.LineTime(line); !ok {
			b.Fatal("not a canonical line")
		}
	}
}
