package stage_test

import (
	"strings"
	"testing"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/record/meaning"
)

// stored is the canonical line of a JSON object.
func stored(t testing.TB, service, object string) []byte {
	t.Helper()
	p := meaning.NewReader()
	if _, err := p.Scan([]byte(object)); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	line, _ := p.AppendLine(nil, &meaning.Defaults{Service: service, Time: 1795323600000000000})
	return line
}

func parse(t testing.TB, text string) *logql.LogExpr {
	t.Helper()
	e, err := logql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e.(*logql.LogExpr)
}

func compile(t testing.TB, v stage.View, text string) *stage.Pipeline {
	t.Helper()
	p, err := v.Compile(parse(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// show is the entry of a record for a client: the line, and the labels of each kind.
func show(t testing.TB, v stage.View, query string, line []byte) string {
	t.Helper()
	p := compile(t, v, query)
	var e stage.Entry
	kept := p.Entry(line, &e)
	if keep := p.Keep(line); keep != kept {
		t.Errorf("%s of %s: Keep %v, Entry %v", query, line, keep, kept)
	}
	if !kept {
		return "-"
	}
	return strings.Join([]string{string(e.Line), labels(e.Stream), labels(e.Metadata), labels(e.Parsed)}, " | ")
}

func labels(all []stage.Label) string {
	var parts []string
	for _, l := range all {
		parts = append(parts, l.Name+"="+l.Value)
	}
	return strings.Join(parts, " ")
}

const request = `{"ts":"2026-11-20T15:04:05Z","level":"error","msg":"GET /basket","status":502,"http":{"path":"/a","ok":true,"2xx":null},` +
	`"http.path":"/b","tags":["x","y"],"user.id":"u\"1","gone":null,"9x":1}`

func TestViews(t *testing.T) {
	line := stored(t, "web", request)
	for _, c := range []struct{ query, message, lines string }{
		{`{}`, `GET /basket | service_name=web | _9x=1 detected_level=error http_ok=true http_path=/a status=502 tags=["x","y"] user_id=u"1 | `,
			strings.TrimSpace(string(line)) + ` | service_name=web | detected_level=error | `},
	} {
		if got := show(t, stage.View{}, c.query, line); got != c.message {
			t.Errorf("%s: %s, want %s", c.query, got, c.message)
		}
		if got := show(t, stage.View{Lines: true}, c.query, line); got != c.lines {
			t.Errorf("%s: %s, want %s", c.query, got, c.lines)
		}
	}
}

func TestKept(t *testing.T) {
	line := stored(t, "web", request)
	for query, want := range map[string]bool{
		`{service_name="web"}`: true, `{service="web"}`: true, `{service_name="we"}`: false, `{service_name=~"we"}`: false, `{service_name=~"we.*"}`: true,
		`{service_name!="web"}`: false, `{level="error"}`: true, `{detected_level="error"}`: true, `{level=~"warn|error"}`: true, `{level!="error"}`: false,
		`{status="502"}`: true, `{status="50"}`: false, `{none=""}`: true, `{none!=""}`: false, `{http_path="/a"}`: true, `{http_path="/b"}`: false,
		`{http_ok="true"}`: true, `{http=""}`: true, `{_9x="1"}`: true, `{user_id="u\"1"}`: true, `{gone=""}`: true, `{tags=~".*x.*"}`: true,
		`{} |= "GET"`: true, `{} |= "get"`: false, `{} |~ "(?i)get"`: true, `{} != "GET"`: false, `{} |= "nothing" or "basket"`: true, `{} != "nothing" or "basket"`: false,
		`{} |> "GET <_>"`: true, `{} |> "GET <_>t"`: true, `{} |> "GET"`: false, `{} !> "GET <_>"`: false, `{} |> "<_>basket"`: true, `{} |> "<_>GET"`: false,
		`{} | status > 501`: true, `{} | status >= 503`: false, `{} | none > 5`: false, `{} | http_path > 5`: true, `{} | msg="GET /basket"`: true,
		`{} | level="error" or status="1"`: true, `{} | level="info" and status="502"`: false, `{} | drop status | status="502"`: false,
		`{} | keep status | status="502"`: true, `{} | keep http_path | status="502"`: false, `{} | drop level | detected_level="error"`: false,
	} {
		if got := compile(t, stage.View{}, query).Keep(line); got != want {
			t.Errorf("%s: %v", query, got)
		}
	}
}
