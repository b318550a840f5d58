package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/record/meaning"
)

var update = flag.Bool("update", false, "write the golden files anew")

// stored returns the canonical line of a JSON object.
func stored(t testing.TB, object string) []byte {
	t.Helper()
	p := meaning.NewReader()
	if _, err := p.Scan([]byte(object)); err != nil {
		t.Fatal(err)
	}
	line, _ := p.AppendLine(nil, &meaning.Defaults{Service: "web", Time: 1795183445123456789})
	return line
}

func TestPretty(t *testing.T) {
	objects := []string{
		`{"level":"info","msg":"GET /index.html"}`,
		`{"level":"ERROR","msg":"failed","status":500,"path":"/a b","user":"ann","empty":"","nil":null,"ok":true}`,
		`{"level":"fatal","msg":"panic: oops\n\tmain.go:12\n\tmain.go:34"}`,
		`{"level":"trace","msg":"nested","req":{"a":[1,{"b":"c,}"}],"d":"\""},"list":[]}`,
		`{"level":"warn","msg":"\u001b[31mred\u001b[0m \u0007 \u009b1m \u202egnp.exe\u2028 tab\there"}`,
		`{"level":"odd word","msg":"","k=v":"x=y","q\"k":"say \"hi\""}`,
		`{"msg":"grüße 日本語 😀 \ud83d\ude00","evil\u001b[2J":"\u001b[2J","multi":"a\nb"}`,
	}
	for _, color := range []bool{false, true} {
		p := &prettyPrinter{zone: time.FixedZone("", 3600), color: color}
		var out []byte
		for _, o := range objects {
			out = p.append(out, stored(t, o))
		}
		name := filepath.Join("testdata", "pretty.golden")
		if color {
			name = filepath.Join("testdata", "pretty-color.golden")
		}
		if *update {
			if err := os.WriteFile(name, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, out, want)
		}
	}
}

