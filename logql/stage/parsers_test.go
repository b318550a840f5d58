package stage_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/logql/stage"
)

// parsed is the result of stages for a record: its line and the labels that they made.
func parsed(t testing.TB, v stage.View, query string, line []byte) string {
	t.Helper()
	shown := show(t, v, query, line)
	if shown == "-" {
		return shown
	}
	parts := strings.Split(shown, " | ")
	return parts[0] + " | " + parts[3]
}

func TestParsers(t *testing.T) {
	for _, c := range []struct{ query, object, want string }{
		// json
		{`{} | json`, `{"msg":"{\"a\":1,\"b\":{\"c\":\"x\",\"d\":[1]},\"a\":2,\"n\":null,\"e-f\":true,\"1\":\"y\",\"\":3,\"service_name\":\"z\"}"}`,
			`{"a":1,"b":{"c":"x","d":[1]},"a":2,"n":null,"e-f":true,"1":"y","":3,"service_name":"z"} | _1=y a=1 b_c=x e_f=true service_name_extracted=z`},
		{`{} | json`, `{"msg":" { \"a\" : \"x\\u0041\\/\" } "}`, ` { "a" : "x\u0041\/" }  | a=xA/`},
		{`{} | json`, `{"msg":"{\"a\":1} x"}`, `{"a":1} x | `},
		{`{} | json`, `{"msg":"{\"a\":1"}`, `{"a":1 | `},
		{`{} | json`, `{"msg":"[1]","status":5}`, `[1] | `},
		{`{} | json`, `{"msg":"","status":5}`, `{"status":5} | status=5`},
		{`{} | json a="b.c", d="b.list[1]", e="b[\"x y\"]", f="b", g="none", h="n"`, `{"msg":"{\"b\":{\"c\":1.50,\"list\":[1,\"two\"],\"x y\":true},\"n\":null}"}`,
			`{"b":{"c":1.50,"list":[1,"two"],"x y":true},"n":null} | a=1.50 d=two e=true f={"c":1.50,"list":[1,"two"],"x y":true} g= h=`},
		{`{} | json a="http.status", b="tags"`, `{"msg":"hello","http":{"status":502},"tags":["x","y"]}`, `hello | a=502 b=["x","y"]`},
		{`{} | json k="[\"a\"][\"b\"]" | line_format "{{.k}}"`, `{"msg":"{\"a\":{\"b\":\"x\"}}"}`, `x | k=x`},
		// logfmt
		{`{} | logfmt`, `{"msg":"a=1 b=\"x y\" c d= e=\"\" a=2 =x f=\"q\\\"r\\n\" g=u?v=w 1x=y service_name=s"}`,
			"a=1 b=\"x y\" c d= e=\"\" a=2 =x f=\"q\\\"r\\n\" g=u?v=w 1x=y service_name=s | _1x=y a=1 b=x y f=q\"r\n g=u?v=w service_name_extracted=s"},
		{`{} | logfmt --keep-empty`, `{"msg":"a=1 c d= e=\"\""}`, `a=1 c d= e="" | a=1 c= d= e=`},
		{`{} | logfmt --strict`, `{"msg":"a=1 b=\"x c=2"}`, `a=1 b="x c=2 | __error__=LogfmtParserErr __error_details__=no pair at byte 4 a=1`},
		{`{} | logfmt`, `{"msg":"a=1 b=\"x c=2"}`, `a=1 b="x c=2 | a=1 c=2`},
		{`{} | logfmt x="a", y="none", service_name="a"`, `{"msg":"a=1 b=2"}`, `a=1 b=2 | service_name_extracted=1 x=1`},
		{`{} | logfmt --keep-empty x="a", y="none"`, `{"msg":"a=1 b=2"}`, `a=1 b=2 | x=1 y=`},
		{`{} | json | logfmt`, `{"msg":"a=1"}`, `a=1 | a=1`},
		// regexp and pattern
		{`{} | regexp "(?P<method>\\w+) (?P<path>\\S+)(?P<q> x)?"`, `{"msg":"GET /a b"}`, `GET /a b | method=GET path=/a q=`},
		{`{} | regexp "(?P<method>\\d+)"`, `{"msg":"GET /a b"}`, `GET /a b | `},
		{`{} | pattern "<m> <p> took <ms>ms"`, `{"msg":"GET /a took 5ms"}`, `GET /a took 5ms | m=GET ms=5 p=/a`},
		{`{} | pattern "<_> <p> took <ms>ms"`, `{"msg":"GET /a lasted"}`, `GET /a lasted | p=/a lasted`},
		{`{} | pattern "GET <p> <_>"`, `{"msg":"PUT /a b"}`, `PUT /a b | `},
		{`{} | pattern "<service_name>"`, `{"msg":"x"}`, `x | service_name_extracted=x`},
		// unpack
		{`{} | unpack`, `{"msg":"{\"_entry\":\"line\",\"pod\":\"p\",\"n\":1}"}`, `line | pod=p`},
		{`{} | unpack |= "line"`, `{"msg":"{\"_entry\":\"line\",\"pod\":\"p\"}"}`, `line | pod=p`},
		{`{} | unpack`, `{"msg":"x"}`, `x | __error__=JSONParserErr __error_details__=the line is no JSON object with packed labels`},
		// decolorize
		{`{} | decolorize`, `{"msg":"\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x\u001b(By\u001b"}`, `red xy | `},
		// first value wins
		{`{} | logfmt | regexp "(?P<a>b)"`, `{"msg":"a=1 b=2"}`, `a=1 b=2 | a=1 b=2`},
		{`{} | label_format a="x" | logfmt`, `{"msg":"a=1"}`, `a=1 | a=1`},
	} {
		if got := parsed(t, stage.View{}, c.query, stored(t, "web", c.object)); got != c.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", c.query, c.object, got, c.want)
		}
	}
}

