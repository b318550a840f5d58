package otlp_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
)

// TestOTelJS sends a request of the exporter of OpenTelemetry JS in JSON: times are strings, other
// integers are numbers.
func TestOTelJS(t *testing.T) {
	body, err := os.ReadFile("testdata/otel-js.json")
	if err != nil {
		t.Fatal(err)
	}
	l, w := send(jsonType, body)
	const shared = `"otel.scope.name":"shop","otel.scope.version":"1.4.0","telemetry.sdk.language":"nodejs","telemetry.sdk.name":"opentelemetry",` +
		`"telemetry.sdk.version":"2.11.0","process.command_args":["/usr/bin/node","app.js"]}`
	want := `{"ts":"2025-11-20T10:00:00.123000000Z","level":"error","service":"checkout","msg":"card declined",` +
		`"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","order":1,"amount":12.5,"retry":false,"tags":["a",2],` +
		`"ctx":{"ip":"10.0.0.1"},"raw":"AQID","event_name":"payment.failed","flags":1,` + shared + "\n" +
		`{"ts":"2025-11-20T10:00:00.125000000Z","level":"info","service":"checkout","msg":"card \"4242\" accepted","ms":31,` + shared
	if got := strings.Join(l.Lines(), "\n"); got != want || w.Code != http.StatusOK || w.Body.String() != "{}" {
		t.Errorf("%d %s\n%s\nwant\n%s", w.Code, w.Body, got, want)
	}
	logs, err := unmarshal(jsonType, body)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, l.Lines(), logs)
}

