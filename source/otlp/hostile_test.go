package otlp_test

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
)

// message returns a field with a message.
func message(number protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
}

// ofRecord returns a request with these bytes of a log record.
func ofRecord(b []byte) []byte { return message(1, message(2, message(2, b))) }

// deepProtobuf returns an AnyValue of about n bytes in which maps are nested.
func deepProtobuf(n int) []byte {
	buf := make([]byte, n+64)
	at := len(buf)
	field := func(tag byte) {
		size := protowire.AppendVarint(nil, uint64(len(buf)-at))
		at -= len(size) + 1
		buf[at] = tag
		copy(buf[at+1:], size)
	}
	for at > 64 {
		field(0x0a) // values of the list or array
		field(0x2a) // array_value
	}
	return buf[at:]
}

// A hostile is a body that is made to break a decoder, and the number of its records that are
// stored or rejected.
type hostile struct {
	name, contentType        string
	body                     []byte
	status, stored, rejected int
	reason                   string
}

// check sends the body. All bytes that are no records are kept in _rejected, and the answer
// says why.
func (h *hostile) check(t *testing.T) {
	t.Helper()
	begun := time.Now()
	l, w := send(h.contentType, h.body)
	rejected := rejected(t, l)
	if stored := len(l.Lines()) - len(rejected); w.Code != h.status || stored != h.stored || len(rejected) != h.rejected {
		t.Errorf("%s: %d %.300q, %d stored, %d rejected", h.name, w.Code, w.Body, stored, len(rejected))
		return
	}
	if reason, _ := rejected[0]["reason"].(string); !strings.Contains(reason, h.reason) || !strings.Contains(w.Body.String(), h.reason) {
		t.Errorf("%s: reason %q, answer %.300q", h.name, reason, w.Body)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("%s took %v", h.name, took)
	}
}

// inLogs returns a request with these records as JSON.
func inLogs(records string) []byte {
	return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + records + `]}]}]}`)
}

func TestHostileProtobuf(t *testing.T) {
	manyPairs := bytes.Repeat(message(6, message(1, []byte("k"))), 300)
	good := ofRecord(message(5, message(1, []byte("good"))))
	for _, row := range []hostile{
		{"text as protobuf", protobuf, []byte("hello world, this is a log"), 400, 0, 1, "not a request of OTLP"},
		{"JSON as protobuf", protobuf, inLogs("{}"), 400, 0, 1, "not a request of OTLP"},
		{"zeros", protobuf, make([]byte, 100), 400, 0, 1, "not a request of OTLP"},
		{"unknown fields only", protobuf, []byte("\x78\x01\x78\x02"), 400, 0, 1, "it is not OTLP"},
		{"spans", protobuf, message(1, message(2, message(2, append(message(1, make([]byte, 16)), message(5, []byte("name"))...)))), 400, 0, 1, "field 1 of a LogRecord has the wire type 2"},
		{"a number for the logs", protobuf, []byte{0x08, 1}, 400, 0, 1, "wire type 0"},
		{"a number for a scope", protobuf, message(1, []byte{0x10, 1}), 400, 0, 1, "wire type 0"},
		{"a number for a record", protobuf, message(1, message(2, []byte{0x10, 1})), 400, 0, 1, "wire type 0"},
		{"a number for a resource", protobuf, message(1, append([]byte{0x08, 1}, message(2, message(2, nil))...)), 400, 0, 1, "wire type 0"},
		{"truncated", protobuf, append(bytes.Clone(good), good[:len(good)-3]...), 200, 1, 1, "ends too early"},
		{"truncated inside", protobuf, append(bytes.Clone(good), message(1, []byte("\x12\x09\x12"))...), 200, 1, 1, "ends too early"},
		{"a length beyond all", protobuf, append(bytes.Clone(good), "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"...), 200, 1, 1, "ends too early"},
		{"garbage behind", protobuf, append(bytes.Clone(good), "\xff\xff\xff"...), 200, 1, 1, "not a request"},
		{"a broken record", protobuf, append(ofRecord([]byte("\x2a\x03\x0a\x09x")), good...), 200, 1, 1, "AnyValue"},
		{"a broken attribute", protobuf, ofRecord(message(6, []byte("\x0a\x05k"))), 400, 0, 1, "KeyValue"},
		{"a broken list", protobuf, ofRecord(message(5, message(6, []byte("\x0a\x05k")))), 400, 0, 1, "KeyValueList"},
		{"a broken array", protobuf, ofRecord(message(5, message(5, []byte("\x0a\x05k")))), 400, 0, 1, "nested value"},
		{"a broken resource", protobuf, message(1, append(message(1, []byte("\x0a\x05k")), message(2, message(2, nil))...)), 400, 0, 1, "resource"},
		{"too many attributes", protobuf, ofRecord(manyPairs), 200, 0, 1, "256 fields"},
		{"too many members", protobuf, ofRecord(message(5, message(6, bytes.Repeat(message(1, message(1, []byte("k"))), 300)))), 200, 0, 1, "256 fields"},
		{"too many fields together", protobuf, message(1, append(message(1, bytes.Repeat(message(1, message(1, []byte("r"))), 200)),
			message(2, message(2, bytes.Repeat(message(6, message(1, []byte("k"))), 57)))...)), 200, 0, 1, "256 fields"},
		{"a long record", protobuf, ofRecord(message(5, message(1, make([]byte, record.MaxRecord)))), 200, 0, 1, "longer than 1 MiB"},
		{"deep", protobuf, ofRecord(message(5, deepProtobuf(900<<10))), 200, 0, 1, "nested deeper than 64"},
		{"deep attribute", protobuf, ofRecord(message(6, append(message(1, []byte("k")), message(2, deepProtobuf(900<<10))...))), 200, 0, 1, "nested deeper than 64"},
	} {
		row.check(t)
	}
}