func TestParsersOfLines(t *testing.T) {
	object := `{"ts":"2026-11-20T15:04:05Z","level":"error","msg":"hi","a":{"b":1},"list":[1],"none":null,"service.name":"api"}`
	line := stored(t, "web", object)
	all := ` | a_b=1 level=error msg=hi service=web service_name_extracted=api ts=2026-11-20T15:04:05.000000000Z`
	raw := strings.TrimSpace(string(line))
	for query, want := range map[string]string{
		`{} | json`:                                        raw + all,
		`{} | json | level="error" | a_b=1`:                raw + all,
		`{} | json x="a.b", y="list", z="msg"`:             raw + ` | x=1 y=[1] z=hi`,
		`{} | line_format "x" | json`:                      `x | __error__=JSONParserErr __error_details__=the line is no JSON object`,
		`{} | json m="msg" | line_format "{{.m}}!"`:        `hi! | m=hi`,
		`{} | line_format "{{.msg}}" | json`:               `hi | __error__=JSONParserErr __error_details__=the line is no JSON object`,
		`{} |= "\"level\":\"error\""`:                      raw + ` | `,
		`{} |= "2026-11-20" | a_b="1"`:                     raw + ` | `,
		`{} | json | drop level | level="error"`:           `-`,
		`{} | json | drop level | detected_level=~"error"`: raw + ` | a_b=1 msg=hi service=web service_name_extracted=api ts=2026-11-20T15:04:05.000000000Z`,
	} {
		if got := parsed(t, stage.View{Lines: true}, query, line); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
}

// TestDeepMessages: a message costs as much as its length, however deep it is.
func TestDeepMessages(t *testing.T) {
	const deep = 500
	long := `"` + strings.Repeat("x", 500_000) + `"`
	msg := strings.Repeat(`{"a":`, deep) + `1` + strings.Repeat(`,"b":[],"c":"y"}`, deep-1) + `,"long":` + long + `}`
	line := storedText(t, msg)
	start := time.Now()
	var e stage.Entry
	p := compile(t, stage.View{}, `{} | json`)
	for range 20 {
		p.Entry(line, &e)
		stage.View{}.Fields(line)
	}
	if len(e.Parsed) != deep+1 {
		t.Errorf("%d labels", len(e.Parsed))
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("20 records took %v", took)
	}
	endless := storedText(t, strings.Repeat(`{"a":`, 9_000)+"1"+strings.Repeat("}", 9_000))
	p.Entry(endless, &e)
	stage.View{}.Fields(endless)
}
