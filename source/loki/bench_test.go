package loki_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/klauspost/compress/s2"

	"blobtail/source/httpsource"
	"blobtail/source/loki"
	"blobtail/source/sourcetest"
)

// pushes makes the records of the benchmarks as push requests in both forms. The level and the
// service are labels, as agents send them; all else is structured metadata.
func pushes() (proto, text []byte) {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	var order [][2]string
	entries, streams := map[[2]string][][]byte{}, map[[2]string]*stream{}
	for _, r := range sourcetest.Records() {
		key := [2]string{r.Service, r.Level}
		if streams[key] == nil {
			order = append(order, key)
			streams[key] = &stream{Stream: map[string]string{"service_name": key[0], "level": key[1]}}
		}
		meta := []string{
			"host", r.Host, "trace_id", fmt.Sprintf("%x", r.Trace), "span_id", fmt.Sprintf("%x", r.Span), "user", r.User,
			"status", fmt.Sprint(r.Status), "duration_ms", fmt.Sprintf("%.3f", r.Took), "bytes", fmt.Sprint(r.Bytes),
		}
		m := map[string]string{}
		for i := 0; i < len(meta); i += 2 {
			m[meta[i]] = meta[i+1]
		}
		entries[key] = append(entries[key], line(r.Time.UnixNano(), r.Msg, meta...))
		streams[key].Values = append(streams[key].Values, []any{fmt.Sprint(r.Time.UnixNano()), r.Msg, m})
	}
	var all []*stream
	for _, key := range order {
		proto = push(proto, fmt.Sprintf(`{level="%s", service_name="%s"}`, key[1], key[0]), entries[key]...)
		all = append(all, streams[key])
	}
	text, _ = json.Marshal(map[string]any{"streams": all}) // texts have a form in JSON
	return s2.EncodeSnappy(nil, proto), text
}

// BenchmarkPush compares the push requests with the same records as NDJSON.
func BenchmarkPush(b *testing.B) {
	proto, text := pushes()
	for name, load := range map[string]sourcetest.Load{
		"ndjson":   {Path: "/ingest", ContentType: "application/x-ndjson", Body: sourcetest.NDJSON()},
		"protobuf": {Path: "/loki/api/v1/push", ContentType: "application/x-protobuf", Body: proto},
		"json":     {Path: "/loki/api/v1/push", ContentType: "application/json", Body: text},
	} {
		b.Run(name, func(b *testing.B) {
			s := httpsource.New(httpsource.Options{Accept: sourcetest.Discard{}, Protocols: []httpsource.Protocol{loki.New()}})
			if w := load.Bench(b, s); w.Code >= 300 {
				b.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