func TestHostileJSON(t *testing.T) {
	for _, row := range []hostile{
		{"text as JSON", jsonType, []byte("hello"), 400, 0, 1, "no resourceLogs"},
		{"an array", jsonType, []byte(`[{"body":"x"}]`), 400, 0, 1, "no resourceLogs"},
		{"records of no form", jsonType, []byte(`{"msg":"x"}`), 400, 0, 1, "no resourceLogs"},
		{"spans as JSON", jsonType, []byte(`{"resourceSpans":[]}`), 400, 0, 1, "no resourceLogs"},
		{"text for logs", jsonType, []byte(`{"resourceLogs":"x"}`), 400, 0, 1, "an array should be here"},
		{"a number for a record in JSON", jsonType, inLogs(`1,{}`), 200, 1, 1, "an object should be here"},
		{"text for a resource", jsonType, []byte(`{"resourceLogs":[{"resource":"x","scopeLogs":[{"logRecords":[{}]}]}]}`), 400, 0, 1, "a resource is no object"},
		{"two resources", jsonType, []byte(`{"resourceLogs":[{"resource":{},"scopeLogs":[{"logRecords":[{}]}],"resource":{}}]}`), 200, 1, 1, "a second resource"},
		{"text for attributes", jsonType, inLogs(`{"attributes":"x"},{}`), 200, 1, 1, "attributes are no array"},
		{"text for an attribute", jsonType, inLogs(`{"attributes":["x"]},{}`), 200, 1, 1, "no object"},
		{"truncated JSON", jsonType, inLogs(`{},{"body":{"stringValue":"abc`)[:75], 200, 1, 1, "ends too early"},
		{"garbage behind JSON", jsonType, append(inLogs("{}"), "xyz"...), 200, 1, 1, "no resourceLogs"},
		{"no comma", jsonType, inLogs(`{} {}`), 200, 1, 1, "a comma or the end"},
		{"no colon", jsonType, inLogs(`{},{"body" {}}`), 200, 1, 1, "a colon"},
		{"no key", jsonType, inLogs(`{},{body:{}}`), 200, 1, 1, "a string"},
		{"no value", jsonType, inLogs(`{},{"x":}`), 200, 1, 1, "a value"},
		{"too many attributes in JSON", jsonType, inLogs(`{"attributes":[` + strings.Repeat(`{},`, 256) + `{}]}`), 200, 0, 1, "256 fields"},
		{"too many members in JSON", jsonType, inLogs(`{"body":{"kvlistValue":{"values":[` + strings.Repeat(`{},`, 256) + `{}]}}}`), 200, 0, 1, "256 fields"},
		{"a long record in JSON", jsonType, inLogs(`{"body":{"stringValue":"` + strings.Repeat("x", record.MaxRecord) + `"}},{}`), 200, 1, 1, "longer than 1 MiB"},
		{"deep plain JSON", jsonType, inLogs(`{"attributes":[{"key":"k","value":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}]}"), 200, 0, 1, "nested deeper than 64"},
	} {
		row.check(t)
	}
}

func TestHostileSizes(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	for _, row := range []hostile{
		{"very deep", protobuf, ofRecord(message(5, deepProtobuf(60<<20))), 200, 0, 1, "longer than 1 MiB"},
		{"a group without end", protobuf, bytes.Repeat([]byte{0x7b}, 32<<20), 400, 0, 1, "not a request"},
		{"deep JSON", jsonType, inLogs(`{"body":` + strings.Repeat(`{"kvlistValue":{"values":[{"value":`, 1<<20) + "1" + strings.Repeat(`}]}}`, 1<<20) + "}"), 200, 0, 1, "nested deeper than 64"},
		{"very deep plain JSON", jsonType, inLogs(`{"attributes":[{"key":"k","value":` + strings.Repeat("[", 16<<20) + strings.Repeat("]", 16<<20) + "}]}"), 200, 0, 1, "longer than 1 MiB"},
		{"deep unknown JSON", jsonType, inLogs(`{"x":` + strings.Repeat(`{"a":`, 4<<20) + "1" + strings.Repeat("}", 4<<20) + "},{}"), 200, 1, 1, "longer than 1 MiB"},
		{"open JSON", jsonType, []byte(strings.Repeat(`{"resourceLogs":[`, 2<<20)), 400, 0, 1, "ends too early"},
	} {
		row.check(t)
	}
}

// Bodies that announce very many values take no more memory than the lines of their
// records. That is why the form of a body has no weight.
func TestMemory(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	const n = 8 << 20
	json := func(head, element, tail string) []byte {
		return []byte(head + strings.Repeat(element+",", n/(len(element)+1)) + element + tail)
	}
	for name, body := range map[string][]byte{
		"resources":          bytes.Repeat([]byte{0x0a, 0}, n/2),
		"scopes":             message(1, bytes.Repeat([]byte{0x12, 0}, n/2)),
		"attributes":         ofRecord(bytes.Repeat([]byte{0x32, 0}, n/2)),
		"shared attributes":  message(1, append(message(1, bytes.Repeat([]byte{0x0a, 0}, n/2)), message(2, message(2, nil))...)),
		"values":             ofRecord(message(5, message(5, bytes.Repeat([]byte{0x0a, 0}, 500<<10)))),
		"control characters": ofRecord(message(5, message(5, message(1, message(1, make([]byte, 900<<10)))))),
		"resources in JSON":  json(`{"resourceLogs":[`, `{}`, `]}`),
		"scopes in JSON":     json(`{"resourceLogs":[{"scopeLogs":[`, `{}`, `]}]}`),
		"attributes in JSON": json(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[`, `{}`, `]}]}]}]}`),
		"values in JSON":     json(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"arrayValue":{"values":[`, `{}`, `]}}}]}]}]}`),
		"escapes in JSON":    json(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"arrayValue":{"values":[`, `"\u0000\u0000"`, `]}}}]}]}]}`),
		"a text in JSON":     []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"arrayValue":{"values":["` + strings.Repeat("\xff", n) + `"]}}}]}]}]}`),
	} {
		contentType := protobuf
		if body[0] == '{' {
			contentType = jsonType
		}
		s := (&sourcetest.Log{}).Source(otlp.New(otlp.Options{}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := sendTo(s, contentType, body)
		runtime.ReadMemStats(&after)
		// Reading the body itself takes 16 MiB and more of them.
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: %d MiB allocated for %d MiB, %d %.200q", name, used>>20, len(body)>>20, w.Code, w.Body)
		} else {
			t.Logf("%s: %.1f MiB for %.1f MiB, %d %.100q", name, float64(used)/(1<<20), float64(len(body))/(1<<20), w.Code, w.Body)
		}
	}
}

// A resource with many attributes is not multiplied without end.
func TestSharedAttributes(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	const records, most = 10_000, 128 << 20
	for name, value := range map[string]string{"text": strings.Repeat("x", 60_000), "escapes": strings.Repeat("\x00", 10_000)} {
		resource := message(1, message(1, append(message(1, []byte("k")), message(2, message(1, []byte(value)))...)))
		c := &counter{}
		s := httpsource.New(httpsource.Options{Accept: c, Protocols: []httpsource.Protocol{otlp.New(otlp.Options{})}})
		w := sendTo(s, protobuf, message(1, append(resource, message(2, bytes.Repeat([]byte{0x12, 0}, records))...)))
		if w.Code != http.StatusOK || c.lines != records || c.rejected < records/2 || c.bytes < most/2 || c.bytes > most+records*500 {
			t.Errorf("%s: %d, %d lines of %d MiB, %d rejected", name, w.Code, c.lines, c.bytes>>20, c.rejected)
		}
		if !strings.Contains(w.Body.String(), "send fewer records together") {
			t.Errorf("%s: %q", name, w.Body)
		}
	}
}

// A counter counts the lines that a source appends to the log.
type counter struct{ lines, rejected, bytes int }

func (c *counter) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	c.lines += len(q.Lines)
	c.bytes += len(q.Data)
	for _, l := range q.Lines {
		if q.Services[l.Service] == record.RejectedService {
			c.rejected++
		}
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// The library of the Collector needs so much for a byte of a body: the reason that the
// package walks through it by itself.
func BenchmarkLibraryMemory(b *testing.B) {
	for name, body := range map[string][]byte{
		"records":    message(1, message(2, bytes.Repeat([]byte{0x12, 0}, 1<<20))),
		"attributes": ofRecord(bytes.Repeat([]byte{0x32, 0}, 1<<20)),
	} {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				if _, err := unmarshal(protobuf, body); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/float64(len(body)), "B/byte")
		})
	}
}

// The usual request allocates nothing for its records.
func TestAllocations(t *testing.T) {
	testkit.FullOnly(t, "under the race detector a sync.Pool drops things at random")
	for _, l := range loads(t)[1:] {
		once, _ := l.Sender(discarding())
		once()
		if n := testing.AllocsPerRun(20, once); n > 60 {
			t.Errorf("%s: %v allocations for a request of %d records", l.name, n, sourcetest.PerBody)
		}
	}
}

// Nothing of one request shows up in the next.
func TestReuse(t *testing.T) {
	l := &sourcetest.Log{}
	s := l.Source(otlp.New(otlp.Options{}))
	full := one(func(a pcommon.Map, scope pcommon.InstrumentationScope, x plog.LogRecord) {
		a.PutStr("service.name", "web")
		a.PutStr("r", "r")
		scope.SetName("scope")
		x.Attributes().PutStr("k", "v")
		x.Body().SetEmptyMap().PutStr("m", "n")
		x.SetEventName("e")
		x.SetFlags(1)
		x.SetSpanID([8]byte{1})
	})
	bare := plog.NewLogs()
	bare.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	for range 3 {
		for contentType, body := range map[string][]byte{protobuf: inProtobuf(t, full), jsonType: inJSON(t, full)} {
			sendTo(s, contentType, body)
			sendTo(s, contentType, map[string][]byte{protobuf: inProtobuf(t, bare), jsonType: inJSON(t, bare)}[contentType])
		}
	}
	for i := 1; i < len(l.Lines()); i += 2 {
		if got := l.Lines()[i]; got != `{"ts":"2026-11-24T12:00:00.000000000Z","level":"","service":"unknown","msg":""}` {
			t.Error(got)
		}
	}
}
