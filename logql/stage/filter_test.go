package stage_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/logql/stage"
)

func TestLineFilters(t *testing.T) {
	for _, c := range []struct {
		msg, filter string
		want        bool
	}{
		{"a b", "|= `a`", true}, {"a b", "|= `A`", false}, {"a b", "|= ``", true}, {"", "|= ``", true}, {"a b", "!= ``", false},
		{"a b", "|= `x` or `b`", true}, {"a b", "|= `x` or `y`", false}, {"a b", "!= `x` or `y`", true}, {"a b", "!= `x` or `b`", false},
		{"a b", "|= `a` |= `b`", true}, {"a b", "|= `a` |= `x`", false}, {"a b", "|= `a` != `b`", false},
		{"say \"hi\"\tand\\", "|= `\"hi\"`", true}, {"say \"hi\"\tand\\", `|= "\tand\\"`, true}, {"a\\b", "|= `a\\b`", true},
		{"x abc y", "|~ `a.c`", true}, {"x abc y", "|~ `^a`", false}, {"a\nb", "|~ `a.b`", true}, {"a\nb", "|~ `^b`", false}, {"a\nb", "|~ `(?m)^b`", true},
		{"ABC", "|~ `(?i)abc`", true}, {"AKS", "|~ `(?i)aks`", true}, {"a\u212as", "|~ `(?i)aks`", true}, {"ÄB", "|~ `(?i)äb`", true}, {"ab", "!~ `(?i)AB`", false},
		{"one", "|~ `one|two`", true}, {"three", "|~ `one|two`", false}, {"ab12", "|~ `[a-z]+\\d{2}`", true}, {"x", "|~ `x` or `y`", true}, {"x", "!~ `y` or `x`", false},
		{"GET /a took 5ms", "|> `GET <_> took <_>ms`", true}, {"GET /a took 5ms", "|> `GET <_> took <_>`", true}, {"GET /a took 5ms", "|> `GET <_>`", true},
		{"GET /a took 5ms", "|> `<_> took`", false}, {"GET /a took 5ms", "|> `took <_>`", false}, {"GET /a took 5ms", "|> `<_>`", true}, {"", "|> `<_>`", false},
		{"GET  took 5ms", "|> `GET <_> took <_>ms`", false}, {"aab", "|> `<_>ab`", true}, {"ab", "|> `<_>ab`", false}, {"axbxb", "|> `a<_>b`", false},
		{"axb", "|> `a<_>b`", true}, {"ab", "|> `a<_>b`", false}, {"abc", "|> `abc`", true}, {"abcd", "|> `abc`", false}, {"x<y>", "|> `x<1>` or `x<_>`", true},
		{"PUT x took 1", "|> `GET <_> took <_>` or `PUT <_> took <_>`", true}, {"PUT x took 1", "!> `GET <_>` or `PUT <_>`", false}, {"PUT x", "!> `GET <_>`", true},
		{"from 10.1.2.3:80", "|= ip(`10.0.0.0/8`)", true}, {"from 11.1.2.3", "|= ip(`10.0.0.0/8`)", false}, {"from 11.1.2.3", "!= ip(`10.0.0.0/8`)", true},
		{"10.0.0.7.", "|= ip(`10.0.0.5-10.0.0.9`)", true}, {"10.0.0.10", "|= ip(`10.0.0.5-10.0.0.9`)", false}, {"110.0.0.7", "|= ip(`10.0.0.7`)", false},
		{"v6 [2001:db8::1]:443", "|= ip(`2001:db8::/32`)", true}, {"v6 2001:db9::1", "|= ip(`2001:db8::/32`)", false}, {"::1", "|= ip(`::1`)", true},
		{"12:30:45 10.0.0.1", "|= ip(`10.0.0.1`)", true}, {"x", "|= ip(`10.0.0.1`) or `x`", true}, {"fe80::1%eth0", "|= ip(`fe80::1`)", true},
	} {
		line := stored(t, "web", fmt.Sprintf(`{"msg":%q}`, c.msg))
		if got := compile(t, stage.View{}, "{} "+c.filter).Keep(line); got != c.want {
			t.Errorf("%s of %q: %v", c.filter, c.msg, got)
		}
	}
}

// TestEmptyMessages: their line is the other fields.
func TestEmptyMessages(t *testing.T) {
	line := stored(t, "web", `{"status":502,"a":{"b":"x y"}}`)
	if got := show(t, stage.View{}, `{} |= "{\"status\":502"`, line); got != `{"status":502,"a":{"b":"x y"}} | service_name=web | a_b=x y detected_level=unknown status=502 | ` {
		t.Error(got)
	}
	if got := show(t, stage.View{}, `{}`, stored(t, "web", `{}`)); got != ` | service_name=web | detected_level=unknown | ` {
		t.Error(got)
	}
	for filter, want := range map[string]bool{"|~ `^{\"status`": true, "|= `\"}}`": true, "|= `web`": false, "|> `{<_>}}`": true} {
		if got := compile(t, stage.View{}, "{} "+filter).Keep(line); got != want {
			t.Errorf("%s: %v", filter, got)
		}
	}
}

