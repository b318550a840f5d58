package otlp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/record"
	"blobtail/source/sourcetest"
)

// A line is a stored record: its fields in their order. A value is a string, json.Number,
// bool, nil, []any or a line.
type line []member

type member struct {
	name  string
	value any
}

// add adds a field, with a number if its name is taken.
func (l *line) add(name string, v any) {
	switch name {
	case "ts", "level", "service", "msg":
		name += ".original"
	}
	name = stored(name)
	free := name
	for n := 2; l.has(free); n++ {
		free = fmt.Sprint(name, ".", n)
	}
	*l = append(*l, member{free, v})
}

func (l line) has(name string) bool {
	for _, m := range l {
		if m.name == name {
			return true
		}
	}
	return false
}

// stored is text as a line has it.
func stored(s string) string {
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b = fmt.Appendf(b, `\x%02x`, s[0])
		} else {
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(b)
}

// reference makes the lines of logs from the library's form of them, as docs/send/otel.md
// says. A nil line is a rejected record.
func reference(logs plog.Logs) (lines []line) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				lines = append(lines, referenceLine(rl.Resource().Attributes(), sl.Scope(), r))
			}
		}
	}
	return lines
}

func referenceLine(resource pcommon.Map, scope pcommon.InstrumentationScope, r plog.LogRecord) line {
	t := sourcetest.Now().UnixNano()
	for _, own := range []pcommon.Timestamp{r.Timestamp(), r.ObservedTimestamp()} {
		if own > 0 && own <= math.MaxInt64 {
			t = int64(own)
			break
		}
	}
	service, named := "", false
	var common line
	for k, v := range resource.All() {
		if k == "service.name" && !named && v.Type() != pcommon.ValueTypeEmpty {
			service, named = word(v), true
			continue
		}
		common = append(common, member{k, plain(v)})
	}
	n := uint32(r.SeverityNumber())
	level, unknown := r.SeverityText(), ""
	if n >= 1 && n <= 24 && record.ParseLevel([]byte(level)) == record.Other {
		level, unknown = record.Level((n-1)/4).String(), level
	}
	if l := record.ParseLevel([]byte(level)); l != record.Other {
		level = l.String()
	}
	folded := "unknown"
	if service != "" {
		folded = record.FoldService(service)
	}
	l := line{{"ts", string(record.AppendTime(nil, t))}, {"level", stored(level)}, {"service", folded}, {"msg", ""}}
	if id := r.TraceID(); !id.IsEmpty() {
		l.add("trace_id", id.String())
	}
	if id := r.SpanID(); !id.IsEmpty() {
		l.add("span_id", id.String())
	}
	for k, v := range r.Attributes().All() {
		l.add(k, plain(v))
	}
	l[3].value = stored(word(r.Body()))
	if r.Body().Type() == pcommon.ValueTypeMap {
		l = bodyFields(l, r.Body().Map())
	}
	l = otherFields(l, r, scope, unknown)
	for k, v := range scope.Attributes().All() {
		l.add(k, plain(v))
	}
	for _, m := range common {
		l.add(m.name, m.value)
	}
	if service != "" && folded != service {
		name := "service.name"
		if l.has(name) {
			name = "service.original"
		}
		l.add(name, stored(service))
	}
	if t > sourcetest.Now().Add(24*time.Hour).UnixNano() || tooMuch(l) {
		return nil
	}
	// The members of a map are as deep as attributes.
	depth := depthOf(plain(r.Body()))
	if r.Body().Type() == pcommon.ValueTypeMap {
		depth--
	}
	if depth+1 > record.MaxDepth {
		return nil
	}
	return l
}

// otherFields adds the fields that are neither attributes nor ids. unknown is a text of the
// severity.
func otherFields(l line, r plog.LogRecord, scope pcommon.InstrumentationScope, unknown string) line {
	addText := func(name, s string) {
		if s != "" {
			l.add(name, stored(s))
		}
	}
	addNumber := func(name string, n uint64) {
		if n > 0 {
			l.add(name, json.Number(strconv.FormatUint(n, 10)))
		}
	}
	addText("event_name", r.EventName())
	addText("severity_text", unknown)
	addNumber("flags", uint64(r.Flags()))
	addNumber("dropped_attributes_count", uint64(r.DroppedAttributesCount()))
	if n := uint32(r.SeverityNumber()); n > 24 {
		addNumber("severity_number", uint64(n))
	}
	if r.Timestamp() > math.MaxInt64 {
		addNumber("time_unix_nano", uint64(r.Timestamp()))
	}
	addText("otel.scope.name", scope.Name())
	addText("otel.scope.version", scope.Version())
	return l
}

