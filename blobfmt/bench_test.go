package blobfmt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"blobtail/blobfmt"
	"blobtail/record"

	"github.com/klauspost/compress/zstd"
)

// corpus makes records of about 320 bytes, as services write them, in bodies of perBody
// records. Several bodies overlap in time.
func corpus(n, perBody, clients int) []rec {
	r := rand.New(rand.NewPCG(42, 42))
	paths := []string{"/api/v1/orders", "/api/v1/orders/search", "/api/v2/users", "/healthz", "/static/app.js", "/login"}
	agents := []string{"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "curl/8.5.0", "okhttp/4.12.0"}
	words := []string{"trace", "debug", "info", "info", "info", "info", "info", "warn", "error", "critical"}
	t := testPeriod.UnixNano()
	recs := make([]rec, n)
	origins := make([]record.Origin, clients)
	index := make([]uint32, clients)
	for i := range recs {
		t += 1 + r.Int64N(50e6*1e5/int64(n)/2)
		c := r.IntN(clients)
		if index[c]%uint32(perBody) == 0 {
			origins[c], index[c] = makeOrigin(r, t/1e6), 0
		}
		level := words[r.IntN(len(words))]
		line := append([]byte(`{"ts":"`), record.AppendTime(nil, t)...)
		line = fmt.Appendf(line, `","level":"%s","service":"web","msg":"request completed in %d ms","method":"GET","path":"%s/%d","status":%d,`+
			`"bytes":%d,"client":"10.%d.%d.%d","agent":"%s","trace_id":"%016x"}`+"\n",
			level, r.IntN(3000), paths[r.IntN(len(paths))], r.IntN(100000), 200+r.IntN(4)*100,
			r.IntN(1<<20), r.IntN(4), r.IntN(256), r.IntN(256), agents[r.IntN(len(agents))], r.Uint64())
		recs[i] = rec{time: t, origin: origins[c], index: index[c], level: level, line: line}
		index[c]++
	}
	return recs
}

func addAll(b *testing.B, e *blobfmt.Encoder, recs []rec) {
	for i := range recs {
		r := &recs[i]
		if err := e.Add(r.line, r.time, r.origin, r.index); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode makes blobs of 32 MiB. "bodies of 1" is the worst case for the
// origins: 16 bytes of identity for every record.
func BenchmarkEncode(b *testing.B) {
	for _, bb := range []struct {
		perBody, clients int
		level            zstd.EncoderLevel
	}{{1000, 1, 0}, {1000, 8, 0}, {1, 1, 0}, {1000, 8, zstd.SpeedBetterCompression}} {
		name := fmt.Sprintf("bodies=%d/clients=%d/%s", bb.perBody, bb.clients, max(bb.level, zstd.SpeedFastest))
		b.Run(name, func(b *testing.B) {
			recs := corpus(100000, bb.perBody, bb.clients)
			e := newEncoder(b, blobfmt.EncoderOptions{Level: bb.level})
			body, m := encode(b, e, recs)
			b.SetBytes(m.RawBytes)
			b.ReportAllocs()
			for b.Loop() {
				e.Reset()
				addAll(b, e, recs)
				if _, _, err := e.Finish(testBatch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(recs)), "ns/record")
			b.ReportMetric(float64(m.RawBytes)/float64(len(body)), "ratio")
			index := int64(len(body)) - readIndex(b, body).Offset
			b.ReportMetric(100*float64(index)/float64(len(body)), "index-%")
		})
	}
}

// BenchmarkAdd measures the cost of a record without its compression: the lines fit into
// one block that is never cut.
func BenchmarkAdd(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			recs := corpus(12000, 1000, clients)
			e := newEncoder(b, blobfmt.EncoderOptions{BlockSize: 4 << 20})
			encode(b, e, recs)
			for b.Loop() {
				e.Reset()
				addAll(b, e, recs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(recs)), "ns/record")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	body, m := encode(b, newEncoder(b, blobfmt.EncoderOptions{}), corpus(100000, 1000, 8))
	x := readIndex(b, body)
	d := blobfmt.NewDecoder(1)
	b.SetBytes(m.RawBytes)
	var lines []byte
	for b.Loop() {
		for _, block := range x.Blocks {
			var err error
			if lines, err = d.Block(lines[:0], body[block.Offset:block.Offset+block.Stored], block); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	body, m := encode(b, newEncoder(b, blobfmt.EncoderOptions{}), corpus(100000, 1000, 8))
	b.SetBytes(m.RawBytes)
	for b.Loop() {
		if found := blobfmt.Verify(testKey, body, m); found != nil {
			b.Fatal(found)
		}
	}
}

// BenchmarkReadIndex measures the work of a reader that opens a blob, before it reads any
// block.
func BenchmarkReadIndex(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		body, _ := encode(b, newEncoder(b, blobfmt.EncoderOptions{}), corpus(n, 1000, 8))
		for _, origins := range []bool{false, true} {
			b.Run(fmt.Sprintf("records=%d/origins=%t", n, origins), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x := readIndex(b, body)
					if origins {
						if _, err := x.Origins(); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
