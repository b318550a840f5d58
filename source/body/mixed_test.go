package body_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/body"
)

var arrival = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)

// gather reads a body of a content type that arrives at a time.
func gather(t testing.TB, contentType, text string, at time.Time) *body.Gatherer {
	t.Helper()
	form, err := body.ParseForm(contentType, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := body.NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(body.Arrival{Service: "web", Time: at.UnixNano(), Source: "test", Clock: "the clock"})
	if err := form.Decode([]byte(text), g); err != nil {
		t.Fatal(err)
	}
	return g
}

// records are the accepted lines as "TIME LEVEL MSG": the time without its date, and "-"
// for the arrival; the level, or "-" for none.
func records(t testing.TB, g *body.Gatherer) (all []string) {
	t.Helper()
	for _, l := range g.Req.Lines {
		line := g.Req.Data[l.Off : l.Off+l.Len]
		var fields struct{ Level, Msg string }
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		at := "-"
		if l.Time != arrival.UnixNano() {
			at = strings.TrimPrefix(time.Unix(0, l.Time).UTC().Format("2006-01-02 15:04:05.999"), "2026-11-10 ")
		}
		if fields.Level == "" {
			fields.Level = "-"
		}
		all = append(all, at+" "+fields.Level+" "+strings.ReplaceAll(fields.Msg, "\n", "|"))
	}
	return all
}

const (
	before = `{"time":"2026-11-10T15:04:05Z","level":"info","msg":"before"}` + "\n"
	behind = `{"time":"2026-11-10T15:04:09Z","level":"warn","msg":"behind"}` + "\n"
)

// Each message of a runtime between the JSON lines of a service is one record, with the time of
// the record before.
func TestMixed(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // between the records before and behind
	}{
		{"Go panic", "panic: runtime error: index out of range [5] with length 3 [recovered]\n\tpanic: again\n\ngoroutine 1 [running]:\n" +
			"main.(*T).F(0xc000012345, {0x1, 0x2})\n\t/app/main.go:8 +0x1d\nmain.main()\n\t/app/main.go:3 +0x1d\ncreated by main.run in goroutine 7\n\t/app/main.go:9 +0x1\nexit status 2\n",
			[]string{"15:04:05 critical panic: runtime error: index out of range [5] with length 3 [recovered]|\tpanic: again||goroutine 1 [running]:|" +
				"main.(*T).F(0xc000012345, {0x1, 0x2})|\t/app/main.go:8 +0x1d|main.main()|\t/app/main.go:3 +0x1d|created by main.run in goroutine 7|\t/app/main.go:9 +0x1|exit status 2"}},
		{"Go deadlock", "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t/app/main.go:8\n",
			[]string{"15:04:05 critical fatal error: all goroutines are asleep - deadlock!||goroutine 1 [chan receive]:|main.main()|\t/app/main.go:8"}},
		{"Go signal", "panic: nil\n[signal SIGSEGV: segmentation violation code=0x1]\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:1\n",
			[]string{"15:04:05 critical panic: nil|[signal SIGSEGV: segmentation violation code=0x1]||goroutine 1 [running]:|main.main()|\t/a.go:1"}},
		{"Java", "Exception in thread \"main\" java.lang.RuntimeException: no\n\tat app.App.main(App.java:5)\nCaused by: java.io.IOException: disk\n\tat app.B.b(B.java:7)\n\t... 3 more\n",
			[]string{"15:04:05 error Exception in thread \"main\" java.lang.RuntimeException: no|\tat app.App.main(App.java:5)|Caused by: java.io.IOException: disk|\tat app.B.b(B.java:7)|\t... 3 more"}},
		{"logged by Java", "2026-11-10 15:04:07,123 ERROR [main] app.App - failed\njava.io.IOException: disk\n\tat app.App.main(App.java:5)\n",
			[]string{"15:04:07.123 error 2026-11-10 15:04:07,123 ERROR [main] app.App - failed|java.io.IOException: disk|\tat app.App.main(App.java:5)"}},
		{"Python", "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n" +
			"Traceback (most recent call last):\n  File \"a.py\", line 5, in <module>\napp.errors.Missing: x\n",
			[]string{"15:04:05 error Traceback (most recent call last):|  File \"a.py\", line 3, in <module>|    main()|KeyError: 'a'||During handling of the above exception, another exception occurred:||" +
				"Traceback (most recent call last):|  File \"a.py\", line 5, in <module>|app.errors.Missing: x"}},
		{"logged by Python", "ERROR:root:failed\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError\nINFO:root:next\n",
			[]string{"15:04:05 error ERROR:root:failed|Traceback (most recent call last):|  File \"a.py\", line 3, in f|ValueError", "15:04:05 info INFO:root:next"}},
		{"JavaScript", "/app/index.js:5\n    throw new Error(\"x\");\n    ^\n\nError: x\n    at Object.<anonymous> (/app/index.js:5:7)\n    at node:internal/main:1:1\n\nNode.js v22.1.0\n",
			[]string{"15:04:05 error /app/index.js:5|    throw new Error(\"x\");|    ^||Error: x|    at Object.<anonymous> (/app/index.js:5:7)|    at node:internal/main:1:1||Node.js v22.1.0"}},
		{"Rust", "thread 'main' panicked at src/main.rs:2:5:\nboom\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/1\nnote: run with `RUST_BACKTRACE=full`\n",
			[]string{"15:04:05 error thread 'main' panicked at src/main.rs:2:5:|boom|stack backtrace:|   0: rust_begin_unwind|             at /rustc/1|note: run with `RUST_BACKTRACE=full`"}},
		{".NET", "Unhandled exception. System.InvalidOperationException: no\n ---> System.Exception: inner\n   at App.B()\n   --- End of inner exception stack trace ---\n   at App.Main() in /a.cs:line 5\n",
			[]string{"15:04:05 error Unhandled exception. System.InvalidOperationException: no| ---> System.Exception: inner|   at App.B()|   --- End of inner exception stack trace ---|   at App.Main() in /a.cs:line 5"}},
		{"logged by .NET", "fail: Server.Kestrel[13]\n      Connection closed\ninfo: Host[0]\n      Started\n",
			[]string{"15:04:05 error fail: Server.Kestrel[13]|      Connection closed", "15:04:05 info info: Host[0]|      Started"}},
		{"its own times", "2026-11-10 15:04:07 started\n  2026-11-10T15:04:08.5Z indented\nno time\n", []string{"15:04:07 - 2026-11-10 15:04:07 started", "15:04:08.5 -   2026-11-10T15:04:08.5Z indented", "15:04:08.5 - no time"}},
		{"logfmt", "time=\"2026-11-10T15:04:07Z\" level=warning msg=\"level=error\"\n", []string{`15:04:07 warn time="2026-11-10T15:04:07Z" level=warning msg="level=error"`}},
		{"no year", "Nov 10 15:04:07 host app[12]: error: disk\n", []string{"15:04:07 error Nov 10 15:04:07 host app[12]: error: disk"}},
		{"an object over lines", "{\n  \"time\": \"2026-11-10T15:04:08Z\",\n  \"msg\": \"long\"\n}\n", []string{"15:04:08 - long"}},
		{"objects on a line", `{"time":"2026-11-10T15:04:07Z","msg":"a"}{"time":"2026-11-10T15:04:08Z","msg":"b"}` + "\n", []string{"15:04:07 - a", "15:04:08 - b"}},
		{"no object", "{\n{not json}\n{}\n[1] x\n\"text\"\n", []string{"15:04:05 - {", "15:04:05 - {not json}", "- - ", "- - [1] x", "- - \"text\""}},
		{"CRLF", "ERROR a\r\n\tat b\r\n\r\nc\r\n", []string{"15:04:05 error ERROR a\r|\tat b", "15:04:05 - c"}},
		{"NUL", "a\x00b\n\x00\n", []string{"15:04:05 - a\x00b", "15:04:05 - \x00"}},
		{"no UTF-8", "a\xff\n", []string{`15:04:05 - a\xff`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gather(t, "", before+c.text+behind, arrival)
			want := slices.Concat([]string{"15:04:05 info before"}, c.want, []string{"15:04:09 warn behind"})
			if got := records(t, g); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(g.Rejected) > 0 {
				t.Errorf("rejected: %+v", g.Rejected)
			}
		})
	}
}

