package dryrun_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/carry"
	"blobtail/source/dryrun"
	"blobtail/source/syslog"
)

func arrived() time.Time { return time.Date(2026, 11, 20, 10, 5, 0, 0, time.UTC) }

// A log keeps the lines of requests.
type log struct{ lines []string }

// Accept implements [body.Accepter].
func (l *log) Accept(_ context.Context, q *record.Request) (record.Receipt, error) {
	for i, line := range q.Lines {
		if q.Services[line.Service] != record.RejectedService {
			l.lines = append(l.lines, fmt.Sprint(q.Index(uint32(i)), " ", string(q.Data[line.Off:line.Off+line.Len])))
		}
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// pass sends a parcel, and returns the reasons, and the lines that the log has. Those that the
// watch is told of are the same.
func pass(t *testing.T, p carry.Parcel) (why []dryrun.Reasons, lines []string, a dryrun.Answer) {
	t.Helper()
	var kept log
	var seen []string
	a, err := dryrun.Send(t.Context(), p, dryrun.Options{
		Arrived: arrived(), Accept: &kept, Syslog: syslog.Options{Zone: time.UTC},
		Watch: func(s body.Seen) {
			if s.Rejected == "" {
				why = append(why, dryrun.ReasonsOf(s, p.By))
				seen = append(seen, fmt.Sprint(s.Place, " ", string(s.Line)))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, kept.lines) {
		t.Errorf("seen %q, and accepted %q", seen, kept.lines)
	}
	return why, kept.lines, a
}

// A number that is the level has the owner of its scale.
func TestReasonOfNumber(t *testing.T) {
	d, _ := carry.Named("json")
	text := []byte(`{"level":2,"channel":"System","EventID":7,"message":"x"}`)
	p, err := d.Pack(carry.Cargo{Records: []carry.Record{{Text: text, Object: true}}})
	if err != nil {
		t.Fatal(err)
	}
	why, lines, _ := pass(t, p)
	if len(why) != 1 || why[0].Level != `field "level", a number of Windows` {
		t.Errorf("%+v: %q", why, lines)
	}
}

// Behind each door the place of each part has words.
func TestReasons(t *testing.T) {
	object := carry.Record{Text: []byte(`{"ts":"2026-11-20T10:00:00Z","level":"warn","msg":"a b"}`), Object: true}
	line := carry.Record{Text: []byte("Nov 20 10:00:00 ERROR a b")}
	wants := map[string][2]string{ // of the line, of the object
		"text": {`the text, "Nov 20 10:00:00" | the message, "ERROR" | the text | the path`, `field "ts" | field "level" | field "msg" | the path`},
		"json": {`* | the message, "ERROR" | field "message" | the path`, `field "ts" | field "level" | field "msg" | the path`},
		"message": {`* | the message, "ERROR" | field "message" | the path`,
			`* | field "level" of the JSON in the message | field "message" | the path`},
		"array": {`* | the message, "ERROR" | field "message" | the path`, `field "ts" | field "level" | field "msg" | the path`},
		"bulk":  {`* | the message, "ERROR" | field "message" | the request, for all of its records`, `field "ts" | field "level" | field "msg" | the request, for all of its records`},
		"loki": {`the timestamp of the entry | the message, "ERROR" | the line of the entry | field "service_name"`,
			`the timestamp of the entry | field "level" of the JSON in the message | the line of the entry | field "service_name"`},
		"otlp": {`* | the message, "ERROR" | the protocol's (body) | the resource's service.name`,
			`* | field "level" of the JSON in the message | the protocol's (body) | the resource's service.name`},
		"otlp-attributes": {"", `the protocol's (timeUnixNano) | field "level" | the protocol's (body) | the resource's service.name`},
		"hec": {`* | the message, "ERROR" | the protocol's (event) | the protocol's (source, sourcetype or index)`,
			`field "ts" | field "level" | field "msg" | the protocol's (source, sourcetype or index)`},
		"hec-raw": {`the text, "Nov 20 10:00:00" | the message, "ERROR" | the text | the protocol's (source, sourcetype or index)`,
			`field "ts" | field "level" | field "msg" | the protocol's (source, sourcetype or index)`},
		"datadog": {`* | the message, "ERROR" | field "message" | field "service"`,
			`field "ts" of the JSON in the message | field "level" of the JSON in the message | field "message" | field "service"`},
		"datadog-object": {"", `field "ts" | field "level" | field "msg" | the protocol's`},
		"gelf": {`* | the message, "ERROR" | the protocol's (short_message) | field "_service"`,
			`* | field "level" of the JSON in the message | the protocol's (short_message) | field "_service"`},
		"journald": {`the protocol's (__REALTIME_TIMESTAMP) | the message, "ERROR" | the protocol's (MESSAGE) | the unit or the identifier`,
			`the protocol's (__REALTIME_TIMESTAMP) | field "level" of the JSON in the message | the protocol's (MESSAGE) | the unit or the identifier`},
		"syslog": {`the header of syslog | the message, "ERROR" | the text behind the header | the application's name`,
			`the header of syslog | field "level" of the JSON in the message | the text behind the header | the application's name`},
		"syslog-bsd": {`the header of syslog | the message, "ERROR" | the text behind the header | the application's name`,
			`the header of syslog | field "level" of the JSON in the message | the text behind the header | the application's name`},
		"nats": {`the text, "Nov 20 10:00:00" | the message, "ERROR" | the text | the subject`, `field "ts" | field "level" | field "msg" | the subject`},
	}
	for _, d := range carry.Doors() {
		for i, r := range [...]carry.Record{line, object} {
			if d.Only && !r.Object {
				continue
			}
			if d.Timed {
				r.Time = arrived().Add(-time.Minute)
			}
			p, err := d.Pack(carry.Cargo{Records: []carry.Record{r}, Service: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			why, lines, a := pass(t, p)
			if len(why) != 1 || a.Refused() {
				t.Errorf("%s: %d %s, %q", d.Name, a.Status, a.Text, lines)
				continue
			}
			time, want := why[0].Time, wants[d.Name][i]
			if strings.HasPrefix(want, "*") {
				time = "*" // the door has none: that of arrival, or of the message
			}
			if got := strings.Join([]string{time, why[0].Level, why[0].Message, why[0].Service}, " | "); got != want {
				t.Errorf("%s: %s, want %s", d.Name, got, want)
			}
			if service, _ := record.LineService([]byte(lines[0][2:])); string(service) != "shop" {
				t.Errorf("%s: the service is %s: %s", d.Name, service, lines[0])
			}
		}
	}
}

// The places of lines that belong together, and of fields that are none of the part.
func TestReasonsOfLines(t *testing.T) {
	text, _ := carry.Named("text")
	for _, test := range []struct{ lines, want string }{
		{"a\n2026-11-20T10:00:00Z INFO b", `the first record behind that has one | none found; the text, "2026-11-20T10:00:00Z" | the message, "INFO"`},
		{"2026-11-20T10:00:00Z INFO b\nc", `the text, "2026-11-20T10:00:00Z" | the message, "INFO"; the record before | none found`},
		{"a", "arrival | none found"},
		{"java.io.IOException: error\n\tat com.shop.Cart.add(Cart.java:7)", "arrival | a stack trace"},
		{"Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nValueError: x", "arrival | a stack trace"},
		{"Nov 20, 2026 10:00:00 AM com.shop.Cart add\nSEVERE: x", `the text, "Nov 20, 2026 10:00:00 AM" | the message, "SEVERE"`},
		{`type=SYSCALL msg=audit(1795168806.257:812): x`, `the text, "1795168806.257" | none found`},
		{`date=2026-11-20 time=10:00:06 tz="+0100" level="notice" x="y"`, `the text, "date=2026-11-20 time=10:00:06" | the message, "notice"`},
		{`[2026-11-20 10:00:06] [error] x`, `the text, "2026-11-20 10:00:06" | the message, "error"`},
		{`{"time":0.2,"msg":"x"}`, `arrival; field "time" = 0.2 is no time | none found`},
		{"2026-12-20T10:00:00Z INFO b", `arrival; the text, "2026-12-20T10:00:00Z", is more than 24 h after the arrival | the message, "INFO"`},
		{`{"level":"audit","msg":"x"}`, `arrival | field "level"`},
	} {
		p, err := text.Pack(carry.Cargo{Records: []carry.Record{{Text: []byte(test.lines)}}, Service: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		why, _, _ := pass(t, p)
		var got []string
		for _, w := range why {
			got = append(got, w.Time+" | "+w.Level)
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%q: %s, want %s", test.lines, text, test.want)
		}
	}
}

// An empty time is none behind each door, and no field that could not be read.
func TestEmptyTimesAreNone(t *testing.T) {
	for _, value := range []string{`0`, `"0"`, `""`, `null`, `0.0`} {
		for name, form := range map[string]string{
			"json": `{"ts":%s,"msg":"x"}`, "bulk": `{"create":{}}` + "\n" + `{"@timestamp":%s,"msg":"x"}` + "\n",
			"hec": `{"time":%s,"event":"x"}`, "gelf": `{"version":"1.1","timestamp":%s,"host":"h","short_message":"x"}`,
			"datadog": `[{"timestamp":%s,"message":"x"}]`, "otlp": `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":%s,"body":{"stringValue":"x"}}]}]}]}`,
		} {
			d, _ := carry.Named(name)
			p, err := d.Raw("", fmt.Appendf(nil, form, value))
			if err != nil {
				t.Fatal(err)
			}
			_, err = dryrun.Send(t.Context(), p, dryrun.Options{Arrived: arrived(), Watch: func(s body.Seen) {
				if s.Rejected == "" && (s.Stamp.TimeUnread || strings.Contains(string(s.Line), ".original")) {
					t.Errorf("%s with the time %s: %+v %s", name, value, s.Stamp, s.Line)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Records that cannot be packed are an error, and a refusal is an answer.
func TestRefusals(t *testing.T) {
	loki, _ := carry.Named("loki")
	if _, err := loki.Pack(carry.Cargo{Records: []carry.Record{{Text: []byte("x")}}}); err == nil {
		t.Error("an entry of Loki without a time")
	}
	objects, _ := carry.Named("datadog-object")
	if _, err := objects.Pack(carry.Cargo{Records: []carry.Record{{Text: []byte("x")}}}); err == nil {
		t.Error("a text as an object")
	}
	for _, name := range []string{"text", "nats"} {
		d, _ := carry.Named(name)
		p, err := d.Pack(carry.Cargo{Records: []carry.Record{{Text: []byte("\x7fELF\x02\x01\x00")}}})
		if err != nil {
			t.Fatal(err)
		}
		if why, _, a := pass(t, p); !a.Refused() || len(why) > 0 {
			t.Errorf("%s: a program: %+v, %v", name, a, why)
		}
	}
}
