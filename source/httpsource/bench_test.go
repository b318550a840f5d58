package httpsource_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
)

// reportCPU reports in the unit of the targets: seconds per million records.
func reportCPU(b *testing.B, begun time.Duration) {
	b.ReportMetric((sourcetest.CPU()-begun).Seconds()/(float64(b.N)*sourcetest.PerBody)*1e6, "cpu-s/Mrec")
}

// BenchmarkHandler measures the handler alone, without a connection.
func BenchmarkHandler(b *testing.B) {
	body := sourcetest.NDJSON()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	array := bytes.ReplaceAll(bytes.TrimSpace(body), []byte("\n"), []byte(","))
	for _, bb := range []struct {
		name, path, contentType, encoding string
		body                              []byte
	}{
		{"lines", "/ingest/web", ndjson, "", body},
		{"lines of many services", "/ingest", ndjson, "", body},
		{"sniffed", "/ingest/web", "", "", body},
		{"array", "/ingest/web", jsonCT, "", fmt.Appendf(nil, "[%s]", array)},
		{"text", "/ingest/web", text, "", bytes.ReplaceAll(body, []byte(`{"ts"`), []byte(`x{"ts"`))},
		{"gzip", "/ingest/web", ndjson, "gzip", []byte(compress(b, "gzip", string(body)))},
		{"zstd", "/ingest/web", ndjson, "zstd", enc.EncodeAll(body, nil)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := sourcetest.Load{Path: bb.path, ContentType: bb.contentType, Encoding: bb.encoding, Body: bb.body}.Bench(b, newSource(sourcetest.Discard{}))
			if want := fmt.Sprintf(`{"accepted":%d,"rejected":0}`+"\n", sourcetest.PerBody); w.Body.String() != want {
				b.Errorf("answer %s", w.Body)
			}
		})
	}
}

// BenchmarkLoopback uses a real connection, and counts the sender's CPU time too.
func BenchmarkLoopback(b *testing.B) {
	body := sourcetest.NDJSON()
	addr := listen(b, newSource(sourcetest.Discard{}))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	b.SetBytes(int64(len(body)))
	begun := sourcetest.CPU()
	for b.Loop() {
		res, err := client.Post("http://"+addr+"/ingest/web", ndjson, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	reportCPU(b, begun)
}

// BenchmarkGuard measures a body of many services with and without a guard.
func BenchmarkGuard(b *testing.B) {
	body := sourcetest.NDJSON()
	for name, guard := range map[string]httpsource.Guard{"without": nil, "with": everybody{}} {
		b.Run(name, func(b *testing.B) {
			s := newSource(sourcetest.Discard{}, func(o *httpsource.Options) { o.Guard = guard })
			sourcetest.Load{Path: "/ingest", ContentType: ndjson, Body: body}.Bench(b, s)
		})
	}
}

// everybody is a guard that admits all.
type everybody struct{}

func (everybody) Admit(*http.Request) (httpsource.Sender, error) { return everybody{}, nil }
func (everybody) ID() string                                     { return "everybody" }
func (everybody) Charge(int64)                                   {}
func (everybody) Allow(string) (string, bool)                    { return "", false }
func (everybody) Open(string, int64, time.Duration) (time.Duration, error) {
	return 0, nil
}
