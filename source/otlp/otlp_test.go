package otlp_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	protobuf = "application/x-protobuf"
	jsonType = "application/json"
)

func inProtobuf(tb testing.TB, l plog.Logs) []byte {
	tb.Helper()
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(l)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func inJSON(tb testing.TB, l plog.Logs) []byte {
	tb.Helper()
	b, err := (&plog.JSONMarshaler{}).MarshalLogs(l)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// unmarshal decodes a body with the library of the Collector.
func unmarshal(contentType string, b []byte) (plog.Logs, error) {
	if contentType == jsonType {
		return (&plog.JSONUnmarshaler{}).UnmarshalLogs(b)
	}
	return (&plog.ProtoUnmarshaler{}).UnmarshalLogs(b)
}

// rejected returns the lines of rejected records.
func rejected(tb testing.TB, l *sourcetest.Log) (lines []map[string]any) {
	tb.Helper()
	for _, text := range l.Lines() {
		if !strings.Contains(text, `"service":"`+record.RejectedService) {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			tb.Fatalf("%v in %s", err, text)
		}
		lines = append(lines, m)
	}
	return lines
}

// send sends a body to a source of its own and returns its records. header are pairs.
func send(contentType string, body []byte, header ...string) (*sourcetest.Log, *httptest.ResponseRecorder) {
	l := &sourcetest.Log{}
	return l, sendTo(l.Source(otlp.New(otlp.Options{})), contentType, body, header...)
}

func sendTo(h http.Handler, contentType string, body []byte, header ...string) *httptest.ResponseRecorder {
	return sourcetest.Send(h, http.MethodPost, "/v1/logs", bytes.NewReader(body), append([]string{"Content-Type", contentType}, header...)...)
}

// one makes logs of one record.
func one(change func(resource pcommon.Map, scope pcommon.InstrumentationScope, r plog.LogRecord)) plog.Logs {
	l := plog.NewLogs()
	rl := l.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	change(rl.Resource().Attributes(), sl.Scope(), sl.LogRecords().AppendEmpty())
	return l
}

// TestMapping has the table of docs/send/otel.md. Each row is sent in both encodings.
func TestMapping(t *testing.T) {
	type (
		attributes = pcommon.Map
		scope      = pcommon.InstrumentationScope
		rec        = plog.LogRecord
	)
	head := func(level, service, msg string) string {
		return `{"ts":"2026-11-24T12:00:00.000000000Z","level":"` + level + `","service":"` + service + `","msg":"` + msg + `"`
	}
	empty := head("", "unknown", "")
	for _, row := range []struct {
		name   string
		change func(attributes, scope, rec)
		want   string
	}{
		{"nothing", func(attributes, scope, rec) {}, empty},
		{"time", func(_ attributes, _ scope, r rec) { r.SetTimestamp(1763632800000000001); r.SetObservedTimestamp(5) },
			`{"ts":"2025-11-20T10:00:00.000000001Z","level":"","service":"unknown","msg":""`},
		{"observed time", func(_ attributes, _ scope, r rec) { r.SetObservedTimestamp(1763632800000000001) },
			`{"ts":"2025-11-20T10:00:00.000000001Z","level":"","service":"unknown","msg":""`},
		{"a time out of range", func(_ attributes, _ scope, r rec) { r.SetTimestamp(1 << 63) }, empty + `,"time_unix_nano":9223372036854775808`},
		{"service", func(a attributes, _ scope, _ rec) {
			a.PutStr("host.name", "h")
			a.PutStr("service.name", "Web Shop")
			a.PutStr("service.namespace", "n")
		}, head("", "web-shop", "") + `,"host.name":"h","service.namespace":"n","service.name":"Web Shop"`},
		{"a number as service", func(a attributes, _ scope, _ rec) { a.PutInt("service.name", 12) }, head("", "12", "")},
		{"severity text", func(_ attributes, _ scope, r rec) { r.SetSeverityText("Warning"); r.SetSeverityNumber(17) }, head("warn", "unknown", "")},
		{"severity number", func(_ attributes, _ scope, r rec) { r.SetSeverityNumber(24) }, head("critical", "unknown", "")},
		{"unknown text with a number", func(_ attributes, _ scope, r rec) { r.SetSeverityText("audit"); r.SetSeverityNumber(10) },
			head("info", "unknown", "") + `,"severity_text":"audit"`},
		{"unknown text", func(_ attributes, _ scope, r rec) { r.SetSeverityText("audit") }, head("audit", "unknown", "")},
		{"unknown number", func(_ attributes, _ scope, r rec) { r.SetSeverityNumber(25) }, empty + `,"severity_number":25`},
		{"body of text", func(_ attributes, _ scope, r rec) { r.Body().SetStr("a \"b\"\n\xff") }, head("", "unknown", `a \"b\"\n\\xff`)},
		{"body of a number", func(_ attributes, _ scope, r rec) { r.Body().SetInt(-7) }, head("", "unknown", "-7")},
		{"body of a double", func(_ attributes, _ scope, r rec) { r.Body().SetDouble(0.5) }, head("", "unknown", "0.5")},
		{"body of a boolean", func(_ attributes, _ scope, r rec) { r.Body().SetBool(true) }, head("", "unknown", "true")},
		{"body of bytes", func(_ attributes, _ scope, r rec) { r.Body().SetEmptyBytes().Append(1, 2, 255) }, head("", "unknown", "AQL/")},
		{"body of an array", func(_ attributes, _ scope, r rec) {
			s := r.Body().SetEmptySlice()
			s.AppendEmpty().SetStr("x")
			s.AppendEmpty().SetInt(1)
		}, head("", "unknown", `[\"x\",1]`)},
		{"body of a map", func(_ attributes, _ scope, r rec) {
			m := r.Body().SetEmptyMap()
			m.PutStr("k", "v")
			m.PutEmptyMap("n").PutBool("b", true)
		}, head("", "unknown", `{\"k\":\"v\",\"n\":{\"b\":true}}`)},
		{"body of a map with a message", func(_ attributes, _ scope, r rec) {
			m := r.Body().SetEmptyMap()
			m.PutInt("status", 200)
			m.PutStr("message", "done")
			m.PutStr("user", "u")
			r.Attributes().PutStr("user", "first")
		}, head("", "unknown", "done") + `,"user":"first","status":200,"user.2":"u"`},
		{"body of a map with a number as message", func(_ attributes, _ scope, r rec) { r.Body().SetEmptyMap().PutInt("msg", 1) },
			head("", "unknown", `{\"msg\":1}`)},
		{"ids", func(_ attributes, _ scope, r rec) {
			r.SetTraceID([16]byte{0xb8, 4, 15: 0x9a})
			r.SetSpanID([8]byte{7: 0xff})
			r.Attributes().PutStr("trace_id", "text")
		}, empty + `,"trace_id":"b804000000000000000000000000009a","span_id":"00000000000000ff","trace_id.2":"text"`},
		{"values", func(_ attributes, _ scope, r rec) {
			a := r.Attributes()
			a.PutStr("s", "é")
			a.PutInt("i", -1<<63)
			a.PutDouble("d", 1e21)
			a.PutBool("t", true)
			a.PutBool("f", false)
			a.PutEmptyBytes("b").Append(0)
			a.PutEmpty("null")
			a.PutEmptySlice("e")
			a.PutEmptyMap("m").PutEmptySlice("in").AppendEmpty().SetDouble(2.5)
		}, empty + `,"s":"é","i":-9223372036854775808,"d":1e+21,"t":true,"f":false,"b":"AA==","null":null,"e":[],"m":{"in":[2.5]}`},
		{"the rest", func(a attributes, s scope, r rec) {
			a.PutStr("k8s.pod.name", "p")
			a.PutStr("level", "resource")
			a.PutStr("dup", "resource")
			s.SetName("lib")
			s.SetVersion("1.2")
			s.Attributes().PutStr("dup", "scope")
			r.Attributes().PutStr("dup", "record")
			r.SetEventName("e.v")
			r.SetFlags(1)
			r.SetDroppedAttributesCount(3)
		}, empty + `,"dup":"record","event_name":"e.v","flags":1,"dropped_attributes_count":3,"otel.scope.name":"lib",` +
			`"otel.scope.version":"1.2","dup.2":"scope","k8s.pod.name":"p","level.original":"resource","dup.3":"resource"`},
	} {
		logs := one(row.change)
		for _, contentType := range []string{protobuf, jsonType} {
			body := inProtobuf(t, logs)
			if contentType == jsonType {
				if body = inJSON(t, logs); strings.Contains(row.want, `\\xff`) {
					body = bytes.ReplaceAll(body, []byte(`\ufffd`), []byte("\xff"))
				}
			}
			l, w := send(contentType, body)
			if got := strings.Join(l.Lines(), "\n"); w.Code != http.StatusOK || got != row.want+"}" {
				t.Errorf("%s as %s: %d\n%s\nwant\n%s", row.name, contentType, w.Code, got, row.want)
			}
		}
	}
}

// Random logs become the lines that the reference makes of the library's form of them.
func TestRandomLogs(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		logs := randomLogs(r)
		for _, contentType := range []string{protobuf, jsonType} {
			body := inProtobuf(t, logs)
			if contentType == jsonType {
				body = inJSON(t, logs)
			}
			l, w := send(contentType, body)
			if n := compare(t, l.Lines(), logs); n != l.Rejected() || w.Code != http.StatusOK {
				t.Fatalf("%d, %d rejected, want %d", w.Code, l.Rejected(), n)
			}
		}
	}
}

func randomLogs(r *rand.Rand) plog.Logs {
	l := plog.NewLogs()
	for range r.IntN(3) {
		rl := l.ResourceLogs().AppendEmpty()
		randomMap(r, rl.Resource().Attributes(), 2)
		for range r.IntN(3) {
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName(randomText(r))
			sl.Scope().SetVersion(randomText(r))
			randomMap(r, sl.Scope().Attributes(), 1)
			for range r.IntN(4) {
				x := sl.LogRecords().AppendEmpty()
				x.SetTimestamp(pcommon.Timestamp(uint64(r.IntN(3)) * r.Uint64N(1<<61)))
				x.SetObservedTimestamp(pcommon.Timestamp(uint64(r.IntN(2)) * r.Uint64N(1<<60)))
				x.SetSeverityNumber(plog.SeverityNumber(r.IntN(27)))
				x.SetSeverityText([]string{"", "", "INFO", "fatal", randomText(r)}[r.IntN(5)])
				x.SetEventName(randomText(r))
				x.SetFlags(plog.LogRecordFlags(r.IntN(2) * r.IntN(1<<32)))
				x.SetDroppedAttributesCount(uint32(r.IntN(2) * r.IntN(1<<32)))
				x.SetTraceID([16]byte{byte(r.IntN(2)), 5: byte(r.IntN(2)), 15: byte(r.IntN(2))})
				x.SetSpanID([8]byte{byte(r.IntN(2))})
				randomMap(r, x.Attributes(), 3)
				randomValue(r, x.Body(), 3)
			}
		}
	}
	return l
}

func randomText(r *rand.Rand) string {
	pieces := []string{"a", "plain text ", "é", "😀", `"`, `\`, "/", "\n", "\x00", "\u2028", "<&>", "ts", "7", strings.Repeat("long ", 30)}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func randomMap(r *rand.Rand, m pcommon.Map, depth int) {
	for range r.IntN(5) {
		key := []string{"service.name", "service.original", "msg", "message", "level", "ts", "trace_id", "", "k", "k.2", randomText(r)}[r.IntN(11)]
		randomValue(r, m.PutEmpty(key), depth)
	}
}

func randomValue(r *rand.Rand, v pcommon.Value, depth int) {
	switch n := r.IntN(9); {
	case n == 0:
		v.SetInt(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2)))
	case n == 1:
		v.SetDouble([]float64{0, -1.5, 1e300, r.Float64(), 12345678}[r.IntN(5)])
	case n == 2:
		v.SetBool(r.IntN(2) == 0)
	case n == 3:
		v.SetEmptyBytes().FromRaw([]byte(randomText(r)))
	case n == 4 && depth > 0:
		s := v.SetEmptySlice()
		for range r.IntN(4) {
			randomValue(r, s.AppendEmpty(), depth-1)
		}
	case n == 5 && depth > 0:
		randomMap(r, v.SetEmptyMap(), depth-1)
	case n == 6:
	default:
		v.SetStr(randomText(r))
	}
}

func TestManyRecords(t *testing.T) {
	logs := corpus()
	for _, l := range loads(t)[1:] {
		log, _ := send(l.ContentType, l.Body)
		compare(t, log.Lines(), logs)
		if len(log.Lines()) != sourcetest.PerBody {
			t.Errorf("%s: %d lines", l.name, len(log.Lines()))
		}
	}
}
