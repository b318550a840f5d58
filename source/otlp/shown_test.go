package otlp_test

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/record/meaning"
	"blobtail/source/httpsource"
)

// The observed time gives way to a time that the body shows.
func TestShown(t *testing.T) {
	const observed = 1795172406257312345
	mapping := (*meaning.Mapping)(nil).With(meaning.Names{Time: []string{"when"}})
	for _, row := range []struct {
		name string
		body func(pcommon.Value)
		want string
	}{
		{"no time", func(v pcommon.Value) { v.SetStr("x") }, "2026-11-20T11:00:06.257312345Z"},
		{"a text", func(v pcommon.Value) { v.SetStr("2026-11-20T10:00:06.1Z stderr F level=error msg=x") },
			"2026-11-20T10:00:06.100000000Z"},
		{"JSON", func(v pcommon.Value) { v.SetStr(`{"time":"2026-11-20T10:00:06.1Z","msg":"x"}`) }, "2026-11-20T10:00:06.100000000Z"},
		{"a map", func(v pcommon.Value) { v.SetEmptyMap().PutStr("time", "2026-11-20T10:00:06.1Z") }, "2026-11-20T10:00:06.100000000Z"},
		{"a map with a message", func(v pcommon.Value) {
			m := v.SetEmptyMap()
			m.PutStr("@timestamp", "soon")
			m.PutStr("msg", "x")
			m.PutDouble("t", 1795168999)
			m.PutDouble("time", 1795168806.5)
		}, "2026-11-20T10:00:06.500000000Z"},
		{"a map with a date", func(v pcommon.Value) {
			m := v.SetEmptyMap()
			m.PutStr("msg", "x")
			m.PutStr("date", "2026-11-20")
		}, "2026-11-20T11:00:06.257312345Z"},
		{"a time two days ahead", func(v pcommon.Value) { v.SetStr("2026-11-26T13:00:06.1Z x") }, "2026-11-20T11:00:06.257312345Z"},
	} {
		for _, fields := range []*meaning.Mapping{nil, mapping} {
			logs := one(func(_ pcommon.Map, _ pcommon.InstrumentationScope, r plog.LogRecord) {
				r.SetObservedTimestamp(observed)
				row.body(r.Body())
			})
			if got := derived(t, httpsource.Options{Fields: fields}, logs); !strings.HasPrefix(got, `{"ts":"`+row.want) {
				t.Errorf("%s, mapped %t: %s, want %s", row.name, fields != nil, got, row.want)
			}
		}
	}
}
