package body_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

const ndjson = "application/x-ndjson"

// A time that may be that of another thing counts only near the arrival, or a time next to it.
func TestGuesses(t *testing.T) {
	const old = `{"time":"2019-05-05T09:00:00Z","msg":"old"}` + "\n"
	const oldRow = "2019-05-05 09:00:00 - old"
	for _, c := range []struct {
		name, form, text string
		want             []string
	}{
		{"payload behind a sentence", "", `user saved {"name":"x","created":"2019-05-05T10:00:00Z"}`,
			[]string{`- - user saved {"name":"x","created":"2019-05-05T10:00:00Z"}`}},
		{"named in a payload", "", `response: {"level":"error","time":"2019-05-05T10:00:00Z"}`,
			[]string{`- error response: {"level":"error","time":"2019-05-05T10:00:00Z"}`}},
		{"near in a payload", "", `response: {"time":"2026-11-20T10:00:00Z"}`,
			[]string{`2026-11-20 10:00:00 - response: {"time":"2026-11-20T10:00:00Z"}`}},
		{"payload behind a level", "", `ERROR no {"time":"2019-05-05T10:00:00Z"}`,
			[]string{`- error ERROR no {"time":"2019-05-05T10:00:00Z"}`}},
		{"JSON behind a head", "", `web-1  | {"time":"2019-05-05T10:00:00Z"}`,
			[]string{`2019-05-05 10:00:00 - web-1  | {"time":"2019-05-05T10:00:00Z"}`}},
		{"JSON behind brackets", "", `[pod/web-1/web] {"time":"2019-05-05T10:00:00Z"}`,
			[]string{`2019-05-05 10:00:00 - [pod/web-1/web] {"time":"2019-05-05T10:00:00Z"}`}},
		{"JSON behind the name of pm2", "", `0|web  | {"time":"2019-05-05T10:00:00Z"}`,
			[]string{`2019-05-05 10:00:00 - 0|web  | {"time":"2019-05-05T10:00:00Z"}`}},
		{"a bar in a sentence", "", `a | b saved {"time":"2019-05-05T10:00:00Z"}`,
			[]string{`- - a | b saved {"time":"2019-05-05T10:00:00Z"}`}},
		{"in brackets in a sentence", "", "user picked [20/Nov/2019:15:04:05 +0100] as birthday",
			[]string{"- - user picked [20/Nov/2019:15:04:05 +0100] as birthday"}},
		{"behind an address in a sentence", "", "10.0.0.1 was banned [20/Nov/2019:15:04:05 +0100] for ever",
			[]string{"- - 10.0.0.1 was banned [20/Nov/2019:15:04:05 +0100] for ever"}},
		{"indented", "", "ERROR no\n  2019-05-05 10:00:00 was the last run\nINFO next",
			[]string{"- error ERROR no|  2019-05-05 10:00:00 was the last run", "- info INFO next"}},
		{"indented near a head", "", "2019-05-05 09:00:00 INFO a\n  2019-05-05 10:00:00 INFO b\nc",
			[]string{"2019-05-05 09:00:00 info 2019-05-05 09:00:00 INFO a",
				"2019-05-05 10:00:00 info   2019-05-05 10:00:00 INFO b",
				"2019-05-05 10:00:00 - c"}},
		{"a level that is padded", "", " INFO [main] 2012-05-05 09:00:00,123 a",
			[]string{"2012-05-05 09:00:00.123 info  INFO [main] 2012-05-05 09:00:00,123 a"}},
		{"not passed on", "", "user picked [20/Nov/2019:15:04:05 +0100] as birthday\nnext",
			[]string{"- - user picked [20/Nov/2019:15:04:05 +0100] as birthday", "- - next"}},
		{"created of a user", ndjson, `{"msg":"user loaded","created":"2019-05-05T10:00:00Z"}`, []string{"- - user loaded"}},
		{"created in whole seconds", ndjson, `{"msg":"user loaded","created":1557050400}`, []string{"- - user loaded"}},
		{"created near", ndjson, `{"msg":"user loaded","created":"2026-11-20T10:00:00Z"}`, []string{"2026-11-20 10:00:00 - user loaded"}},
		{"created of Python", ndjson, `{"msg":"m","created":1557050400.25}`, []string{"2019-05-05 10:00:00.25 - m"}},
		{"created near the record before", ndjson, old + `{"msg":"m","created":"2019-05-05T10:00:00Z"}`,
			[]string{oldRow, "2019-05-05 10:00:00 - m"}},
		{"created near the record behind", ndjson, `{"msg":"m","created":"2019-05-05T10:00:00Z"}` + "\n" + old,
			[]string{"2019-05-05 10:00:00 - m", oldRow}},
		{"created near in an array", "", `[{"msg":"m","created":"2019-05-05T10:00:00Z"},` + old + `]`,
			[]string{"2019-05-05 10:00:00 - m", oldRow}},
		{"created in a message", ndjson, `{"msg":"user saved {\"created\":\"2019-05-05T10:00:00Z\"}"}`,
			[]string{`- - user saved {"created":"2019-05-05T10:00:00Z"}`}},
		{"a birthday", ndjson, `{"msg":"m","date":"1985-05-05"}`, []string{"- - m"}},
		{"the day of today", ndjson, `{"msg":"m","date":"2026-11-20"}`, []string{"2026-11-20 00:00:00 - m"}},
		{"a date and a clock", ndjson, `{"msg":"m","date":"2019-05-05","time":"10:00:00"}`, []string{"2019-05-05 10:00:00 - m"}},
		{"a date alone of another name", ndjson, `{"msg":"m","timestamp":"2019-05-05"}`, []string{"2019-05-05 00:00:00 - m"}},
		{"a named time behind a far date", ndjson, `{"msg":"m","date":"2019-05-05T10:00:00Z","eventTime":"2018-05-05T10:00:00Z"}` +
			"\n" + `{"msg":"n"}`,
			[]string{"2018-05-05 10:00:00 - m", "- - n"}},
		{"a message that is JSON", ndjson, `{"log":"{\"time\":\"2019-05-05T10:00:00Z\",\"msg\":\"m\"}"}`,
			[]string{`2019-05-05 10:00:00 - {"time":"2019-05-05T10:00:00Z","msg":"m"}`}},
		{"Fluent Bit, json with iso8601",
			"application/json",
			`[{"date":"2019-05-05T10:00:00.000000Z","log":"a"},{"date":"2019-05-07T10:00:01.000000Z","log":"b"}]`,
			[]string{"2019-05-05 10:00:00 - a", "2019-05-07 10:00:01 - b"}},
		{"Fluent Bit, json_stream with java_sql_timestamp",
			"application/json",
			`{"date":"2019-05-05 10:00:00.000000","log":"a"}{"date":"2019-05-07 10:00:01.000000","log":"b"}`,
			[]string{"2019-05-05 10:00:00 - a", "2019-05-07 10:00:01 - b"}},
		{"Fluent Bit, json_lines with double", ndjson, `{"date":1557050400.5,"log":"a"}` + "\n" + `{"date":1557223201.5,"log":"b"}`,
			[]string{"2019-05-05 10:00:00.5 - a", "2019-05-07 10:00:01.5 - b"}},
		{"Fluent Bit, one record", "", `{"date":"2019-05-05T10:00:00.000000Z","log":"a"}`, []string{"2019-05-05 10:00:00 - a"}},
		{"a date with a clock in one of two records", ndjson, `{"date":"2019-05-05T10:00:00Z","msg":"a"}` + "\n" + `{"msg":"b"}`,
			[]string{"- - a", "- - b"}},
		{"a date with a clock in the second record", ndjson, `{"msg":"a"}` + "\n" + `{"date":"2019-05-05T10:00:00Z","msg":"b"}`,
			[]string{"- - a", "- - b"}},
		{"logfmt, created", "", `level=info msg="user loaded" created=2019-05-05T10:00:00Z`,
			[]string{`- info level=info msg="user loaded" created=2019-05-05T10:00:00Z`}},
		{"logfmt, a time behind created", "", `level=info created=2019-05-05T10:00:00Z ts=2018-05-05T10:00:00Z`,
			[]string{`2018-05-05 10:00:00 info level=info created=2019-05-05T10:00:00Z ts=2018-05-05T10:00:00Z`}},
		{"the day first", "", "20/11/26 10:00:06 ERROR no", []string{"2026-11-20 10:00:06 error 20/11/26 10:00:06 ERROR no"}},
		{"the day first in a field", ndjson, `{"time":"20/11/26 10:00:06","msg":"m"}`, []string{"2026-11-20 10:00:06 - m"}},
		{"neither reading is near", "", "10/12/24 10:00:06 ERROR no\n14/10/20 10:00:06 ERROR no",
			[]string{"- error 10/12/24 10:00:06 ERROR no", "- error 14/10/20 10:00:06 ERROR no"}},
		{"Spark", "", "17/06/09 20:10:40 INFO SparkContext: up\n15/06/17 20:10:41 INFO x.y.Z: up",
			[]string{"2017-06-09 20:10:40 info 17/06/09 20:10:40 INFO SparkContext: up",
				"2015-06-17 20:10:41 info 15/06/17 20:10:41 INFO x.y.Z: up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := records(t, gather(t, c.form, c.text, arrival)); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// headLines are lines with their time where their loggers write it.
func headLines() []string {
	return []string{
		`192.0.2.1 - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 612 "-" "curl"`,
		`192.0.2.1 - ann lee [20/Nov/2014:10:00:06 +0000] "-" 400 0`,
		`- - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 612`,
		`localhost - - [20/Nov/2014:10:00:06 +0000] "POST / HTTP/1.1" 200 612`,
		`unix: - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 612`,
		`shop.example:443 2001:db8::1 - ann lee [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1, 10.0.0.1 - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 shop - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 - [192.0.2.1] - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 1`,
		`web-1  | 192.0.2.1 - - [20/Nov/2014:10:00:06 +0000] "GET / HTTP/1.1" 200 1`,
		`INFO:werkzeug:127.0.0.1 - - [20/Nov/2014 10:00:06] "GET / HTTP/1.1" 200 -`,
		`127.0.0.1 - - [20/Nov/2014 10:00:06] code 404, message File not found`,
		`192.0.2.1:51234 [20/Nov/2014:10:00:06.257] web~ app/a1 0/0/1/2/3 200 612 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1"`,
		`79a59df900b949e5 shop [20/Nov/2014:10:00:06 +0000] 192.0.2.1 arn:aws:iam::1:user/a 3E57 REST.GET.OBJECT x`,
		`192.0.2.1 -  20/Nov/2014:10:00:06 +0000 "GET /index.php" 200`,
		`[pid: 812|app: 0|req: 1/1] 192.0.2.1 () {42 vars in 612 bytes} [Thu Nov 20 10:00:06 2014] GET / => generated 12 bytes`,
		`[20/Nov/2014 10:00:06] "GET / HTTP/1.1" 200 1`,
		`2014-11-20 10:00:06 W3SVC1 192.0.2.1 GET / - 80 - 192.0.2.7 curl 200 0 0 15`,
		`[Thu Nov 20 10:00:06.257000 2014] [core:error] [pid 812] x`,
		`2014/11/20 10:00:06 [error] 812#812: *1 open() failed`,
		`date=2014-11-20 time=10:00:06 devname="fg1" level="notice"`,
		`type=SYSCALL msg=audit(1416477606.257:812): arch=c000003e`,
		`86 <34>1 2014-11-20T10:00:06Z web1 app - - - x`,
		`<34>1 2014-11-20T10:00:06Z web1 app - - - x`,
		`<189>45: 2014 Nov 20 10:00:06.257: %SYS-5-CONFIG_I: x`,
		`[E 141120 10:00:06 web:2239] 500 GET /`,
		`[I 2014-11-20 10:00:06.257 ServerApp] x`,
		`[24214] 2014/11/20 10:00:06 [INF] x`,
		"[INFO]\t2014-11-20T10:00:06Z\tc6af9ac6\tx",
		`[GIN] 2014/11/20 - 10:00:06 | 200 | 1ms | 192.0.2.1 | GET "/"`,
		`orders: 2014/11/20 10:00:06 x`,
		`=ERROR REPORT==== 20-Nov-2014::10:00:06 ===`,
		`# Time: 2014-11-20T10:00:06Z`,
		`812:M 20 Nov 2014 10:00:06.257 * Ready`,
		`I, [2014-11-20T10:00:06.257 #812]  INFO -- : x`,
		`INFO  [main] 2014-11-20 10:00:06,257 Main.java:9 - x`,
		`2014-11-20T10:00:06.257Z ERROR x`,
		`level=info ts=2014-11-20T10:00:06Z msg=x`,
		`1416477606.257    12 192.0.2.1 TCP_MISS/200 1 GET http://x`,
		`14/11/20 10:00:06 INFO SparkContext: up`,
		`141120 10:00:06 [Note] x`,
		`20-Nov-2014 10:00:06.257 INFO [main] org.apache.catalina.x started`,
		`Nov 20, 2014 10:00:06 AM org.example.Main run`,
	}
}

// Archives keep their times, however old: alone, and behind lines of today.
func TestArchives(t *testing.T) {
	for _, line := range headLines() {
		for _, text := range []string{line, "2026-11-20 14:00:00 INFO today\n" + line, line + "\nx\n" + line} {
			g := gather(t, "", text, arrival)
			last := g.Req.Lines[len(g.Req.Lines)-1]
			if at := time.Unix(0, last.Time).UTC().Truncate(time.Second); at != time.Date(2014, 11, 20, 10, 0, 6, 0, time.UTC) {
				t.Errorf("%s is of %s", text, at)
			}
		}
	}
}

// A line that shows its time means the same whatever its neighbours are.
func TestNeighbours(t *testing.T) {
	others := append(headLines(),
		"user picked [20/Nov/2019:15:04:05 +0100] as birthday", "  2019-05-05 10:00:00 was the last run",
		`user saved {"created":"2019-05-05T10:00:00Z"}`,
		`{"msg":"m","created":"2019-05-05T10:00:00Z"}`, `{"time":"2020-05-05T10:00:00Z","level":"warn"}`,
		"no time", "ERROR no", "20/11/24 10:00:06 ERROR no",
		"\tat com.shop.Cart.add(Cart.java:7)", "panic: no disk", "")
	r := rand.New(rand.NewPCG(1, 2))
	said := func(g *body.Gatherer, line string) (out []string) {
		for _, l := range g.Req.Lines {
			text := g.Req.Data[l.Off : l.Off+l.Len]
			msg, _ := record.Lookup(text, "msg")
			if first, _, _ := strings.Cut(string(record.TextOf(msg)), "\n"); first == line {
				level, _ := record.Lookup(text, "level")
				if said := fmt.Sprint(l.Time, string(level)); len(record.TextOf(level)) > 0 && !slices.Contains(out, said) {
					out = append(out, said)
				}
			}
		}
		return out
	}
	for range 3000 {
		line := headLines()[r.IntN(len(headLines()))]
		var lines []string
		for range 1 + r.IntN(6) {
			lines = append(lines, others[r.IntN(len(others))])
		}
		lines = slices.Insert(lines, r.IntN(len(lines)+1), line)
		want, got := said(gather(t, "", line, arrival), line), said(gather(t, "", strings.Join(lines, "\n"), arrival), line)
		if len(want) > 0 && !slices.Equal(got, want) {
			t.Fatalf("%q: %q is %s, and alone %s", lines, line, got, want)
		}
	}
}

// A sender or the operator may have all times believed.
func TestFar(t *testing.T) {
	for far, want := range map[bool]string{false: "- - x", true: "2019-05-05 10:00:00 - x"} {
		g := body.NewGatherer()
		g.After = func(int) bool { return true }
		var m *meaning.Mapping
		g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock", Fields: m.WithFar(far)})
		if err := body.JSON([]byte(`{"msg":"x","created":"2019-05-05T10:00:00Z"}`), g); err != nil {
			t.Fatal(err)
		}
		if got := records(t, g); got[0] != want || (g.Lacks.TimeFar == 1) != !far {
			t.Errorf("far %v: %s, %+v", far, got, g.Lacks)
		}
	}
}