// TestSpellings sends JSON that no library writes and that is still clear.
func TestSpellings(t *testing.T) {
	wrap := func(records string) string {
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + records + `]}]}]}`
	}
	const ts = `{"ts":"2026-11-24T12:00:00.000000000Z",`
	head := ts + `"level":"","service":"unknown","msg":""`
	for _, row := range []struct {
		name, body, want string
	}{
		{"head behind", `{"resource_logs":[{"scope_logs":[{"log_records":[{"body":{"string_value":"x"}}],"scope":{"name":"n"}}],` +
			`"resource":{"attributes":[{"value":{"stringValue":"web"},"key":"service.name"}]}}]}`,
			ts + `"level":"","service":"web","msg":"x","otel.scope.name":"n"}`},
		{"libraries", `{"resourceLogs":[{"instrumentationLibraryLogs":[{"instrumentationLibrary":{"name":"n"},"logs":[{}]}]}]}`,
			head + `,"otel.scope.name":"n"}`},
		{"nulls", `{"resourceLogs":[null,{"resource":null,"schemaUrl":null,"scopeLogs":[null,{"scope":null,"logRecords":[null,{"body":null,"attributes":null,"traceId":null,"timeUnixNano":null}]}]}]}`,
			head + "}"},
		{"white space and unknown members", "\xef\xbb\xbf \n{\"x\": [1, {\"y\": \"]\"}] ,\"resourceLogs\" :\n[ { \"scopeLogs\": [ {\"logRecords\" : [ { \"body\" : { \"stringValue\" : \"x\" } , \"z\":{\"]\":1} } ] } ] } ] }\n",
			ts + `"level":"","service":"unknown","msg":"x"}`},
		{"no records", `{"resourceLogs":[]}`, ""},
		{"nothing", `{}`, ""},
		{"one after the other", wrap(`{"body":{"stringValue":"a"}}`) + "\n" + wrap(`{"body":{"stringValue":"b"}}`),
			ts + `"level":"","service":"unknown","msg":"a"}` + "\n" + ts + `"level":"","service":"unknown","msg":"b"}`},
		{"numbers in strings and out of them", wrap(`{"timeUnixNano":1.7636328e18,"attributes":[{"key":"a","value":{"intValue":"12"}},` +
			`{"key":"b","value":{"doubleValue":"NaN"}},{"key":"c","value":{"doubleValue":3}},{"key":"d","value":{"intValue":1.5}},{"key":"e","value":{"intValue":"x"}},{"key":"f","value":{"boolValue":"true"}}]}`),
			`{"ts":"2025-11-20T10:00:00.000000000Z","level":"","service":"unknown","msg":"","a":12,"b":"NaN","c":3,"d":1.5,"e":"x","f":true}`},
		{"a time in seconds", wrap(`{"timeUnixNano":"1795168800","body":{"stringValue":"s"}}`),
			`{"ts":"2026-11-20T10:00:00.000000000Z","level":"","service":"unknown","msg":"s"}`},
		{"a time in milliseconds", wrap(`{"timeUnixNano":1795168800257,"body":{"stringValue":"ms"}}`),
			`{"ts":"2026-11-20T10:00:00.257000000Z","level":"","service":"unknown","msg":"ms"}`},
		{"a time that is none", wrap(`{"timeUnixNano":"today"}`), head + `,"time_unix_nano":"today"}`},
		{"severity by name", wrap(`{"severityNumber":"SEVERITY_NUMBER_FATAL2"}`), ts + `"level":"critical","service":"unknown","msg":""}`},
		{"ids of no form", wrap(`{"traceId":"xyz","spanId":"AbC"}`), head + `,"trace_id":"xyz","span_id":"abc"}`},
		{"ids in base64", wrap(`{"traceId":"W47/+UoReeUGIX5HqwCwng==","spanId":"7uGbfeuNJM4="}`), head + `,"trace_id":"5b8efff94a1179e506217e47ab00b09e","span_id":"eee19b7deb8d24ce"}`},
		{"ids of zeros", wrap(`{"traceId":"00000000000000000000000000000000","spanId":""}`), head + `}`},
		{"bad base64", wrap(`{"body":{"bytesValue":"a-_b"}}`), ts + `"level":"","service":"unknown","msg":"a-_b"}`},
		{"plain values", wrap(`{"body":"x","attributes":[{"key":"n","value":5},{"key":"l","value":[1,"b"]},{"key":"m","value":{"arrayValue":{"values":[7,"s",null,[1]]}}}]}`),
			ts + `"level":"","service":"unknown","msg":"x","n":5,"l":[1,"b"],"m":[7,"s",null,[1]]}`},
		{"two values", wrap(`{"body":{"stringValue":"a","intValue":2},"attributes":[{"key":"a","value":{"arrayValue":{"values":[{"arrayValue":{},"intValue":4},{"kvlistValue":{"values":[{"value":{"boolValue":true},"key":"k"},{"key":"l"}]},"x":1}]}}}]}`),
			ts + `"level":"","service":"unknown","msg":"{\"stringValue\":\"a\",\"intValue\":2}","a":[{"arrayValue":{},"intValue":4},{"k":true,"l":null}]}`},
		{"nulls beside a value", wrap(`{"body":{"stringValue":null,"kvlistValue":null,"intValue":2,"arrayValue":null},"attributes":[{"key":"a","value":{"intValue":5,"stringValue":null}},{"key":"b","value":{"stringValue":null}},{"key":"c","value":{}}]}`),
			ts + `"level":"","service":"unknown","msg":"2","a":5,"b":null,"c":null}`},
		{"a map without values", wrap(`{"body":{"kvlistValue":[{"key":"type","value":{"stringValue":"x"}}]},"attributes":[{"key":"a","value":{"kvlistValue":{ "b":1}}},{"key":"c","value":{"kvlistValue":"d"}},{"key":"e","value":{"kvlistValue":{"values":{"f":"g"}}}}]}`),
			ts + `"level":"","service":"unknown","msg":"{\"kvlistValue\":[{\"key\":\"type\",\"value\":{\"stringValue\":\"x\"}}]}","a":{"kvlistValue":{"b":1}},"c":{"kvlistValue":"d"},"e":{"kvlistValue":{"values":{"f":"g"}}}}`},
		{"an array without values", wrap(`{"body":{"arrayValue":[{"stringValue":"x"}]},"attributes":[{"key":"a","value":{"arrayValue":[1, "\ud83d"]}},{"key":"b","value":{"arrayValue":{"values":[{"arrayValue":["y"]},{"intValue":"1"}]}}},{"key":"c","value":{"kvlistValue":{"values":[{"value":{"arrayValue":{"z":1}},"key":"d"}]}}}]}`),
			ts + `"level":"","service":"unknown","msg":"{\"arrayValue\":[{\"stringValue\":\"x\"}]}","a":{"arrayValue":[1,"\\ud83d"]},"b":[{"arrayValue":["y"]},1],"c":{"d":{"arrayValue":{"z":1}}}}`},
		{"values of no kind", wrap(`{"body":{"text":"x"},"attributes":[{"key":"a","value":{"type":"STRING","content":"y"}},{"key":"b","value":{"boolValue":"maybe"}},{"key":"c","value":{"stringValue":{"d":[1]}}},{"key":"e","value":{"intValue":{"f":1}}}]}`),
			ts + `"level":"","service":"unknown","msg":"{\"text\":\"x\"}","a":{"type":"STRING","content":"y"},"b":"maybe","c":"{\"d\":[1]}","e":{"f":1}}`},
		{"a plain map as the body", wrap(`{"body":{"message":"x","n":1}}`), ts + `"level":"","service":"unknown","msg":"{\"message\":\"x\",\"n\":1}"}`},
		{"numbers that are none", wrap(`{"severityNumber":"high","observedTimeUnixNano":"now","flags":"f","droppedAttributesCount":{"n":1}}`),
			head + `,"severity_number":"high","observed_time_unix_nano":"now","flags":"f","dropped_attributes_count":"{\"n\":1}"}`},
		{"escapes", wrap(`{"body":{"stringValue":"\u00e9\ud83d\ude00\\\"\/\n"},"attributes":[{"key":"\u0061\n","value":{"stringValue":"\ud800"}}]}`),
			ts + `"level":"","service":"unknown","msg":"é😀\\\"/\n","a\n":"\\ud800"}`},
	} {
		l, w := send(jsonType, []byte(row.body))
		if got := strings.Join(l.Lines(), "\n"); got != row.want || w.Code != http.StatusOK || w.Body.String() != "{}" {
			t.Errorf("%s: %d %s\n%s\nwant\n%s", row.name, w.Code, w.Body, got, row.want)
		}
	}
}

