package forms_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/forms"
	"blobtail/record/meaning"
)

// made are the fields of a text as the table writes them.
func made(t *testing.T, form, text string) string {
	t.Helper()
	f, err := forms.Compile(form)
	if err != nil {
		t.Fatal(err)
	}
	line, _, err := meaning.NewReader().Begin(nil, meaning.Head{Msg: []byte(text)}, &meaning.Defaults{Service: "a"}).End()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := f.Append(nil, line, false)
	if !ok {
		return "no"
	}
	var all []string
	for name, value := range record.Fields(got) {
		switch string(name) {
		case "ts", "level", "service", "msg":
		case "level_extracted":
			all = append(all, string(record.TextOf(value)))
		default:
			all = append(all, string(name)+"="+string(value))
		}
	}
	return strings.Join(all, " ")
}

// examples are a line of each form, and its fields: name=value as JSON has the value, and the level in the
// end.
var examples = [][3]string{
	{
		"combined", `2001:db8::7 - ann [28/Nov/2026:10:00:00 +0000] "GET /a?b=\"c\" HTTP/1.1" 502 157 "-" "Mozilla/5.0 (X11)"`,
		`ip="2001:db8::7" user="ann" method="GET" path="/a?b=\\\"c\\\"" protocol="HTTP/1.1" status=502 bytes=157 ` +
			`agent="Mozilla/5.0 (X11)" error`,
	},
	{
		"common", `10.0.0.7 - - [28/Nov/2026:10:00:00 +0000] "POST /login HTTP/2.0" 404 -`,
		`ip="10.0.0.7" method="POST" path="/login" protocol="HTTP/2.0" status=404 warn`,
	},
	{
		"nginx-error", `2026/11/28 10:00:00 [crit] 31#7: *99 connect() failed, client: 10.0.0.7, server: shop.example, ` +
			`request: "GET /a HTTP/1.1", upstream: "http://10.1.0.2:80/a", host: "shop.example"`,
		`pid=31 connection=99 ip="10.0.0.7" server="shop.example" method="GET" path="/a" protocol="HTTP/1.1" ` +
			`upstream="http://10.1.0.2:80/a" host="shop.example" critical`,
	},
	{
		"haproxy", `10.0.0.7:33317 [28/Nov/2026:10:00:00.655] web~ api/api1 10/0/30/69/109 503 2750 - - SC-- 1/1/1/1/2 0/0 ` +
			`{shop} {} "GET /a HTTP/1.1"`,
		`ip="10.0.0.7" port=33317 frontend="web~" backend="api" server="api1" duration_ms=109 status=503 bytes=2750 ` +
			`termination="SC--" retries=2 method="GET" path="/a" protocol="HTTP/1.1" error`,
	},
	{
		"klog", `W1128 10:00:00.123456    1234 pod_workers.go:190] "Pod is slow" pod="kube-system/dns" took=7`,
		`thread=1234 source="pod_workers.go:190" pod="kube-system/dns" took=7 warn`,
	},
	{
		"postgres", `2026-11-28 10:00:00.123 UTC [31] ann@shop LOG:  duration: 12.5 ms  statement: select 1`,
		`pid=31 user="ann" database="shop" duration_ms=12.5 info`,
	},
	{
		"syslog", `<35>Nov  8 10:00:00 web-1 sshd[123]: Connection closed`,
		`host="web-1" program="sshd" pid=123 error`,
	},
	{
		"logfmt", `level=error status=404 took=1.5 text="a \"b\"" who=-`,
		`status=404 took=1.5 text="a \\\"b\\\"" error`,
	},
}

// Each form has an example, which has its fields, and is of that form and of none before it.
func TestTable(t *testing.T) {
	for i, name := range forms.Names() {
		row := examples[i]
		if got := made(t, name, row[1]); row[0] != name || got != row[2] {
			t.Errorf("%s: %s\n\twant %s", name, got, row[2])
		}
		if got := forms.NewTable().Fitting([]byte(row[1])); got != name {
			t.Errorf("%s: the form that fits its example is %q", name, got)
		}
	}
}