// On a terminal a message does not repeat the time and the level of the columns. Anything else at its
// beginning stays: another time, a time of another zone or with more digits, a word that only means the
// level, and a match.
func TestRepeated(t *testing.T) {
	const ts = "2026-11-25T15:04:06.456Z"
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ts, level, msg string
		zone           *time.Location
		want           string // behind the columns
	}{
		{ts, "error", "2026-11-25 15:04:06.456 ERROR 4242 --- [main] failed", time.UTC, "4242 --- [main] failed"},
		{ts, "error", "2026-11-25T15:04:06.456Z  error  failed", time.UTC, "failed"},
		{ts, "error", "2026-11-25 15:04:06,456000 [main] ERROR failed", time.UTC, "[main] ERROR failed"},
		{ts, "error", "2026-11-25 16:04:06.456 ERROR failed", berlin, "failed"},
		{"2026-11-25T15:04:06Z", "info", "2026-11-25 15:04:06 INFO up", time.UTC, "up"},
		{ts, "error", "2026-11-25 15:04:06.456 ERROR failed\\n\\tat x", time.UTC, "failed\n    \tat x"},
		{ts, "warn", "2026-11-25 15:04:06.456 WARNING low", time.UTC, "WARNING low"},
		{ts, "info", "2026-11-25 15:04:06.456 INFORMATION x", time.UTC, "INFORMATION x"},
		{ts, "info", "2026-11-25 15:04:06.456 warn INFO x", time.UTC, "warn INFO x"},

		{ts, "error", "2026-11-25 15:04:06.456 ERROR failed", berlin, "2026-11-25 15:04:06.456 ERROR failed"},
		{ts, "error", "2026-11-25 15:04:06.457 ERROR failed", time.UTC, "2026-11-25 15:04:06.457 ERROR failed"},
		{ts, "error", "2026-11-25 15:04:06 ERROR failed", time.UTC, "2026-11-25 15:04:06 ERROR failed"},
		{ts, "error", "2026-11-25 15:04:06.4560000001 ERROR failed", time.UTC, "2026-11-25 15:04:06.4560000001 ERROR failed"},
		{"2026-11-25T15:04:06.456789Z", "error", "2026-11-25 15:04:06.456789 ERROR failed", time.UTC, "2026-11-25 15:04:06.456789 ERROR failed"},
		{"2026-11-25T15:04:06Z", "error", "2026-11-25 15:04:06. ERROR failed", time.UTC, "2026-11-25 15:04:06. ERROR failed"},
		{ts, "error", "2026-11-25 15:04:06.456+01:00 failed", time.UTC, "2026-11-25 15:04:06.456+01:00 failed"},
		{ts, "error", "2026-11-25 16:04:06.456Z failed", berlin, "2026-11-25 16:04:06.456Z failed"},
		{ts, "error", "[2026-11-25 15:04:06.456] failed", time.UTC, "[2026-11-25 15:04:06.456] failed"},
		{ts, "error", "2026-11-25 15:04:06.456", time.UTC, "2026-11-25 15:04:06.456"},
		{ts, "error", "2026-11-25 15:04:06.456 ", time.UTC, "2026-11-25 15:04:06.456 "},
		{ts, "error", "2026-11-25 15:04:06.456 ERROR", time.UTC, "ERROR"},
		{ts, "error", "ERROR failed", time.UTC, "ERROR failed"},
		{ts, "error", "", time.UTC, ""},
	} {
		line := stored(t, `{"ts":"`+c.ts+`","level":"`+c.level+`","service":"web","msg":"`+c.msg+`"}`)
		at, _ := record.LineTime(line)
		level := c.level
		for len(level) < 5 {
			level += " "
		}
		columns := time.Unix(0, at).In(c.zone).Format(timeLayout) + " " + level + " web "
		if got := string((&prettyPrinter{zone: c.zone, once: true}).append(nil, line)); got != columns+c.want+"\n" {
			t.Errorf("%s: %q, not %q", c.msg, got, columns+c.want)
		}
		whole := strings.ReplaceAll(strings.ReplaceAll(c.msg, `\n`, "\n    "), `\t`, "\t")
		if got := string((&prettyPrinter{zone: c.zone}).append(nil, line)); got != columns+whole+"\n" {
			t.Errorf("into a pipe: %q", got)
		}
		if got := string((&prettyPrinter{zone: c.zone, once: true, of: chosen{fields: []string{"msg"}, share: new(budget.Share)}}).append(nil, line)); got != whole+"\n" {
			t.Errorf("the message alone: %q", got)
		}
	}
	match, err := (&reading.Ask{Texts: []string{"06.456"}}).Matcher(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &prettyPrinter{zone: time.UTC, once: true, color: true, match: match}
	if got := string(p.append(nil, stored(t, `{"ts":"`+ts+`","msg":"2026-11-25 15:04:06.456 x"}`))); !strings.Contains(got, "15:04:"+reverse+"06.456"+forward+" x") {
		t.Errorf("a match is left out: %q", got)
	}
}

// checkSafe fails for text with an effect on a terminal.
func checkSafe(t *testing.T, out []byte) {
	t.Helper()
	if !utf8.Valid(out) {
		t.Errorf("no UTF-8: %q", out)
	}
	if safe := cli.AppendSafe(nil, out, "\n"); !bytes.Equal(safe, out) {
		t.Errorf("%q would be escaped as %q", out, safe)
	}
}

// Printing any line is safe, even an invalid one, and the output begins only one record.
func FuzzPretty(f *testing.F) {
	f.Add([]byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"web","msg":"a\nb","x":{"y":[1,"\u001b"]}}` + "\n"))
	f.Add([]byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"\u001b","service":"web","msg":"\ud800`))
	f.Fuzz(func(t *testing.T, line []byte) {
		out := (&prettyPrinter{zone: time.UTC, once: true}).append(nil, line)
		checkSafe(t, out)
		for i, l := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
			if i > 0 && !strings.HasPrefix(l, "    ") {
				t.Errorf("line %d is not indented: %q", i, out)
			}
		}
		checkSafe(t, (&app{env: environment{outTTY: true}}).appendRaw(nil, line))
	})
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB",
		1<<20 - 1: "1.0 MiB", 10 << 30: "10.0 GiB", 1 << 62: "4.0 EiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