// An attribute cannot be read if its members have other names. Its record is kept, and counted.
func TestPairsOfOtherNames(t *testing.T) {
	const needle = `needle "1"`
	for _, attribute := range []string{`{"name":"a","value":{"stringValue":NEEDLE}}`, `{"key":"a","val":{"stringValue":NEEDLE}}`, `{"a":NEEDLE}`, `NEEDLE`, `{"key":"m","value":{"kvlistValue":{"values":[{"a":NEEDLE}]}}}`} {
		for _, place := range []string{`"attributes":[ATTRIBUTE]`, `"body":{"kvlistValue":{"values":[ATTRIBUTE]}}`} {
			body := strings.NewReplacer("ATTRIBUTE", strings.ReplaceAll(attribute, "NEEDLE", strconv.Quote(needle))).Replace(place)
			l, w := send(jsonType, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"good"}},{`+body+`}]}]}]}`))
			lines := strings.Join(l.Lines(), "\n")
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"rejectedLogRecords":"1"`) || l.Rejected() != 1 || !strings.Contains(lines, `needle \\\"1`) {
				t.Errorf("%s: %d %s\n%s", body, w.Code, w.Body, lines)
			}
		}
	}
}

// A message of protobuf may have its fields in any order, several times, and of types that
// are not known yet.
func TestProtobufOrder(t *testing.T) {
	part := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	str := func(number protowire.Number, s string) []byte { return part(number, []byte(s)) }
	pair := func(k, v string) []byte { return append(part(2, str(1, v)), str(1, k)...) }
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 5)
	group := append(protowire.AppendTag(nil, 77, protowire.StartGroupType), unknown...)
	group = protowire.AppendTag(group, 77, protowire.EndGroupType)
	rec := bytes.Join([][]byte{unknown, part(5, str(1, "a")), group, part(6, pair("k", "v")), part(5, append(str(1, "b"), unknown...)), part(9, []byte("abc"))}, nil)
	scope := part(1, append(str(1, "n"), part(3, pair("s", "t"))...))
	body := bytes.Join([][]byte{
		unknown,
		part(1, bytes.Join([][]byte{part(2, append(part(2, rec), scope...)), part(1, part(1, pair("service.name", "web"))), unknown, part(1, part(1, pair("r", "q"))), part(1000, part(2, nil))}, nil)),
	}, nil)
	l, w := send(protobuf, body)
	const head = `{"ts":"2026-11-24T12:00:00.000000000Z","level":"","service":"web","msg":`
	want := head + `"b","trace_id":"616263","k":"v","otel.scope.name":"n","s":"t","r":"q"}` + "\n" + head + `"","r":"q"}`
	if got := strings.Join(l.Lines(), "\n"); got != want || w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("%d %q\n%s\nwant\n%s", w.Code, w.Body, got, want)
	}
}