func TestLabelFilters(t *testing.T) {
	line := stored(t, "web", `{"msg":"hi","level":"warning","status":502,"took":"1.5s","neg":"-90ms","size":"5KB","k":"1KiB","n":"abc","e":"","f":0.25,"ip":"10.1.2.3","nan":"NaN","x.y":1,"x_y":2,"x":{"y":3}}`)
	failed := " | __error__=LabelFilterErr __error_details__="
	for filter, want := range map[string]string{
		`status="502"`: "hi", `status!="502"`: "-", `status=~"5.."`: "hi", `status=~"50"`: "-", `status!~"5.*"`: "-", `status=~"5|502"`: "hi",
		`none=""`: "hi", `none!=""`: "-", `none=~".*"`: "hi", `none=~".+"`: "-", `none!="x"`: "hi", `e=""`: "hi", `e!=""`: "-",
		`status=502`: "hi", `status==502`: "hi", `status!=502`: "-", `status>502`: "-", `status>=502`: "hi", `status<502`: "-", `status<=502`: "hi", `f<0.5`: "hi", `f>-1`: "hi",
		`none>1`: "-", `none!=1`: "-", `n>1`: "hi" + failed + `"abc" is no number`, `n!=1`: "hi" + failed + `"abc" is no number`, `e>1`: "hi" + failed + `"" is no number`,
		`took>1s`: "hi", `took>1500ms`: "-", `took==1.5s`: "hi", `neg<0s`: "hi", `status>1s`: "hi" + failed + `"502" is no duration such as 1.5s`,
		`size>4KB`: "hi", `size==5000B`: "hi", `size>5KB`: "-", `k==1KiB`: "hi", `k>1KB`: "hi", `n>1KB`: "hi" + failed + `"abc" is no size such as 5KB or 3MiB`,
		`nan>1`: "-", `nan<=1`: "-",
		`level="warn"`: "hi", `detected_level="warn"`: "hi", `level="warning"`: "-", `service_name="web"`: "hi", `service="api"`: "-", `x_y="1"`: "hi", `x_y="2"`: "-", `x_y=1`: "hi",
		`ip=ip("10.0.0.0/8")`: "hi", `ip!=ip("10.0.0.0/8")`: "-", `none=ip("10.0.0.0/8")`: "-", `none!=ip("10.0.0.0/8")`: "-", `ip=ip("10.1.2.4")`: "-",
		`status="1" or took>1s`: "hi", `status="502" and took>2s`: "-", `status="502", took>1s`: "hi", `status="502" took>2s`: "-", `status="1" or level="warn" and e="x"`: "-",
		`(status="1" or level="warn") and e=""`: "hi",
		`n>1 | status>900`:                      "hi" + failed + `"abc" is no number`, // only conditions on texts drop a line that failed
		`n>1 | status="900"`:                    "-",
		`n>1 | __error__=""`:                    "-",
		`n>1 | __error__!=""`:                   "hi" + failed + `"abc" is no number`,
		`n>1 | __error__="LabelFilterErr"`:      "hi" + failed + `"abc" is no number`,
		`__error__=""`:                          "hi",
		`msg="hi"`:                              "hi",
		`ts=~"20.*Z"`:                           "hi",
	} {
		for _, v := range []stage.View{{}, {Lines: true}} {
			got := parsed(t, v, "{} | "+filter, line)
			if v.Lines && got != "-" {
				got = strings.Replace(got, strings.TrimSpace(string(line)), "hi", 1)
			}
			if got = strings.TrimSuffix(got, " | "); got != want {
				t.Errorf("%s, %v: %s, want %s", filter, v, got, want)
			}
		}
	}
}

