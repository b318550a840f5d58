package meaning_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/record/meaning"
)

func cause(c meaning.Cause) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", c.Place)
	for _, s := range []string{c.Name, c.Also} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if c.By != "" {
		b.WriteString(" by " + c.By)
	}
	for _, p := range c.Passed {
		fmt.Fprintf(&b, "; %s %s %s", p.Name, p.Value, p.Reason)
	}
	return b.String()
}

// The parser says where it took the parts of a head from.
func TestWhy(t *testing.T) {
	arrived := time.Date(2026, 11, 20, 10, 5, 0, 0, time.UTC).UnixNano()
	for _, test := range []struct{ line, time, level, message, service string }{
		{`{"time":0.253,"@timestamp":"2026-11-20T10:00:00Z","severity":"ERROR","message":"x","app":"web"}`,
			"1 @timestamp; time 0.253 is no time", "1 severity", "1 message", "1 app"},
		{`{"date":"2026-11-20","time":"10:00:00","level":"loud","lvl":"warn"}`,
			"2 date time", "1 lvl; level \"loud\" is no level", "0", "0"},
		{`{"date":"2026-11-20"}`, "1 date", "0", "0", "0"},
		{`{"time":"10:00:00"}`, "0; time \"10:00:00\" is a clock alone", "0", "0", "0"},
		{`{"ts":"2026-12-20T10:00:00Z","t":1795168806}`, "1 t; ts \"2026-12-20T10:00:00Z\" is more than 24 h after the arrival", "0", "0", "0"},
		{`{"ts":"2026-11-20T10:00:00Z","time":"x"}`, "1 ts", "0", "0", "0"},
		{`{"log":{"level":"warn"},"service":{"name":"web"},"fields":{"message":"x"}}`, "0", "3 log.level", "3 fields.message", "3 service.name"},
		{`{"jsonPayload":{"severity":"ERROR","message":"x"},"kubernetes":{"container_name":"c"}}`, "0", "3 jsonPayload.severity", "3 jsonPayload.message", "3 kubernetes.container_name"},
		{`{"level":"loud"}`, "0", "1 level", "0", "0"},
		{`{"level":3,"channel":"System","EventID":7}`, "0", "1 level by Windows", "0", "0"},
		{`{"level":30}`, "0", "1 level by pino and bunyan", "0", "0"},
		{`{"level":"20","levelText":"Information"}`, "0", `1 levelText; level "20" is a number, and a word comes before it`, "0", "0"},
		{`{"level":99,"level_value":40000}`, "0", "1 level_value by Logback; level 99 is no level", "0", "0"},
		{`{"level":99}`, "0", "0; level 99 is no level", "0", "0"},
		{`{"start_time":"2026-11-20T10:00:00Z","response_code":200}`, "1 start_time", "0", "0", "0"},
		{`{"start_time":"2026-11-20T10:00:00Z","code":200}`, "0", "0", "0", "0"},
		{`{"kind":"Event","type":"Normal","lastTimestamp":"2026-11-20T10:00:00Z","eventTime":"2026-11-19T10:00:00Z"}`,
			"1 lastTimestamp", "1 type", "0", "0"},
		{`{"kind":"Pod","type":"Warning","lastTimestamp":"2026-11-20T10:00:00Z","note":"x"}`, "0", "0", "0", "0"},
		{`{"info":{"ts":"2026-11-20T10:00:00Z","level":"error","msg":"x"}}`, "3 info.ts", "3 info.level", "3 info.msg", "0"},
		{`{"s":"W","msg":"x"}`, "0", "1 s", "1 msg", "0"},
		{`{"\u0074s":"2026-11-20T10:00:00Z","msg":"x"}`, "1 ts", "0", "1 msg", "0"},
		{`{"ts":null,"level":"","msg":null}`, "0", "0", "0", "0"},
	} {
		p := meaning.NewReader()
		if _, err := p.Scan([]byte(test.line)); err != nil {
			t.Fatal(err)
		}
		d := meaning.Defaults{Time: arrived, Arrived: arrived}
		line, _ := p.AppendLine(nil, &d)
		w := p.Why(&d, line)
		want := fmt.Sprint(test.time, " | ", test.level, " | ", test.message, " | ", test.service)
		if got := fmt.Sprint(cause(*w.Time()), " | ", cause(*w.Level()), " | ", cause(*w.Message()), " | ", cause(*w.Service())); got != want {
			t.Errorf("%s:\n%s, want\n%s", test.line, got, want)
		}
		again, _ := p.AppendLine(nil, &d)
		if string(again) != string(line) {
			t.Errorf("%s: asked why, the line is %s; before it was %s", test.line, again, line)
		}
	}
}

// A time and a level that were looked for in the message are known as that.
func TestWhySought(t *testing.T) {
	p := meaning.NewReader()
	d := &meaning.Defaults{Time: arrival, Arrived: arrival, Seeks: true, Explains: true}
	const at = "2026-11-19T10:00:00Z"
	for _, test := range []struct{ line, time, level string }{
		{`{"msg":"` + at + ` WARN x"}`, at, "WARN"}, {`{"msg":"` + at + ` x y"}`, at, ""},
		{`{"msg":"` + at + ` WARN x","level":"info"}`, at, ""}, {`{"msg":"` + at + ` [E] x","ts":"2026-11-18T10:00:00Z"}`, "", "E"},
		{`{"log":{"level":"info"},"msg":"` + at + ` WARN x"}`, at, ""}, {`{"a":1}`, "", ""},
		{`{"msg":"` + at + ` ERROR \"x\"","service":"` + strings.Repeat("A", 20) + `\u0041` + strings.Repeat("A", 20) + `"}`, at, "ERROR"},
	} {
		if _, err := p.Scan([]byte(test.line)); err != nil {
			t.Fatal(err)
		}
		line, stamp := p.AppendLine(nil, d)
		w := p.Why(d, line)
		shown := func(c *meaning.Cause) string {
			if c.Place != meaning.FromText {
				return ""
			}
			return c.Text
		}
		if ns, level := shown(w.Time()), shown(w.Level()); ns != test.time || level != test.level {
			t.Errorf("%s: %q %q %d", test.line, ns, level, stamp.Time)
		}
	}
}