// Each way to write a form, and each odd line of it.
func TestForms(t *testing.T) {
	const agent = ` "-" "curl/8" `
	for _, row := range []struct{ form, text, want string }{
		{"%{COMBINEDAPACHELOG}", `10.0.0.7 - - [x]`, "no"},
		{"%{COMBINEDAPACHELOG}", `10.0.0.7 - - [28/Nov/2026:10:00:00 +0000] "\x16\x03\x01" 400 0` + agent + `"1.2.3.4"`,
			`ip="10.0.0.7" request="\\x16\\x03\\x01" status=400 bytes=0 agent="curl/8" warn`},
		{"combined", `shop.example:443 fe80::1%eth0 - - [28/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 304 -` + agent,
			`vhost="shop.example:443" ip="fe80::1%eth0" method="GET" path="/" protocol="HTTP/1.1" status=304 agent="curl/8" info`},
		{"combined", `10.0.0.7 - - [28/Nov/2026:10:00:00 +0000] "-" 408 - "-" "-"`, `ip="10.0.0.7" status=408 warn`},
		{"combined", `10.0.0.7 - - [28/Nov/2026:10:00:00 +0000] "GET /a b\\" 200 5 "-" "a \"b\\\" c"`,
			`ip="10.0.0.7" method="GET" path="/a b\\\\" status=200 bytes=5 agent="a \\\"b\\\\\\\" c" info`},
		{"common", `10.0.0.7 - - [28/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x"`, "no"},
		{`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" ` +
			`"$http_user_agent" $request_time ${upstream_addr}`,
			`::1 - ann b [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/2.0" 500 7 "http://x/" "y z" 0.123 10.0.0.1:80`,
			`ip="::1" user="ann b" method="GET" path="/a" protocol="HTTP/2.0" status=500 bytes=7 referer="http://x/" ` +
				`agent="y z" duration_ms=123 upstream_addr="10.0.0.1:80" error`},
		{"log_format main '$remote_addr $status '\n  '$request_time';", "::1 204 1.5", `ip="::1" status=204 duration_ms=1500 info`},
		{`%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D %{X-Request-Id}i`,
			`1.2.3.4 - - [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 7 "-" "y" 123456 abc`,
			`ip="1.2.3.4" method="GET" path="/a" protocol="HTTP/1.1" status=200 bytes=7 agent="y" duration_ms=123.456 info`},
		{`<ip> - <_> "<method> <path>" <took:microseconds>`, `a - b "GET /x" 1500`, `ip="a" method="GET" path="/x" took=1.5`},
		{"<a>=<b>;\n<b>", `z`, `b="z"`},
		{`at <status> <level>`, `at 404 fatal`, `status=404 critical`},
		{"nginx-error", `2026/11/28 10:00:00 [error] 31#7: open() failed (2: No such file)`, `pid=31 error`},
		{"haproxy", `Nov 28 10:00:00 lb haproxy[31]: ::1:5 [28/Nov/2026:10:00:00.655] tcp db/db1 1/0/50 212 -- 0/0/0/0/0 0/0`,
			`ip="::1" port=5 frontend="tcp" backend="db" server="db1" duration_ms=50 bytes=212 termination="--" retries=0`},
		{"nginx-error", `2026/11/28 10:00:00 [error] 1#1: *9 open() "/html/a, client: 6.6.6.6, level: debug, status: 200, server: e, b" ` +
			`failed (2: No such file), client: 9.9.9.9, server: real, request: "GET /a HTTP/1.1", referrer: "x, client: 7.7.7.7"`,
			`pid=1 connection=9 ip="9.9.9.9" server="real" method="GET" path="/a" protocol="HTTP/1.1" referrer="x, client: 7.7.7.7" error`},
		{"combined", `203.0.113.9 - john doe [28/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5` + agent,
			`ip="203.0.113.9" user="john doe" method="GET" path="/" protocol="HTTP/1.1" status=200 bytes=5 agent="curl/8" info`},
		{`LogFormat "%h %u \"%r\" %>s %D" mine`, `1.2.3.4 - "GET / HTTP/1.1" 200 1500`,
			`ip="1.2.3.4" method="GET" path="/" protocol="HTTP/1.1" status=200 duration_ms=1.5 info`},
		{`"%h %>s" common`, `1.2.3.4 200`, `ip="1.2.3.4" status=200 info`},
		{`log_format main "$remote_addr $body_bytes_sent $upstream_response_time";`, `1.2.3.4 7 0.001, - : 0.120`,
			`ip="1.2.3.4" bytes=7 upstream_ms=121`},
		{`$remote_addr $body_bytes_sent`, `1.2.3.4 7 more`, "no"},
		{"in <took:seconds>", "in 1.5s", "no"},
		{"in <took:seconds>", "in -", ""},
		{"logfmt", "hello a=1", "no"},
		{"postgres", `2026-11-28 10:00:00.123 UTC [31] DETAIL:  Key`, `pid=31`},
		{"csv:a,b", `"a","b","c"`, "no"},
		{"postgres", `2026-11-28 10:00:00.123 UTC [31] ERROR:  no a@b LOG:  c`, `pid=31 error`},
		{"syslog", `<165>1 2026-11-28T10:00:00Z web-1 app 7 ID47 - hello`, `host="web-1" program="app" pid=7 msgid="ID47" info`},
		{"syslog", `2026-11-28T10:00:00.1+01:00 web-1 kernel: hello: you`, `host="web-1" program="kernel"`},
		{"csv:ip,,status,who", `1.2.3.4,x,503,"a ""b"", c"`, `ip="1.2.3.4" status=503 who="a \"b\", c" error`},
		{"csv:a,b", `1,2,3`, "no"},
		{"csv:a,b", `1`, "no"},
	} {
		if got := made(t, row.form, row.text); got != row.want {
			t.Errorf("%s of %s:\n\t%s\n\twant %s", row.form, row.text, got, row.want)
		}
	}
	if _, err := forms.Compile(strings.Repeat("<_:request> <a>\n", 100)); err != nil {
		t.Error(err)
	}
	for bad, want := range map[string]string{
		"combind": "it must be combined, common", "<a><b>": "put a text between", "csv:a b,c": "csv:NAMES", "csv:1,b": "csv:NAMES",
		"<user-agent> <a>": "<user-agent> is no name", "csv:" + strings.Repeat("ab,", 50) + many(101): "it has 102 names; want at most 100",
		"<a:int>": "there is no kind int", "<_> x": "it must be",
	} {
		if _, err := forms.Compile(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// many are names of columns.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("c", i))
	}
	return strings.Join(all, ",")
}

// A line keeps its text, and the fields that it has already.
func TestMaker(t *testing.T) {
	f, err := forms.Compile("<ip> <status> <ts>")
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"ts":"2026-11-28T10:00:00.000000000Z","level":`
	for _, row := range []struct {
		line  string
		store bool
		want  string
	}{
		{`"info","service":"a","msg":"1.2.3.4 503 x"}`, true, `"error","service":"a","msg":"1.2.3.4 503 ` +
			`x","ip":"1.2.3.4","status":503,"ts_extracted":"x"}`},
		{`"info","service":"a","msg":"1.2.3.4 503 x"}`, false, `"info","service":"a","msg":"1.2.3.4 503 ` +
			`x","ip":"1.2.3.4","status":503,"ts_extracted":"x","level_extracted":"error"}`},
		{`"debug","service":"a","msg":"\"1 503 x"}`, true, `"debug","service":"a","msg":"\"1 503 ` +
			`x","ip":"\"1","status":503,"ts_extracted":"x"}`},
		{`"info","service":"a","msg":"1 503 x","status":503,"ip":"b"}`, false, `"info","service":"a","msg":"1 503 ` +
			`x","status":503,"ip":"b","ip_extracted":1,"ts_extracted":"x","level_extracted":"error"}`},
		{`"info","service":"a","msg":"1 503 x","status_extracted":2,"status":1}`, true, `"error","service":"a","msg":"1 503 ` +
			`x","status_extracted":2,"status":1,"ip":1,"ts_extracted":"x"}`},
		{`"info","service":"a","msg":"1 503"}`, true, `"info","service":"a","msg":"1 503"}`},
	} {
		got, ok := f.Append(nil, []byte(head+row.line+"\n"), row.store)
		if string(got) != head+row.want+"\n" || ok != (row.want != row.line) {
			t.Errorf("%s\n\twant %s", got, row.want)
		}
	}
}