// Texts at the start have the time of the first record behind them, and none if that has
// none: then the body is one without times, as text alone is.
func TestFirstTexts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		owned      int
		want       []string
	}{
		{"a banner", "\xef\xbb\xbf  ___  app\n\nVersion 3\n" + before, 3, []string{"15:04:05 -   ___  app", "15:04:05 - Version 3", "15:04:05 info before"}},
		{"before a text with a time", "Version 3\n2026-11-10 15:04:07 up\n", 2, []string{"15:04:07 - Version 3", "15:04:07 - 2026-11-10 15:04:07 up"}},
		{"before an object without a time", "Version 3\n{\"msg\":\"a\"}\nthen\n" + before, 1, []string{"- - Version 3", "- - a", "- - then", "15:04:05 info before"}},
		{"alone", "Version 3\nup\n", 0, []string{"- - Version 3", "- - up"}},
	} {
		g := gather(t, "text/plain", c.text, arrival)
		if got := records(t, g); !slices.Equal(got, c.want) || g.Owned != c.owned {
			t.Errorf("%s: %d with times, want %d; got\n%s", c.name, g.Owned, c.owned, strings.Join(got, "\n"))
		}
	}
}

// A line that begins as an object and is none is rejected, by itself, and its neighbours
// are records. A type that says NDJSON has no texts.
func TestMixedRejects(t *testing.T) {
	for _, c := range []struct {
		contentType, text string
		accepted          int
		rejected          []int
	}{
		{"", before + `{"level":"info","msg":"cut o`, 1, []int{1}},
		{"", before + `{"msg":"a"} and more` + "\n" + behind, 2, []int{1}},
		{"", before + `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}\ntext\n" + behind, 3, []int{1}},
		{"", before + "{\"a\":[\ntext\n" + behind, 3, []int{1}},
		{"", before + strings.Repeat("x", 1<<20+1) + "\n" + behind, 2, []int{1}},
		{"application/x-ndjson", before + "text\n" + behind, 2, []int{1}},
		{"application/json", before + "text\n" + behind, 2, []int{1}},
	} {
		g := gather(t, c.contentType, c.text, arrival)
		var got []int
		for _, r := range g.Rejected {
			got = append(got, r.Index)
		}
		if g.Accepted != c.accepted || !slices.Equal(got, c.rejected) {
			t.Errorf("%s %.80q: %d accepted, want %d; rejected %v, want %v", c.contentType, c.text, g.Accepted, c.accepted, got, c.rejected)
		}
	}
}

// Words are levels where loggers write them, and not in sentences.
func TestTextLevels(t *testing.T) {
	const date = "2026-11-10 15:04:05"
	for line, want := range map[string]record.Level{
		"ERROR something failed":                  record.Error,
		"ERROR":                                   record.Error,
		"[error] disk":                            record.Error,
		"[main] INFO app.Web - up":                record.Info,
		"error: disk":                             record.Error,
		"Warning: slow":                           record.Warn,
		"WARNING:root:slow":                       record.Warn,
		"INFO:     127.0.0.1 - GET /":             record.Info,
		"INFO[0000] up":                           record.Info,
		"main.c:5:10: error: no":                  record.Error,
		"app-1  | ERROR x":                        record.Error,
		"15:04:05.123 [main] WARN app.Web - slow": record.Warn,
		"15:04:05 error disk":                     record.Error,
		"3:04PM INF up":                           record.Info,
		"Nov 10 15:04:05 host app[12]: WARN x":    record.Warn,
		"[Tue Nov 10 15:04:05.1 2026] [core:error] [pid 1] x": record.Error,
		date + " ERROR x":                               record.Error,
		date + ",123 - root - ERROR - x":                record.Error,
		date + ",123 root ERROR x":                      record.Error,
		date + ".123  INFO 12 --- [main] app.Web : up":  record.Info,
		date + " error x":                               record.Error,
		date + " [notice] 31#31: x":                     record.Info,
		date + " NOTICE x":                              record.Info,
		"2026/11/10 15:04:05 [error] 31#31: *1 open()":  record.Error,
		"[2026-11-10T15:04:05Z ERROR app] x":            record.Error,
		"2026-11-10T15:04:05.123+0100\tINFO\tmain.go:1": record.Info,
		date + " UTC [12] FATAL:  no":                   record.Critical,
		"I1110 15:04:05.123456 1 main.go:5] up":         record.Info,
		"E1110 15:04:05.123456 1 main.go:5] no":         record.Error,
		"<11>Nov 10 15:04:05 host app: x":               record.Error,
		"level=error msg=x":                             record.Error,
		"ts=2026-11-10T15:04:05Z level=debug msg=x":     record.Debug,
		`msg="x level=error" level=info`:                record.Info,
		"panic: no":                                     record.Critical,
		"FINE: x":                                       record.Debug,
		"dbug: App[0]":                                  record.Debug,
		"--- FAIL: TestX (0.00s)":                       record.Error,

		"\x1b[31mERROR\x1b[0m disk": record.Error,
		"\x1b[2m" + "2026-11-10T15:04:05.1Z\x1b[0m \x1b[33m WARN\x1b[0m \x1b[2mapp::db\x1b[0m\x1b[2m:\x1b[0m slow": record.Warn,
		"INFO+2 retry":     record.Info,
		date + " WARN+1 x": record.Warn,
		"[" + date + ",257: WARNING/MainProcess] celery":                          record.Warn,
		"[" + date + ",257: ERROR/ForkPoolWorker-1] task":                         record.Error,
		"10-Nov-2026 15:04:05.257 SEVERE [main] org.apache.X x":                   record.Error,
		"10-Nov-2026 15:04:05.257 FINE [main] org.apache.X x":                     record.Debug,
		"Nov 10, 2026 3:04:05 PM com.a.B main":                                    record.Other,
		"E, [2026-11-10T15:04:05.257123 #7] ERROR -- : x":                         record.Error,
		"W, [2026-11-10T15:04:05.257123 #7]  WARN -- app: x":                      record.Warn,
		"1:M 10 Nov 2026 15:04:05.257 # low memory":                               record.Warn,
		"1:M 10 Nov 2026 15:04:05.257 * ready":                                    record.Info,
		"[10-Nov-2026 15:04:05 UTC] PHP Warning:  x":                              record.Warn,
		"PHP Fatal error:  Uncaught x":                                            record.Critical,
		date + " UTC [7] LOG:  ready":                                             record.Info,
		date + " 0 [Note] ready":                                                  record.Info,
		"2026-11-10T15:04:05.257123Z 0 [Warning] [MY-010068] [Server] x":          record.Warn,
		"2026-11-10T15:04:05.257123456Z stderr F ERROR disk":                      record.Error,
		"2026-11-10T15:04:05.257123456Z stdout F " + `{"level":"warn","msg":"x"}`: record.Warn,
		"2026-11-10T15:04:05.257123456Z stdout F level=error msg=x":               record.Error,
		"%LINK-3-UPDOWN: Interface down":                                          record.Error,
		"ERRO[0001] x":                                                            record.Error,
		"[10:00:00 INF] x":                                                        record.Info,
		"[info ] x":                                                               record.Info,
		"[error    ] x":                                                           record.Error,
		"E/Shop( 1234): x":                                                        record.Error, "W/System.err(  99): x": record.Warn, "D/Shop: x": record.Other, "I/O error": record.Other, "E/F (5): x": record.Error,
		"11-10 15:04:05.257  1234  5678 E Shop: x": record.Error,
		"11-10 15:04:05.257 D/Shop( 1234): x":      record.Debug,
		date + " 5 6 E x":                          record.Other,
		"Nov 10 15:04:05 host dockerd[1]: time=\"" + date + "\" level=error msg=\"x\"": record.Error,
		"Nov 10 15:04:05 host app: level=warn msg=x":                                   record.Warn,
		"Nov 10 15:04:05 host app: set level=warn":                                     record.Other,
		"Nov 10 15:04:05 mac kernel[0] <Error>: x":                                     record.Error,
		"Nov 10 15:04:05 mac launchd[1] (com.a[12]) <Notice>: x":                       record.Info,
		"Nov 10 15:04:05 mac a told <Error> x":                                         record.Other,
		"\u26a0 warning: x":                                                            record.Warn, "\U0001f4a5 ERROR x": record.Error, "\u274c Error: x": record.Error, "\u2022 error rates": record.Other, "\u274c no error: x": record.Other,
		"[info desk ]":                               record.Other,
		date + ", ERROR, x":                          record.Error,
		date + ", we saw no error there":             record.Other,
		"[15:04:05] [Server thread/WARN]: x":         record.Warn,
		"[15:04:05] [main/INFO] [a.B/]: x":           record.Info,
		date + " [GET /a/error] x":                   record.Other,
		"[E 261110 15:04:05 web:2239] x":             record.Error,
		"[I 15:04:05.257 NotebookApp] ERROR was one": record.Info,
		"[C 3 po] are droids":                        record.Other,
		"10.11.2026 15:04:05,257 ERROR x":            record.Error,
		date + ":257 ERROR x":                        record.Error,
		"{x} ERROR":                                  record.Other,
		"ERROR-404 page":                             record.Other,
		"note: this is fine":                         record.Other,
		"log: it works":                              record.Other,
		"WARNING/x y":                                record.Other,

		"no error found":                  record.Other,
		"no error: found":                 record.Other,
		"the error: none":                 record.Other,
		"INFORMATION desk":                record.Other,
		"Error while reading":             record.Other, // a sentence may begin so
		"Severe weather":                  record.Other,
		"errors: 0":                       record.Other,
		"error_count: 5":                  record.Other,
		"error=none":                      record.Other,
		"ERR_CONNECTION reset":            record.Other,
		"DEBUG=1 npm start":               record.Other,
		"Set the log level to DEBUG":      record.Other,
		"0 ERROR lines":                   record.Other,
		"2 errors found":                  record.Other,
		"run it with level=debug":         record.Other,
		"fine: it works":                  record.Other,
		"config: loaded":                  record.Other,
		"see [error] below":               record.Other,
		"E1234 is the number of the part": record.Other,
		date + " Fine, thanks":            record.Other,
		date + " PID[12] error prone":     record.Other,
		date + " no error found":          record.Other,
		date + " the error: none":         record.Other,
		"<999>x":                          record.Other,
		"":                                record.Other,
	} {
		g := gather(t, "", line, arrival)
		got := record.Other
		if g.Accepted == 1 {
			l := g.Req.Lines[0]
			got = record.LineLevel(g.Req.Data[l.Off : l.Off+l.Len])
		}
		if got != want {
			t.Errorf("%q is %v, want %v", line, got, want)
		}
	}
}

// costs are the processor times of reading a body of n equal lines behind a text, and one of so many
// times n. See [testkit.LeastCPU].
func costs(t *testing.T, line string, n, times int, fine func(short, long time.Duration) bool) (short, long time.Duration) {
	t.Helper()
	read := func(n int) func() {
		text := "text\n" + strings.Repeat(line, n)
		return func() { gather(t, "", text, arrival) }
	}
	return testkit.LeastCPU(read(n), read(times*n), fine)
}

// The work for a body is in proportion to its length, even if its lines leave much open. In
// proportion to the square, 16 times as much would take 256 times as long.
func TestMixedIsLinear(t *testing.T) {
	for _, line := range []string{"{\"\n", "{\n", "{\"a\":[\n", "{\"a\":\"x\n", "{\"a\":1,\n", "{\"\nx\n", "\n", "x\n", "\tx\n", "x\n\n\n", "at x\n", "{\"a\":{\"b\":[1,\n", "Traceback (most recent call last):\n", "x)\n\tx\n",
		"{\"a\":[" + strings.Repeat("1,\n", 500), strings.Repeat("{}", 10_000)} {
		n := max(1, 10_000/len(line))
		fine := func(short, long time.Duration) bool { return long <= 80*max(short, time.Millisecond) }
		short, long := costs(t, line, n, 16, fine)
		t.Logf("%.20q: %v, and %v for 16 times as much", line, short, long)
		if !fine(short, long) {
			t.Errorf("%.20q: %v, and %v for 16 times as much", line, short, long)
		}
	}
}

// Records and rejects of a mixed body have as many places as it has lines that are not
// empty, so they are those of a reading line by line.
func TestMixedKeepsAll(t *testing.T) {
	var text bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&text, "%s\n", []string{`{"n":1}`, "x", "\tat y", "", "{", `{"a":`, "Traceback (most recent call last):", "ValueError: x"}[i*i%31%8])
	}
	g := gather(t, "", text.String(), arrival)
	lines := bytes.FieldsFunc(text.Bytes(), func(r rune) bool { return r == '\n' })
	if g.Places != len(lines) {
		t.Errorf("%d places for %d lines", g.Places, len(lines))
	}
}
