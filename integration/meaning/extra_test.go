package meaning_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// each has every known name with values of each part of a head, and with others around it.
func each(names []string) (all []string) {
	for i, name := range names {
		other := names[(i*7+3)%len(names)]
		all = append(all,
			fmt.Sprintf(`{%q:"2026-11-24T10:00:06.257Z","text":"a b"}`, name),
			fmt.Sprintf(`{%q:1795514406257,%q:"warn"}`, name, other),
			fmt.Sprintf(`{"n":1,%q:"ERROR","a":{%q:"fatal",%q:"2026-11-24 10:00:07"}}`, name, name, other),
			fmt.Sprintf(`{%q:%d,"message":"x"}`, name, []int{0, 1, 3, 4, 7, 17, 30, 40, 50, 500, 40000}[i%11]),
			fmt.Sprintf(`{"%s":"Shop Cart","%s":{"%s":"INFO","name":"web","value":"x"}}`, strings.ToUpper(name), other, name),
			fmt.Sprintf(`{"%s.%s":"error","%s":"10:00:08","%s":["2026-11-24"]}`, name, other, name, other),
		)
	}
	return all
}

// eachWord has every word where a level may stand.
func eachWord(names []string) (all []string) {
	words := slices.Concat(levels(), words(), names)
	for i, word := range words {
		switch i % 3 {
		case 1:
			word = strings.ToUpper(word)
		case 2:
			word = strings.ToLower(word)
		}
		all = append(all,
			fmt.Sprintf(`{"level":%q,"msg":"x"}`, word), fmt.Sprintf(`{"severity":%q,"type":"y","log":"z"}`, word),
			word+": x", "["+word+"] x", "2026-11-24 10:00:06 "+word+" x", "2026-11-24T10:00:06Z ["+word+"] a.b - x",
			"level="+word+" msg=x", "10:00:06.257 |"+word+"| x", "<"+word+"> x", "2026-11-24 10:00:06,257 - main - "+word+" - x",
		)
	}
	return all
}

// eachPhrase has every phrase that readers look for in texts: at the beginning, behind a time and in a
// message, before and behind the calls of a trace. Forms have signs for digits and names, which
// become some.
func eachPhrase(phrases []string) (all []string) {
	signs := strings.NewReplacer("9", "7", "&", "12", "@", "15:04:05.257", "^", "E", "~", "cart", "!", "web-6d5f7c-x2x9z", "_", " ", "*",
		"abc", ">", "")
	calls := []string{
		"\tat a.B.c(B.java:7)\n\tat a.B.d(B.java:8)", "    at f (/x.js:3:9)\n    at Object.<anonymous> (/x.js:7:1)",
		"  File \"x.py\", line 3, in f\n    g()\nValueError: x",
		"#0 /y.php(7): f()\n#1 {main}", "\tfrom a.rb:7:in 'g'\n\tfrom a.rb:9:in '<main>'",
		"goroutine 1 [running]:\nmain.f()\n\t/a.go:7 +0x1",
		"   at A.B.C() in /x.cs:line 7\n   at A.B.D()", "#0      f (file:///x.dart:3:5)\n#1      main (file:///x.dart:7:3)",
		"    #0 0x1 in f x.c:3", "   0: f\n             at ./src/main.rs:3",
	}
	for i, p := range phrases {
		call, fit := calls[i%len(calls)], signs.Replace(p)
		all = append(all,
			p+"x: y", p+"\n"+call+"\nnext", p+"a.b.CError: z\n"+calls[(i+1)%len(calls)], "2026-11-24 10:00:06 ERROR "+p+" x\n"+call,
			"java.lang.Error: x\n"+call+"\n"+p+"b.DError: y\n"+call+"\n2026-11-24 10:00:07 INFO next", fit+" x",
			fit+"2026-11-24 10:00:06 WARN x\n"+fit+"y",
			fmt.Sprintf(`{"log":%q,"stream":"stderr"}`, p+" x"), "x "+p,
			"System.Exception: x\n   at A.B.C() in /x.cs:line 7\n   at "+p+"(Closure , Object )\n    at f ("+p+")\n"+p+"\nnext",
			"[Tue Nov 24 10:00:06.257312 2026] "+p+"warn] x",
		)
	}
	return all
}

// extra are inputs for rules that the other inputs do not meet: zones and limits, beside the rare forms
// of extra.txt.
func extra() (all []string) {
	for _, zone := range strings.Fields("UTC GMT WET CET WEST CEST EET EEST MSK JST KST AEST AEDT NZST NZDT EDT EST MDT PDT CST PST BST " +
		"IST AKST HST XYZ Europe/Berlin Asia/Tokyo +05:45 -03:30:15 +0530 -08 GMT+2 UTC-7 Z z") {
		all = append(all, "2026-11-24 10:00:06 "+zone+" ERROR x", `{"time":"2026-11-24 10:00:06 `+zone+`","level":"info"}`,
			"Tue Nov 24 10:00:06 "+zone+" 2026 x",
			"date=2026-11-24 time=10:00:06 tz=\""+zone+"\" level=\"notice\" x", "<11>Nov 24 10:00:06.257 "+zone+": %SYS-5-X: y",
			"2026-11-24T10:00:06"+zone+" x")
	}
	for n := range 40 {
		all = append(all, fmt.Sprintf("2026-11-24 10:00:06 Q%c%c WARN unknown zone", 'A'+n%26, 'A'+n/26))
	}
	many := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	all = append(all,
		"{"+many(255, `"k%d":1,`)+`"level":"error"}`,
		"{"+many(256, `"k%d":1,`)+`"level":"error"}`,
		"{"+many(40, `"k":%d,`)+`"msg":"x"}`,
		"{"+many(60, `"k%d":1,`)+`"k7":2,"level":"warn"}`,
		strings.Repeat(`{"a":`, 63)+"1"+strings.Repeat("}", 63),
		strings.Repeat(`{"a":`, 66)+"1"+strings.Repeat("}", 66),
		`{"a":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`}`,
		`{"msg":"`+strings.Repeat("x", 70_000)+`","level":"error"}`,
		"ERROR "+strings.Repeat("y ", 40_000),
		`{"a":"`+strings.Repeat("x", 1<<20)+`"}`,
		strings.Repeat("z", 1<<20+7),
		"panic: x\n"+many(300, "goroutine %d [running]:\nmain.f()\n\t/a.go:7 +0x1\n"),
		"java.lang.Error: x\n"+many(1500, "\tat a.B.c(B.java:%d)\n"),
		"Traceback (most recent call last):\n"+many(900, "  File \"x.py\", line %d, in f\n    g()\n")+"ValueError: x",
		"java.lang.Error: "+strings.Repeat("x", 300)+"\n"+many(40, "\tat a.B.c(B.java:%d)\n\n"),
	)
	for _, f := range []float64{0, 1e-7, 1795514406.257, 1e21, math.Pi, -5e-324} {
		all = append(all, fmt.Sprintf(`{"time":%v,"v":%g,"level":%v}`, f, f, f))
	}
	return all
}
