package body_test

import (
	"os"
	"strings"
	"testing"
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
			if strings.Contains(name, "Erlang") || strings.Contains(name, "Lua") || strings.Contains(name, "Haskell") {
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