// tooMuch reports whether a record is rejected for its size.
func tooMuch(l line) bool {
	for _, m := range l {
		if depthOf(m.value)+1 > record.MaxDepth {
			return true
		}
	}
	return len(l)-4 > record.MaxFields
}

func depthOf(v any) (depth int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			depth = max(depth, depthOf(e))
		}
		return depth + 1
	case line:
		for _, m := range v {
			depth = max(depth, depthOf(m.value))
		}
		return depth + 1
	}
	return 0
}

// bodyFields adds the members of a body that is a map with a message.
func bodyFields(l line, m pcommon.Map) line {
	at, msg := -1, ""
	for _, name := range []string{"msg", "message", "log"} {
		i := 0
		for k, v := range m.All() {
			if at < 0 && k == name && v.Type() == pcommon.ValueTypeStr {
				at, msg = i, v.Str()
			}
			i++
		}
	}
	if at < 0 {
		return l
	}
	l[3].value = stored(msg)
	i := 0
	for k, v := range m.All() {
		if i != at {
			l.add(k, plain(v))
		}
		i++
	}
	return l
}

// plain is a value as it is in a line.
func plain(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return stored(v.Str())
	case pcommon.ValueTypeInt:
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case pcommon.ValueTypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			b, _ := json.Marshal(f)
			return json.Number(b)
		}
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	case pcommon.ValueTypeSlice:
		list := []any{}
		for _, e := range v.Slice().All() {
			list = append(list, plain(e))
		}
		return list
	case pcommon.ValueTypeMap:
		m := line{}
		for k, e := range v.Map().All() {
			m = append(m, member{stored(k), plain(e)})
		}
		return m
	}
	return nil
}

// word is a value as the text of a message.
func word(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return ""
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return string(jsonOf(plain(v)))
	}
	return fmt.Sprint(plain(v))
}

// jsonOf is a value as canonical JSON.
func jsonOf(v any) []byte {
	switch v := v.(type) {
	case string:
		b := append([]byte{'"'}, record.AppendEscaped(nil, []byte(v))...)
		return append(b, '"')
	case []any:
		b := []byte{'['}
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, jsonOf(e)...)
		}
		return append(b, ']')
	case line:
		b := []byte{'{'}
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, jsonOf(m.name)...), ':'), jsonOf(m.value)...)
		}
		return append(b, '}')
	}
	b, _ := json.Marshal(v)
	return b
}

// parseLine reads a stored line.
func parseLine(tb testing.TB, text string) line {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v := parseValue(tb, d)
	l, ok := v.(line)
	if !ok {
		tb.Fatalf("%s is no object", text)
	}
	return l
}

func parseValue(tb testing.TB, d *json.Decoder) any {
	tb.Helper()
	token, err := d.Token()
	if err != nil {
		tb.Fatal(err)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, parseValue(tb, d))
		}
		_, _ = d.Token()
		return list
	case json.Delim('{'):
		l := line{}
		for d.More() {
			name, _ := d.Token()
			l = append(l, member{name.(string), parseValue(tb, d)})
		}
		_, _ = d.Token()
		return l
	}
	return token
}

// compare compares stored lines with those of the reference. It returns the number of
// rejected records that the reference expects.
func compare(t *testing.T, got []string, logs plog.Logs) (rejected int) {
	t.Helper()
	var want []line
	for _, l := range reference(logs) {
		if l == nil {
			rejected++
		} else {
			want = append(want, l)
		}
	}
	var lines []line
	for _, text := range got {
		if l := parseLine(t, text); l[2].value != record.RejectedService {
			lines = append(lines, l)
		}
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(lines[i], want[i]) {
			t.Fatalf("line %d is\n%v\nwant\n%v", i, lines[i], want[i])
		}
	}
	return rejected
}