// TestEncodings sends each encoding with each compression. From the second time on it is a
// repeat.
func TestEncodings(t *testing.T) {
	logs := corpus()
	for contentType, body := range map[string][]byte{
		protobuf: inProtobuf(t, logs), jsonType + "; charset=utf-8": inJSON(t, logs), "": inProtobuf(t, logs),
		"application/x-www-form-urlencoded": inJSON(t, logs),
	} {
		l := &sourcetest.Log{}
		s := l.Source(otlp.New(otlp.Options{}))
		for _, encoding := range []string{"", "gzip", "zstd", "deflate", "snappy"} {
			w := sendTo(s, contentType, sourcetest.Encode(t, encoding, body), "Content-Encoding", encoding)
			if w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", contentType, encoding, w.Code, w.Body)
			}
		}
		if len(l.Lines()) != 5*sourcetest.PerBody || l.Identities() != sourcetest.PerBody || l.Origins()[0].IsZero() {
			t.Errorf("%s: %d lines, %d different, origins %v", contentType, len(l.Lines()), l.Identities(), l.Origins())
		}
	}
}

// A status is a google.rpc.Status.
type status struct {
	Code    int
	Message string
}

func parseStatus(t *testing.T, w *httptest.ResponseRecorder) (s status) {
	t.Helper()
	if w.Header().Get("Content-Type") == jsonType {
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for b := w.Body.Bytes(); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		b = b[max(n, 0):]
		switch {
		case number == 1 && kind == protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			s.Code, b = int(v), b[n:]
		case number == 2 && kind == protowire.BytesType:
			v, n := protowire.ConsumeString(b)
			s.Message, b = v, b[n:]
		default:
			t.Fatalf("no status: %q", w.Body)
		}
	}
	return s
}

