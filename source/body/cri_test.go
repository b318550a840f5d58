package body_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/source/body"
)

// The head of a container runtime is no part of the message: the lines behind it are read like
// those of any text, for each stream by itself.
func TestCRI(t *testing.T) {
	const trace = "java.lang.IllegalStateException: no|\tat com.shop.Cart.add(Cart.java:7)|Caused by: x|\t... 3 more"
	for _, c := range []struct {
		name, text string // h is the time of 15:04:05 and some digits of a fraction, e stderr, o stdout
		want       []string
	}{
		{"text and objects", "h1 o F ERROR disk\nh2 e F {\"level\":\"warn\",\"msg\":\"slow\",\"user\":7}\nh3 o F {}\n",
			[]string{"1 error ERROR disk stdout", "2 warn slow stderr", "3 -  stdout"}},
		{"parts", "h1 o P INFO a, \nh2 o P b, \nh3 o F c\nh4 o F next\n", []string{"1 info INFO a, b, c stdout", "4 - next stdout"}},
		{"an object in parts", "h1 o P {\"level\":\"error\",\nh2 o F \"msg\":\"cut in two\"}\n", []string{"1 error cut in two stdout"}},
		{"parts of both streams", "h1 o P ab\nh2 e P xy\nh3 e F z\nh4 o F c\n", []string{"2 - xyz stderr", "1 - abc stdout"}},
		{"a part without its end", "h1 o F a\nh2 o P b\n", []string{"1 - a stdout", "2 - b stdout"}},
		{"a trace", "h1 e F ERROR failed\nh2 e F " + strings.ReplaceAll(trace, "|", "\nh3 e F ") + "\nh4 e F next\n",
			[]string{"1 error ERROR failed|" + trace + " stderr", "4 - next stderr"}},
		{"a trace with another stream between", "h1 e F panic: no\nh2 o F GET /\nh3 e F \nh4 e F goroutine 1 [running]:\nh5 o F GET /x\nh6 e F main.main()\nh7 e F \t/a.go:8 +0x1d\n",
			[]string{"2 - GET / stdout", "5 - GET /x stdout", "1 critical panic: no||goroutine 1 [running]:|main.main()|\t/a.go:8 +0x1d stderr"}},
		{"empty lines", "h1 o F \nh2 o F a\nh3 o F\nh4 o F b\n", []string{"2 - a stdout", "4 - b stdout"}},
		{"CRLF", "h1 o F a\r\nh2 o F b\r\n", []string{"1 - a stdout", "2 - b stdout"}},
		{"no line feed at the end", "h1 o F a", []string{"1 - a stdout"}},
		{"an object that was cut", "h1 o F {\"level\":\"error\",\"msg\":\"no en\n", []string{`1 error {"level":"error","msg":"no en stdout`}},
		{"two objects on a line", `h1 o F {"msg":"a"}{"msg":"b"}` + "\n", []string{`1 - {"msg":"a"}{"msg":"b"} stdout`}},
		{"text in front and behind", "begun\nh1 o F a\nERROR b\n{\"msg\":\"c\"}\n", []string{"1 - begun -", "1 - a stdout", "1 error ERROR b -", "- - c -"}},
		{"times of its own", "h1 o F 2026-11-10 16:00:00 WARN a\nh2 o F {\"time\":\"2026-11-10T16:00:00Z\",\"msg\":\"b\"}\n",
			[]string{"1 warn 2026-11-10 16:00:00 WARN a stdout", "2 - b stdout"}},
		{"klog and colours", "h1 e F E1110 15:04:05.100000       1 main.go:5] no\nh2 o F \x1b[31mERROR\x1b[0m no\n",
			[]string{"1 error E1110 15:04:05.100000       1 main.go:5] no stderr", "2 error \x1b[31mERROR\x1b[0m no stdout"}},
		{"no head", "h1 stdout is open\nh2 o X a\nh3 o Full a\n2026-11-10 15:04:05.4 stdout F a\n",
			[]string{"1 - 2026-11-10T15:04:05.1Z stdout is open -", "2 - 2026-11-10T15:04:05.2Z stdout X a -", "3 - 2026-11-10T15:04:05.3Z stdout Full a -", "4 - 2026-11-10 15:04:05.4 stdout F a -"}},
		{"a time of tomorrow", "2026-11-22T15:04:05Z stdout F a\n", []string{"- - 2026-11-22T15:04:05Z stdout F a -"}},
	} {
		text := c.text
		for n := range 10 {
			head := fmt.Sprintf("2026-11-10T15:04:05.%dZ", n)
			text = strings.NewReplacer(fmt.Sprintf("h%d o ", n), head+" stdout ", fmt.Sprintf("h%d e ", n), head+" stderr ", fmt.Sprintf("h%d ", n), head+" ").Replace(text)
		}
		g := gather(t, "", text, arrival)
		var got []string
		for i, r := range records(t, g) {
			l := g.Req.Lines[i]
			stream := "-"
			for _, s := range []string{"stdout", "stderr"} {
				if bytes.Contains(g.Req.Data[l.Off:l.Off+l.Len], []byte(`"stream":"`+s+`"`)) {
					stream = s
				}
			}
			got = append(got, strings.TrimPrefix(r, "15:04:05.")+" "+stream)
		}
		if !slices.Equal(got, c.want) || len(g.Rejected) > 0 {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// An object keeps all its members: the runtime's time and stream come first.
func TestCRIObject(t *testing.T) {
	g := gather(t, "", `2026-11-10T15:04:05.123456789Z stderr F {"ts":"2026-11-10T15:04:05Z","stream":"orders","service":"shop","msg":"x","big":12345678901234567890,"list":[]}`, arrival)
	want := `{"ts":"2026-11-10T15:04:05.123456789Z","level":"","service":"web","msg":"x","stream":"stderr","ts.2":"2026-11-10T15:04:05Z","stream.2":"orders","service.name":"shop","big":12345678901234567890,"list":[]}` + "\n"
	if got := string(g.Req.Data); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// wrap puts the head of a container runtime in front of each line. Each third line is in parts.
func wrap(text, stream string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		head := fmt.Sprintf("2026-11-10T15:04:05.%06dZ %s ", i%1e6, stream)
		if n := len(line) / 2; i%3 == 1 {
			b.WriteString(head + "P " + line[:n] + "\n")
			line = line[n:]
		}
		b.WriteString(head + "F " + line + "\n")
	}
	return b.String()
}

// The lines that belong together do so behind heads, too: each trace of testdata is the same
// records with and without them.
func TestCRITraces(t *testing.T) {
	text, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	messages := func(text string) (all []string) {
		g := gather(t, "text/plain", text, arrival)
		for _, l := range g.Req.Lines {
			var fields struct{ Level, Msg string }
			if err := json.Unmarshal(g.Req.Data[l.Off:l.Off+l.Len], &fields); err != nil {
				t.Fatal(err)
			}
			all = append(all, fields.Level+" "+fields.Msg)
		}
		return all
	}
	plain, behind := messages(string(text)), messages(wrap(string(text), "stderr"))
	for i := range min(len(plain), len(behind)) {
		if plain[i] != behind[i] {
			t.Fatalf("record %d:\n got %q\nwant %q", i, behind[i], plain[i])
		}
	}
	if len(plain) != len(behind) || len(plain) < 50 {
		t.Errorf("%d records, %d without heads", len(behind), len(plain))
	}
}

// A body is read in windows. No line is lost or doubled at their bounds, no object or trace is cut,
// and a line that is too long is rejected.
func TestCRIWindows(t *testing.T) {
	const trace = "ERROR failed\njava.io.IOException: disk\n\tat a.B.c(B.java:7)\nCaused by: x\n\tat a.B.d(B.java:9)\n"
	for _, pad := range []int{0, 1, 7, 100} {
		var text strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&text, "{\"n\":%d,\"msg\":\"object %d %s\"}\nline %d\n%s", i, i, strings.Repeat("x", pad+i%40), i, trace)
		}
		out, errs := wrap(text.String(), "stdout"), wrap(text.String(), "stderr")
		var mixed strings.Builder
		a, b := strings.SplitAfter(out, "\n"), strings.SplitAfter(errs, "\n")
		for i := range a {
			mixed.WriteString(a[i] + b[i])
		}
		ends := 0
		g := body.NewGatherer()
		g.After = func(end int) bool {
			if end < ends {
				t.Fatalf("the end %d is behind %d", end, ends)
			}
			ends = end
			return true
		}
		g.Arrive(body.Arrival{Service: "web", Time: arrival.UnixNano(), Source: "test", Clock: "the clock"})
		form, err := body.ParseForm("text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := form.Decode([]byte(mixed.String()), g); err != nil {
			t.Fatal(err)
		}
		if g.Accepted != 2*3*3000 || len(g.Rejected) > 0 || ends != mixed.Len()-1 {
			t.Errorf("pad %d: %d records, %d rejected, to %d of %d", pad, g.Accepted, len(g.Rejected), ends, mixed.Len())
		}
		for i, r := range records(t, g) {
			if strings.Contains(r, "Caused by") != strings.Contains(r, "ERROR") {
				t.Fatalf("pad %d: record %d is %q", pad, i, r)
			}
		}
	}
	long := strings.Repeat("2026-11-10T15:04:05.1Z stdout P "+strings.Repeat("x", 16<<10)+"\n", 40)
	g := gather(t, "", "2026-11-10T15:04:05Z stdout F a\n"+long+"2026-11-10T15:04:05.1Z stdout F end\n2026-11-10T15:04:06Z stdout F b\n", arrival)
	if got := records(t, g); len(g.Rejected) > 0 || len(got) != 3 || len(got[1]) < 40*16<<10 {
		t.Errorf("%d records, %d rejected", len(got), len(g.Rejected))
	}
	g = gather(t, "", "2026-11-10T15:04:05Z stdout F a\n"+strings.Repeat(long, 2)+"2026-11-10T15:04:05.1Z stdout F end\n2026-11-10T15:04:06Z stdout F b\n", arrival)
	if got := records(t, g); len(g.Rejected) != 1 || !strings.Contains(g.Rejected[0].Reason, "1 MiB") || got[0] != "15:04:05 - a" || got[len(got)-1] != "15:04:06 - b" {
		t.Errorf("%d records, rejected: %v", len(got), len(g.Rejected))
	}
}

// The time that a body of such lines takes grows with its length alone.
func TestCRIIsLinear(t *testing.T) {
	for _, line := range []string{
		"2026-11-10T15:04:05.123456789Z stdout P x\n", "2026-11-10T15:04:05.123456789Z stderr F \tat a.B.c(B.java:7)\n",
		"2026-11-10T15:04:05.123456789Z stdout F {\"a\":\n", "2026-11-10T15:04:05.123456789Z stdout F panic: x\n",
	} {
		fine := func(small, large time.Duration) bool { return large <= 24*small+100*time.Millisecond }
		if small, large := costs(t, line, 4000, 8, fine); !fine(small, large) {
			t.Errorf("%q: %v for 8 times of %v", line, large, small)
		}
	}
}