// No form and no text makes a line that is none, or changes the text.
func FuzzMaker(f *testing.F) {
	for _, row := range examples {
		f.Add(row[0], row[1])
	}
	f.Add(`$remote_addr "$request" ${x} $request_time`, `a "b\" c" 1.5`)
	f.Add(`%{X:a} %D "%r" %{b`, `a "b\" c" 1.5`)
	f.Add("csv:a,b", `"a""",b`)
	f.Add("<a> <b>", "\x00\x1b[31m \xff\xc3\x28\u2028\"\\\t")
	f.Add("klog", "W1128 10:00:00.1 1 a.go:1] \"x\" ts=1 msg=\"\\\"\" level=2")
	f.Add("combined", strings.Replace(examples[0][1], "/a", "/"+strings.Repeat(`\"é\`, 10<<10), 1))
	f.Fuzz(func(t *testing.T, form, text string) {
		compiled, err := forms.Compile(form)
		if err != nil {
			return
		}
		p := meaning.NewReader()
		line, _, err := p.Begin(nil, meaning.Head{Msg: []byte(text)}, &meaning.Defaults{Service: "a"}).End()
		if err != nil {
			return
		}
		for _, store := range []bool{true, false} {
			got, _ := compiled.Append(nil, line, store)
			again, _ := compiled.Append(nil, line, store)
			before, _ := record.Lookup(line, "msg")
			after, ok := record.Lookup(got, "msg")
			if !ok || !bytes.Equal(before, after) || !bytes.Equal(got, again) || !json.Valid(got) || bytes.Count(got, []byte("\n")) != 1 {
				t.Fatalf("%q: %s", form, got)
			}
			var names []string
			for name := range record.Fields(got) {
				if slices.Contains(names, string(name)) {
					t.Fatalf("%s twice: %s", name, got)
				}
				names = append(names, string(name))
			}
		}
	})
}

// No pattern and no text of 64 KiB takes long: each place takes a text that no other place takes again.
func TestHostile(t *testing.T) {
	const n = 64 << 10
	written := append(forms.Names(),
		strings.Repeat("<a> ", 2000), strings.Repeat("<a:csv>,", 1000), strings.Repeat("<a:address>:", 600)+"<b>",
		"\"<a>"+strings.Repeat("\"", 8000), strings.Repeat("<a>=\n", 1500), "<_>=<a:pairs>", "<_>, <a:nginx>", "csv:a,b,c",
	)
	for _, text := range []string{
		" ", "\"", "\\", "\\\"", "=", "a=", "a=\"", "a=\"\\\" ", ": ", ", a: \"", "a: ", ":", ",", "<", "1", "1 ", "a", "a b",
		`, client: "`, `1.2.3.4 - - [1] "`,
	} {
		for _, of := range written {
			f, err := forms.Compile(of)
			if err != nil {
				t.Fatal(err)
			}
			for _, begin := range []string{"", "1 1 [a] 1#1: ", `I0000 1 1 a] "`} {
				line := append(record.AppendEscaped([]byte(`{"ts":"2026-11-28T10:00:00.000000000Z","level":"","service":"a","msg":"`),
					[]byte((begin + strings.Repeat(text, n))[:n])), "\"}\n"...)
				begun := time.Now()
				got, _ := f.Append(nil, line, true)
				if took := time.Since(begun); took > time.Second || len(got) > record.MaxRecord {
					t.Errorf("%.20q of %q takes %v and makes %d bytes", of, begin+text, took, len(got))
				}
			}
		}
	}
	if _, err := forms.Compile(strings.Repeat("<a> ", n)); err == nil {
		t.Error("a form of 256 KiB is none")
	}
}

func BenchmarkCombined(b *testing.B) {
	f, _ := forms.Compile("combined")
	line, _, err := meaning.NewReader().Begin(nil, meaning.Head{Msg: []byte(examples[0][1])}, &meaning.Defaults{Service: "a"}).End()
	if err != nil {
		b.Fatal(err)
	}
	dst := []byte(nil)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = f.Append(dst[:0], line, true)
	}
}
