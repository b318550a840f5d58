package body_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

// traces are the stack traces of testdata/traces.txt by name.
func traces(t testing.TB) (names []string, all map[string]string) {
	t.Helper()
	file, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]string{}
	for _, part := range strings.Split(string(file), "\n-- ")[1:] {
		name, text, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("no name: %q", part)
		}
		names, all[name] = append(names, name), strings.TrimSuffix(text, "\n")+"\n"
	}
	return names, all
}

// A record as the tests of joining compare it.
type joined struct{ level, msg string }

func read(t testing.TB, text string) (all []joined) {
	t.Helper()
	for _, r := range records(t, gather(t, "", text, arrival)) {
		parts := strings.SplitN(r, " ", 3)
		if i := strings.IndexByte(parts[0], '-'); i > 0 { // another day than that of records
			parts = strings.SplitN(r, " ", 4)[1:]
		}
		all = append(all, joined{parts[1], parts[2]})
	}
	return all
}

// The stack traces of all runtimes are one record each, of level error or above: alone, behind
// and before any line, with carriage returns, and with empty lines in them. They belong to the
// line before if that has the level error, and to no other.
func TestTraces(t *testing.T) {
	names, all := traces(t)
	bare := func(text string) string { return strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\n", "|") }
	severe := func(level string) bool { return level == "error" || level == "critical" }
	for _, name := range names {
		text := all[name]
		t.Run(name, func(t *testing.T) {
			alone := joined{"", bare(text)}
			check := func(what, body string, want ...joined) {
				t.Helper()
				got := read(t, body)
				if len(got) != len(want) {
					t.Errorf("%s: %d records, want %d:\n%q", what, len(got), len(want), got)
					return
				}
				for i, w := range want {
					if g := got[i]; g.msg != w.msg || w.level == "" && !severe(g.level) || w.level != "" && g.level != w.level {
						t.Errorf("%s: record %d\n got %q\nwant %q", what, i, g, w)
					}
				}
			}
			check("alone", text, alone)
			check("twice", text+"ready\n"+text, alone, joined{"-", "ready"}, alone)
			check("behind a line of level info", "INFO ready\n"+text, joined{"info", "INFO ready"}, alone)
			check("behind a line of level warn", "2026-11-20 10:00:00,100 WARN slow\n"+text, joined{"warn", "2026-11-20 10:00:00,100 WARN slow"}, alone)
			check("behind a line without a level", "GET /healthz 200\n"+text, joined{"-", "GET /healthz 200"}, alone)
			check("before a usual line", text+"ready to serve\n", alone, joined{"-", "ready to serve"})
			check("before a line with a level", text+"INFO next: at work\n", alone, joined{"info", "INFO next: at work"})
			check("before a time", text+"2026-11-20 10:00:00,100 INFO next\n", alone, joined{"info", "2026-11-20 10:00:00,100 INFO next"})
			check("before an object", text+`{"level":"debug","msg":"x"}`+"\n", alone, joined{"debug", "x"})
			check("carriage returns", strings.ReplaceAll(text, "\n", "\r\n"), joined{"", bare(strings.ReplaceAll(text, "\n", "\r\n"))})
			if strings.Contains(name, "Erlang") || strings.Contains(name, "Lua") || strings.Contains(name, "Haskell") || name == "Go, functions alone" || name == "Python, of another process" {
				return // the line behind decides
			}
			spaced := strings.ReplaceAll(text, "\n", "\n\n")
			if !strings.Contains(name, "Node.js") { // its empty line ends the source
				check("empty lines", spaced+"INFO next\n", joined{"", bare(spaced)}, joined{"info", "INFO next"})
			}
		})
	}
}

// A trace belongs to the line of level error that logs it.
func TestTracesThatAreLogged(t *testing.T) {
	names, all := traces(t)
	for _, name := range names {
		text := all[name]
		switch name {
		case "Rust, anyhow", "Perl", "Tcl", "Ruby, Rails with tags":
			continue // their first line may be of any program: it begins a record
		}
		if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "2026") || strings.HasPrefix(first, "11:00:00") {
			continue // it has a line of a log itself
		}
		for _, line := range []string{"ERROR failed\n", "2026-11-20 10:00:00,206 ERROR [exec-3] c.x.Orders: not stored\n", "level=error msg=failed\n"} {
			got := read(t, line+text+"ready\n")
			if len(got) != 2 || got[0].level != "error" || !strings.HasSuffix(got[0].msg, strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "|")) || got[1].msg != "ready" {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// Lines that only look like those of a trace are records of their own behind any line.
func TestNoTraces(t *testing.T) {
	lines := []string{
		"at least 3 replicas are down", "at noon (UTC)", "at 10:30:15 the job ended", "at the end of the day (see wiki)", "at example.com the order failed",
		"created by alice: order 17", "created by the job (17)", "exit status 2 of job 9", "exit status 0", "... and so on", "... 12 more items are in the queue",
		"goroutine pool has 12 workers", "goroutine 7 ended", "panic button pressed by alice", "fatal errors: none", "Traceback is off", "thread 'main' is idle",
		"thread pool panicked at noon", "Unhandled exceptions: 0", "Uncaught fish swim away", "Exceptions in thread pools are logged", "File \"x.py\" is uploaded",
		"Caused by a user", "Caused: by rain", "Also: bring an umbrella", "Suppressed 3 messages", "stack backtrace of the order", "note: run with care", "--- a section", "#1 of 3 orders", "# a title", "#0 is the first",
		"from alice to bob: 17", "raised by alice in file 17", "Called from the shop, line 4", "x.rb:3 is a line", "java.lang.Thread is a class", "app.errors are counted",
		"} is a brace", "} else {", ") ", "] done", "State: 17 is ready", "Node.js v22.1.0", "Last message: hello", "Stack trace: none", "Calls: 17", "Aborted 3 jobs",
		"(Use the door)", "** bold ** text", "== title ==", "next page: 17", "thrown in the bin", "main.main()", "a (b)", "SIGHUP: reload",
		"# Time: is short", "# User@Host: is a column", "=ERROR REPORT= is late", "panic recovered: all is well", "x.go:61 (see 0x17)", "RuntimeError (no): see 17", "error stack: empty",
		"[stacktrace] is off", `"} is a brace`, `"""`, "[order] is a tag", "[warn] no more", "...17 frames elided", "stack backtrace", "thread caused no panic", "a.b", "* Running late",
	}
	for _, line := range lines {
		for _, before := range []struct{ line, level string }{{"INFO job started", "info"}, {"backup ready", "-"}, {"2026-11-20 10:00:00,100 WARN slow", "warn"}, {"ERROR job failed", "error"}} {
			got := read(t, before.line+"\n"+line+"\nINFO next\n")
			want := joined{before.level, before.line}
			if len(got) != 3 || got[0] != want || got[1].msg != strings.TrimSpace(line) && got[1].msg != line || got[2].msg != "INFO next" {
				t.Errorf("%q behind %q: %q", line, before.line, got)
			}
		}
		// Nor do they belong to a trace that has ended.
		trace := "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nValueError: no\n"
		if got := read(t, trace+line+"\n"); len(got) != 2 || got[1].msg != line {
			t.Errorf("%q behind a trace: %q", line, got)
		}
	}
}

// Indented sentences belong to the text before them, and make no error of it.
func TestIndentedSentences(t *testing.T) {
	for _, line := range []string{"  at least 3 replicas are down", "\tat noon (UTC)", "    at 10:30:15", "  File \"x\" is there", "  ... and 12 more"} {
		if got := read(t, "job started\n"+line+"\nready\n"); len(got) != 2 || got[0].level != "-" {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// Other lines belong together too: those between braces, of java.util.logging, of a message.
func TestJoined(t *testing.T) {
	for _, c := range []struct {
		text string
		want []joined
	}{
		{"{\n  id: 7,\n  name: 'x'\n}\nready\n", []joined{{"-", "{|  id: 7,|  name: 'x'|}"}, {"-", "ready"}}},
		{"cart: [\n  { id: 7 },\n  { id: 8 }\n]\nready\n", []joined{{"-", "cart: [|  { id: 7 },|  { id: 8 }|]"}, {"-", "ready"}}},
		{"INFO cart {\n  items: [\n    1\n  ]\n}\n}\n", []joined{{"info", "INFO cart {|  items: [|    1|  ]|}"}, {"-", "}"}}},
		{"open {\nINFO next\n}\n", []joined{{"-", "open {"}, {"info", "INFO next"}, {"-", "}"}}},
		{"Nov 20, 2026 11:00:00 AM com.shop.Cart add\nSEVERE: not stored\njava.io.IOException: disk\n\tat com.shop.Cart.add(Cart.java:7)\nNov 20, 2026 11:00:01 AM com.shop.Cart add\nINFO: stored\n",
			[]joined{{"error", "Nov 20, 2026 11:00:00 AM com.shop.Cart add|SEVERE: not stored|java.io.IOException: disk|\tat com.shop.Cart.add(Cart.java:7)"}, {"info", "Nov 20, 2026 11:00:01 AM com.shop.Cart add|INFO: stored"}}},
		{"Nov 20, 2026 11:00:00\u202fPM com.shop.Cart <init>\nWARNING: slow\nTraceback of nothing\n", []joined{{"warn", "Nov 20, 2026 11:00:00\u202fPM com.shop.Cart <init>|WARNING: slow"}, {"-", "Traceback of nothing"}}},
		{"Nov 20, 2026 11:00:00 AM com.shop.Cart add\nFINE: stored\njava.io.IOException: disk\n\tat com.shop.Cart.add(Cart.java:7)\n",
			[]joined{{"debug", "Nov 20, 2026 11:00:00 AM com.shop.Cart add|FINE: stored"}, {"error", "java.io.IOException: disk|\tat com.shop.Cart.add(Cart.java:7)"}}},
		{"thread 'main' panicked at src/main.rs:3:5:\n  no room\nready\n", []joined{{"error", "thread 'main' panicked at src/main.rs:3:5:|  no room"}, {"-", "ready"}}},
		{"ERROR a\n INFO b\n WARN c\n  d\n", []joined{{"error", "ERROR a"}, {"info", " INFO b"}, {"warn", " WARN c|  d"}}},
		{"ERROR run failed\n\norg.x.BeanException: no\n\tat org.x.B.c(B.java:1)\nCaused by: org.x.A: no\n\t... 3 common frames omitted\n",
			[]joined{{"error", "ERROR run failed||org.x.BeanException: no|\tat org.x.B.c(B.java:1)|Caused by: org.x.A: no|\t... 3 common frames omitted"}}},
		{"ERROR one\nERROR two\nTypeError: x\n    at f (/a.js:1:2)\nTypeError: alone\n", []joined{{"error", "ERROR one"}, {"error", "ERROR two|TypeError: x|    at f (/a.js:1:2)"}, {"-", "TypeError: alone"}}},
		{"Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nINFO: cut off\n", []joined{{"error", "Traceback (most recent call last):|  File \"x.py\", line 3, in f"}, {"info", "INFO: cut off"}}},
		{"\x1b[31mTraceback (most recent call last):\x1b[0m\n  File \"x.py\", line 3, in f\n\x1b[31mValueError: no\nnext\n", []joined{{"error", "\x1b[31mTraceback (most recent call last):\x1b[0m|  File \"x.py\", line 3, in f|\x1b[31mValueError: no"}, {"-", "next"}}},
		{"panic: a\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:3 +0x1d\npanic: b\n", []joined{{"critical", "panic: a||goroutine 1 [running]:|main.main()|\t/a.go:3 +0x1d"}, {"critical", "panic: b"}}},
	} {
		got := read(t, c.text)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

// Records that end where their own form says it, and lines that only begin like them.
func TestBlocks(t *testing.T) {
	const (
		tag  = "[0a5d392b-58fb-42ca-9c71-5bb070f2be13]"
		slow = "# User@Host: root[root] @ localhost []|# Query_time: 0.3  Lock_time: 0.0|use `shop`;|SET timestamp=1795681189;|select id|  from orders|where true;"
	)
	for _, c := range []struct{ name, text string }{ // a record a line; its lines are apart by |
		{"slow log", "# Time: 261126  8:19:49|" + slow + "\n" + slow + "\nready\n# Time: 261126  8:19:50|" + slow + "\n"},
		{"slow log, cut", "# Time: 261126  8:19:49|# User@Host: root[root] @ localhost []|SET timestamp=1795681189;|select id\n# Time: 261126  8:19:50|" + slow},
		{"no slow log", "# Time: is money\n# a title\n# User@Host: is a column\n# another\n"},
		{"CSV", `2026-11-20 10:00:00.832 UTC,"a",ERROR,"b ""c""","select|from|""x"", {|}",1` + "\n" + `2026-11-20 10:00:00.832 UTC,"a",ERROR,"b"` + "\n"},
		{"CSV, cut", `2026-11-20 10:00:00.832 UTC,"a",ERROR,"select` + "\nready\n" + `2026-11-20 10:00:00.832 UTC,"a",LOG,"b"` + "\n"},
		{"CSV, no end", `2026-11-20 10:00:00.832 UTC,"a",ERROR,"select` + "\nready\nat work\n"},
		{"no CSV", `2026-11-20 10:00:00.832 UTC, the "order` + "\nready\n" + `2026-11-20 10:00:00.832 UTC,5" of` + "\n" + `next "` + "\n"},
		{"Monolog", `[2026-11-20 10:00:00] shop.WARNING: no {"exception":"[object] (A(code: 0): one|two at /x.php:14)|[stacktrace]|#0 /x.php(37): charge()|#1 {main}||[previous exception] [object] (B(code: 0): three|four at /x.php:3)|[stacktrace]|#0 {main}|"} ` + "\nready\n" + `[2026-11-20 10:00:00] shop.INFO: [object] (x` + "\nnext\n[stacktrace] is a word\n"},
		{"Rails", "F, [2026-11-20T10:00:00.022723 #8797] FATAL -- : " + tag + "   |" + tag + " ArgumentError (no):|" + tag + "   |" + tag + " app/x.rb:3:in `show'\n[other] ready\nI, [2026-11-20T10:00:00.022723 #8797]  INFO -- : " + tag + " a|" + tag + " b\n" + tag + "   |" + tag + " ArgumentError (no):|" + tag + " app/x.rb:3:in `show'\n" + tag + " Started GET\n" + tag + "  \n" + tag + " ready\n"},
		{"a backtrace of Ruby", "2026-11-20T10:00:00Z pid=1 tid=a WARN: /x.rb:14:in `perform'|/y.rb:3:in `block in f'|/z.rb:4:in 'A#f'\nit's in 'f'\n2026-11-20T10:00:00Z WARN: it is 'here'\n/z.rb:4:in 'f'\n"},
		{"gorm", "2026/11/20 10:00:00 \x1b[34;1m/x.go:28|\x1b[0m\x1b[35m[warn] \x1b[0mslow\n2026/11/20 10:00:00 /x.go:28|[1.001ms] [rows:0] SELECT 1\n2026/11/20 10:00:00 /x.go:30 record not found|[1.001ms] [rows:0] SELECT 1\n[error] next\n2026/11/20 10:00:00 placed\n[info] ready\n"},
		{"Erlang", "=INFO REPORT==== 20-Nov-2026::11:00:00.1 ===|ERROR is a word|in it\n=ERROR REPORT==== 20-Nov-2026::11:00:00.1 ===|card|declined\n=DEBUG REPORT==== 20-Nov-2026::11:00:00.1 ===\n=NOTICE REPORT==== 20-Nov-2026::11:00:00.1 ===|one\nINFO two\n=INFO REPORT==== 20-Nov-2026::11:00:00.1 ===|one\nready\n"},
		{"koa", "  <-- GET /orders\n  \x1b[90m-->\x1b[39m \x1b[1mPOST\x1b[22m /orders 200\n  xxx PUT /orders 500|  --> src/main.rs:3:5|  <-- an arrow\n"},
		{"Flask", "WARNING: no server\n * Running on http://127.0.0.1:5000\n * Debug mode: off| * item\n"},
		{"consola", "ready\n WARN  slow\n\n ERROR  no||    at f (/a.js:1:2)\n\n FATAL  shut\n"},
		{"hclog", "2026-11-20T10:00:00.886Z [ERROR] shop: no: id=7|  error=|  | one|  | two\n2026-11-20T10:00:00.886Z [INFO] shop: next\n"},
		{"node", "failed Error: one|    at f (/a.js:1:2)\nError: two|\x1b[90m    at g (/a.js:1:2)\x1b[39m {|  code: 'X'|}\nready\n"},
		{"tslog", "2026-11-20 10:00:00.913\tERROR\tx.mjs:9\tfailed|| Error  no|error stack:|  • x.mjs\tf|\tx.mjs:12\nready\n"},
		{"zap", "2026-11-20T10:00:00.300+0100\tERROR\tshop/zap.go:34\tno\t{}|main.f|\t/srv/zap.go:34\nmain.f\nready|\t/srv/zap.go:34 is a place\n"},
		{"zap, a warning", "2026-11-20T10:00:00.300+0100\tWARN\tshop/zap.go:34\tslow|main.f|\t/srv/zap.go:34|main.main|\t/srv/zap.go:9\n2026-11-20T10:00:00.300+0100\tINFO\tshop/zap.go:35\tready\nmain.f\n2026-11-20T10:00:00.300+0100\tWARN\tshop/zap.go:34\tslow\nready\n"},
		{"Gin", "2026/11/20 10:00:00 [Recovery] 2026/11/20 - 10:00:00 panic recovered:|no|shop/x.go:61 (0xe74ba4)|\x1b[0m\nready\n"},
		{"Rust", "thread 'a' (893) panicked at src/main.rs:37:38:|one|two|note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\nkept\nthread 'a' panicked at src/main.rs:37:38:|one\nready\nnote: well\nthread 'a' panicked at src/main.rs:37:38:|one\nINFO two\nnote: run with `RUST_BACKTRACE=1`\n"},
		{"Python and Go", "Traceback (most recent call last):|  File \"x.py\", line 3, in f|ValueError: no\nfatal error: all goroutines are asleep\n"},
	} {
		var want, got []string
		for _, line := range strings.Split(strings.TrimSuffix(c.text, "\n"), "\n") {
			if line != "" {
				want = append(want, line)
			}
		}
		for _, r := range read(t, strings.ReplaceAll(c.text, "|", "\n")) {
			got = append(got, r.msg)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, want)
		}
	}
}

// A trace beyond the bounds goes on in the next record, with its level and its state.
func TestTracesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("INFO before\npanic: no\n\ngoroutine 1 [running]:\n")
	for i := range 3000 {
		fmt.Fprintf(&text, "main.f%d(0x%s)\n\t/app/main.go:%d +0x1d\n", i, strings.Repeat("0", i%300), i)
	}
	text.WriteString("exit status 2\nready\n")
	got := read(t, text.String())
	var back strings.Builder
	for i, r := range got {
		if strings.Count(r.msg, "|") >= 1001 || len(r.msg) > 256<<10 {
			t.Errorf("record %d has %d lines, %d bytes", i, strings.Count(r.msg, "|")+1, len(r.msg))
		}
		if last := len(got) - 1; i > 0 && i < last && r.level != "critical" || i == last && r.msg != "ready" {
			t.Errorf("record %d of %d: level %s, %.50q", i, len(got), r.level, r.msg)
		}
		back.WriteString(strings.ReplaceAll(r.msg, "|", "\n") + "\n")
	}
	if len(got) < 8 || back.String() != text.String() {
		t.Errorf("%d records; they are not the text", len(got))
	}
}

// levelOf is the level of a record by parts with a text as its message.
func levelOf(t *testing.T, text string) record.Level {
	t.Helper()
	g := body.NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
	g.Begin(meaning.Head{Msg: []byte(text)})
	if !g.Record([]byte(text), 1, len(text)) || g.Accepted != 1 {
		t.Fatalf("%q is not accepted", text)
	}
	_, after, _ := strings.Cut(string(g.Req.Data), `"level":"`)
	word, _, _ := strings.Cut(after, `"`)
	return record.LevelOf([]byte(word))
}

// A level in front of an object counts before that of the object, which counts if there is none.
func TestHeadBeforeObject(t *testing.T) {
	for text, want := range map[string]record.Level{
		`ERROR: not stored {"level":"info"}`: record.Error, `[WARN] x {"level":"error"}`: record.Warn, `web-1 | {"level":"error"}`: record.Error,
		`not stored {"level":"warn"}`: record.Warn, `stored {"a":1}`: record.Other,
	} {
		if l := levelOf(t, text); l != want {
			t.Errorf("%s: %v, want %v", text, l, want)
		}
	}
}

// A message that is a whole trace has its level by every door.
func TestTraceLevel(t *testing.T) {
	names, all := traces(t)
	for _, name := range names {
		texts := []string{all[name], strings.TrimSuffix(all[name], "\n")}
		if name != "Rust, anyhow" && name != "Ruby, a logger" { // their first line alone has the level
			texts = append(texts, "GET /healthz\n"+all[name])
		}
		for _, text := range texts {
			if level := levelOf(t, text); level != record.Error && level != record.Critical {
				t.Errorf("%s: %v", name, level)
			}
		}
	}
	for _, text := range []string{"one\ntwo\n", "one\n  at least 3\n", "", "\n\n", "INFO a\n\tat x.y(Z.java:3)"} {
		if level := levelOf(t, text); level != record.Other && level != record.Info {
			t.Errorf("%q: %v", text, level)
		}
	}
}

// A trace in which each line has the same prefix is one record, with the level that it has without.
func TestTracesBehindPrefixes(t *testing.T) {
	names, all := traces(t)
	for _, name := range names {
		plain := read(t, all[name])
		for _, prefix := range []string{"web-1  | ", "\x1b[36mweb-1  | \x1b[0m", "[pod/web-0/web] ", "0|app  | ", "[rank0]: "} {
			text := prefix + strings.ReplaceAll(strings.TrimSuffix(all[name], "\n"), "\n", "\n"+prefix) + "\n"
			got := read(t, "db-1   | started\n"+text+prefix+"done\n")
			if len(got) != len(plain)+2 || got[1].level != plain[0].level {
				t.Fatalf("%s behind %q is %d records, and %d without; the first is %q", name, prefix, len(got)-2, len(plain), got[1])
			}
			if all := strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "|"); len(plain) == 1 && got[1].msg != all {
				t.Fatalf("%s behind %q: %q, want %q", name, prefix, got[1].msg, all)
			}
		}
	}
}
