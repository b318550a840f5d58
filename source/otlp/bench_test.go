package otlp_test

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
)

// corpus makes the records of the benchmarks as logs of OTLP.
func corpus() plog.Logs {
	logs := plog.NewLogs()
	records := map[string]plog.LogRecordSlice{}
	for _, r := range sourcetest.Records() {
		of, ok := records[r.Service]
		if !ok {
			rl := logs.ResourceLogs().AppendEmpty()
			rl.Resource().Attributes().PutStr("service.name", r.Service)
			of = rl.ScopeLogs().AppendEmpty().LogRecords()
			records[r.Service] = of
		}
		l := of.AppendEmpty()
		l.SetTimestamp(pcommon.NewTimestampFromTime(r.Time))
		l.SetSeverityText(r.Level)
		l.Body().SetStr(r.Msg)
		l.SetTraceID(r.Trace)
		l.SetSpanID(r.Span)
		l.Attributes().PutStr("host", r.Host)
		l.Attributes().PutStr("user", r.User)
		l.Attributes().PutInt("status", int64(r.Status))
		l.Attributes().PutDouble("duration_ms", r.Took)
		l.Attributes().PutInt("bytes", int64(r.Bytes))
	}
	return logs
}

// A load has a name.
type load struct {
	name string
	sourcetest.Load
}

func loads(tb testing.TB) []load {
	tb.Helper()
	logs := corpus()
	return []load{
		{"ndjson", sourcetest.Load{Path: "/ingest", ContentType: "application/x-ndjson", Body: sourcetest.NDJSON()}},
		{"protobuf", sourcetest.Load{Path: "/v1/logs", ContentType: protobuf, Body: inProtobuf(tb, logs)}},
		{"json", sourcetest.Load{Path: "/v1/logs", ContentType: jsonType, Body: inJSON(tb, logs)}},
	}
}

func discarding() *httpsource.Source {
	return httpsource.New(httpsource.Options{Accept: sourcetest.Discard{}, Protocols: []httpsource.Protocol{otlp.New(otlp.Options{})}})
}

// BenchmarkHandler measures the handler alone, with the same records in each form.
func BenchmarkHandler(b *testing.B) {
	for _, l := range loads(b) {
		b.Run(l.name, func(b *testing.B) {
			if w := l.Bench(b, discarding()); w.Code != http.StatusOK {
				b.Errorf("answer %s", w.Body)
			}
		})
	}
}

// BenchmarkRatio sends the same records in turn as NDJSON and as OTLP, and reports how many
// times the cost of NDJSON the others are.
func BenchmarkRatio(b *testing.B) {
	all := loads(b)
	var sends []func()
	for _, l := range all {
		once, _ := l.Sender(discarding())
		sends = append(sends, once)
	}
	spent := make([]time.Duration, len(all))
	for b.Loop() {
		for i, once := range sends {
			begun := sourcetest.CPU()
			for range 20 {
				once()
			}
			spent[i] += sourcetest.CPU() - begun
		}
	}
	for i, l := range all[1:] {
		b.ReportMetric(float64(spent[i+1])/float64(spent[0]), l.name+"/ndjson")
	}
}

// BenchmarkLibrary is for comparison: the library alone, before anything is stored.
func BenchmarkLibrary(b *testing.B) {
	for _, l := range loads(b)[1:] {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := unmarshal(l.ContentType, l.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
