package filter_test

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"time"

	"blobtail/blobfmt/filter"
)

func BenchmarkTmp(b *testing.B) {
	raw, err := os.ReadFile(os.Getenv("LINES"))
	if err != nil {
		b.Skip(err)
	}
	bs := 1 << 20
	if os.Getenv("BS") != "" {
		bs = 512 << 10
	}
	f := filter.NewBuilder()
	var out []byte
	var words, ids []byte
	n := 0
	buckets := 0
	var scan, wt, it time.Duration
	for b.Loop() {
		f.Reset()
		size := 0
		n = 0
		t0 := cpu()
		n = bytes.Count(raw, []byte{'\n'})
		for rest := raw; len(rest) > 0; {
			size = min(bs, len(rest))
			size = bytes.LastIndexByte(rest[:size], '\n') + 1
			f.Block(rest[:size], nil)
			rest = rest[size:]
		}
		t1 := cpu()
		words, _ = f.AppendWords(out[:0])
		t2 := cpu()
		nw := len(words)
		ids, buckets = f.AppendIDs(words, 1<<30)
		ids = ids[nw:]
		words = words[:nw]
		t3 := cpu()
		scan += t1 - t0
		wt += t2 - t1
		it += t3 - t2
		out = words
	}
	N := float64(b.N * n)
	b.ReportMetric(float64(scan)/N, "scan-ns/rec")
	b.ReportMetric(float64(wt)/N, "words-ns/rec")
	b.ReportMetric(float64(it)/N, "ids-ns/rec")
	b.ReportMetric(float64(len(words)), "words-bytes")
	b.ReportMetric(float64(len(ids)), "ids-bytes")
	b.ReportMetric(float64(buckets), "buckets")
	b.ReportMetric(float64(len(ids))*8/float64(f.Keys()), "bits/key")
	b.ReportMetric(float64(f.Keys())/float64(n), "keys/rec")
}

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