func TestDropKeep(t *testing.T) {
	line := stored(t, "web", `{"msg":"a=1 b=2","level":"error","status":502,"ns":"prod","user":"u"}`)
	for query, want := range map[string]string{
		`{} | drop status`:                     `service_name=web | detected_level=error ns=prod user=u | `,
		`{} | drop status, ns`:                 `service_name=web | detected_level=error user=u | `,
		`{} | drop status="502", ns="x"`:       `service_name=web | detected_level=error ns=prod user=u | `,
		`{} | drop ns=~"p.*"`:                  `service_name=web | detected_level=error status=502 user=u | `,
		`{} | drop service_name, level`:        ` | ns=prod status=502 user=u | `,
		`{} | logfmt | drop a`:                 `service_name=web | detected_level=error ns=prod status=502 user=u | b=2`,
		`{} | logfmt | drop status, b="3"`:     `service_name=web | detected_level=error ns=prod user=u | a=1 b=2`,
		`{} | drop a | logfmt`:                 `service_name=web | detected_level=error ns=prod status=502 user=u | a=1 b=2`,
		`{} | keep status`:                     ` | status=502 | `,
		`{} | keep status, service_name`:       `service_name=web | status=502 | `,
		`{} | keep level`:                      ` | detected_level=error | `,
		`{} | keep status="1", ns="prod"`:      ` | ns=prod | `,
		`{} | logfmt | keep a, ns`:             ` | ns=prod | a=1`,
		`{} | logfmt | keep a | keep b`:        ` |  | `,
		`{} | keep status | logfmt`:            ` | status=502 | a=1 b=2`,
		`{} | keep status | ns=""`:             ` | status=502 | `,
		`{} | keep status | ns="prod"`:         `-`,
		`{} | keep none`:                       ` |  | `,
		`{} | user>1 | drop __error__`:         `service_name=web | detected_level=error ns=prod status=502 user=u | `,
		`{} | user>1 | drop __error_details__`: `service_name=web | detected_level=error ns=prod status=502 user=u | __error__=LabelFilterErr`,
		`{} | user>1 | keep __error__`:         ` |  | __error__=LabelFilterErr`,
		`{} | user>1 | drop __error__="other"`: `service_name=web | detected_level=error ns=prod status=502 user=u | __error__=LabelFilterErr __error_details__="u" is no number`,
	} {
		got := show(t, stage.View{}, query, line)
		if got = strings.TrimPrefix(got, "a=1 b=2 | "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
}

// TestLabels: fields may be labels of the stream.
func TestLabels(t *testing.T) {
	line := stored(t, "web", `{"msg":"{\"ns\":\"inner\"}","k8s":{"ns":"prod"},"service.name":"api","detected_level":"x"}`)
	v := stage.View{Labels: []string{"k8s_ns", "none"}}
	if got := show(t, v, `{k8s_ns="prod"} | json`, line); got != `{"ns":"inner"} | k8s_ns=prod service_name=web | detected_level=unknown detected_level_extracted=x service_name_extracted=api | ns=inner` {
		t.Error(got)
	}
	v = stage.View{Labels: []string{"ns"}}
	other := stored(t, "web", `{"msg":"{\"ns\":\"inner\"}","ns":"prod"}`)
	if got := show(t, v, `{ns="prod"} | json | ns="prod" | ns_extracted="inner"`, other); got != `{"ns":"inner"} | ns=prod service_name=web | detected_level=unknown | ns_extracted=inner` {
		t.Error(got)
	}
	if got := show(t, v, `{} | json`, line); got != `{"ns":"inner"} | service_name=web | detected_level=unknown detected_level_extracted=x k8s_ns=prod service_name_extracted=api | ns=inner` {
		t.Error(got)
	}
	if got := show(t, v, `{} | service_name_extracted="api" | detected_level_extracted="x"`, line); got == "-" {
		t.Error("names with the suffix are not found")
	}
}

// TestManyFields: a record of thousands of fields costs about as much as its length.
func TestManyFields(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"msg":"x"`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	long := strings.Repeat("p", 1500)
	fmt.Fprintf(&b, `,%q:1,"deep":{%q:{"x":1}}}`, long, long)
	line := stored(t, "web", b.String())
	var e stage.Entry
	if !compile(t, stage.View{}, `{} | k19999="19999"`).Entry(line, &e) || len(e.Metadata) != 20_001 {
		t.Errorf("%d fields", len(e.Metadata))
	}
	if !compile(t, stage.View{Lines: true}, `{} | json | k19999="19999"`).Entry(line, &e) || len(e.Parsed) != 20_004 {
		t.Errorf("%d labels", len(e.Parsed))
	}
}

// TestAllocations ensures that decisions on plain fields and lines need no memory of their own.
func TestAllocations(t *testing.T) {
	testkit.FullOnly(t, "the race detector empties pools")
	lines, _ := benchLines(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties pools
	for _, query := range []string{
		"{} |= `basket`", "{} |= `user said \"ok\"`", "{} |~ `basket/7[0-9]`", "{} |~ `(?i)BASKET/7`", "{} |> `GET <_> took <_> ms<_>`", `{service_name=~"w.*", level=~"err.*"}`,
		`{} | status="500" or http_path="/basket/7"`, `{} | status>=500 | user_id=~"u7.*"`, `{} | json | a="x"`, `{} | logfmt | a="x"`, `{} | drop status | status="500"`,
		`{} | line_format "{{.status}}" |= "500"`, `{} | decolorize |= "x"`, `{} | keep user_id | user_id="u7"`,
	} {
		for _, v := range []stage.View{{}, {Lines: true}} {
			p := compile(t, v, query)
			i := 0
			if n := testing.AllocsPerRun(500, func() { p.Keep(lines[i%len(lines)]); i++ }); n > 0 {
				t.Errorf("%s, %v: %v allocations a record", query, v, n)
			}
		}
	}
}