func TestRefusals(t *testing.T) {
	good := inProtobuf(t, one(func(pcommon.Map, pcommon.InstrumentationScope, plog.LogRecord) {}))
	for _, row := range []struct {
		name, method, contentType, encoding string
		body                                []byte
		log                                 error
		http, code                          int
		message                             string
	}{
		{name: "full log", contentType: protobuf, body: good, log: record.ErrFull, http: 429, code: 8, message: "send it again later"},
		{name: "full log", contentType: jsonType, body: []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}`), log: record.ErrFull, http: 429, code: 8, message: "again"},
		{name: "failing disk", contentType: protobuf, body: good, log: errors.New("disk"), http: 503, code: 14, message: "again"},
		{name: "method", method: "GET", contentType: protobuf, http: 405, code: 12, message: "POST"},
		{name: "type", contentType: "application/grpc", body: good, http: 415, code: 3, message: "application/x-protobuf"},
		{name: "charset", contentType: "application/json; charset=utf-16", body: good, http: 415, code: 3, message: "UTF-8"},
		{name: "no type", contentType: ";", body: good, http: 415, code: 3, message: "Content-Type"},
		{name: "encoding", contentType: protobuf, encoding: "br", body: good, http: 415, code: 3, message: "gzip"},
		{name: "bad gzip", contentType: jsonType, encoding: "gzip", body: good, http: 400, code: 3, message: "gzip"},
		{name: "a bomb", contentType: protobuf, encoding: "gzip", body: sourcetest.Encode(t, "gzip", make([]byte, 65<<20)), http: 413, code: 8, message: "200 times"},
	} {
		l := &sourcetest.Log{Err: row.log}
		method := cmp.Or(row.method, http.MethodPost)
		w := sourcetest.Send(l.Source(otlp.New(otlp.Options{})), method, "/otlp/v1/logs", bytes.NewReader(row.body),
			"Content-Type", row.contentType, "Content-Encoding", row.encoding)
		s := parseStatus(t, w)
		if w.Code != row.http || s.Code != row.code || !strings.Contains(s.Message, row.message) {
			t.Errorf("%s: %d %+v", row.name, w.Code, s)
		}
		if want := protobuf; row.contentType == protobuf && w.Header().Get("Content-Type") != want {
			t.Errorf("%s: answered as %s", row.name, w.Header().Get("Content-Type"))
		}
		if retry := w.Header().Get("Retry-After") != ""; retry != (row.http == 429 || row.http == 503) {
			t.Errorf("%s: Retry-After %t", row.name, retry)
		}
		if len(l.Lines()) > 0 {
			t.Errorf("%s: %d lines", row.name, len(l.Lines()))
		}
	}
}

// A request may be refused before its header is read, for its credentials.
func TestRefusedAtOnce(t *testing.T) {
	for contentType, want := range map[string]string{protobuf: protobuf, jsonType: jsonType, "": jsonType, "image/png": jsonType} {
		r := httptest.NewRequest(http.MethodPost, "/v1/logs", nil)
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		refused := httpsource.Refuse(http.StatusUnauthorized, "no token")
		code, text := otlp.New(otlp.Options{}).Exchange(r).Reply(w.Header(), &httpsource.Result{}, refused)
		_, _ = w.Write(text)
		if s := parseStatus(t, w); code != 401 || s != (status{16, "no token"}) || w.Header().Get("Content-Type") != want {
			t.Errorf("%q: %d %+v as %s", contentType, code, s, w.Header().Get("Content-Type"))
		}
	}
	if x := otlp.New(otlp.Options{}).Exchange(httptest.NewRequest(http.MethodPost, "/v1/traces", nil)); x != nil {
		t.Error("it takes traces")
	}
}

func TestEmpty(t *testing.T) {
	for contentType, want := range map[string]string{protobuf: protobuf, jsonType: jsonType, "": protobuf} {
		l, w := send(contentType, nil)
		text := map[string]string{jsonType: "{}"}[want]
		if w.Code != 200 || w.Body.String() != text || w.Header().Get("Content-Type") != want || len(l.Lines()) > 0 {
			t.Errorf("%q: %d %q as %s", contentType, w.Code, w.Body, w.Header().Get("Content-Type"))
		}
	}
}

// Rejected records are kept and counted. The others are accepted.
func TestPartialSuccess(t *testing.T) {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	records.AppendEmpty().Body().SetStr("good")
	deep := records.AppendEmpty().Body().SetEmptySlice()
	for range record.MaxDepth {
		deep = deep.AppendEmpty().SetEmptySlice()
	}
	records.AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(sourcetest.Now().AddDate(0, 0, 2)))
	records.AppendEmpty().Body().SetStr("good too")
	const message = "record 1: nested deeper than 64; rejected records are kept in the service _rejected"
	for contentType, body := range map[string][]byte{protobuf: inProtobuf(t, logs), jsonType: inJSON(t, logs)} {
		l, w := send(contentType, body)
		if len(l.Lines()) != 4 || l.Rejected() != 2 || w.Code != 200 || w.Header().Get("Content-Type") != contentType {
			t.Fatalf("%d %q, %d lines", w.Code, w.Body, len(l.Lines()))
		}
		if contentType == jsonType {
			if want := `{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"` + message + `"}}`; w.Body.String() != want {
				t.Errorf("%s, want %s", w.Body, want)
			}
			continue
		}
		want := "\x0a" + string(rune(2+2+len(message))) + "\x08\x02\x12" + string(rune(len(message))) + message
		if w.Body.String() != want {
			t.Errorf("%q, want %q", w.Body, want)
		}
	}
}
