package stage_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/record/meaning"
)

// storedText is the canonical line of a record with a message.
func storedText(t testing.TB, msg string) []byte {
	t.Helper()
	p := meaning.NewReader()
	line, _, err := p.Begin(nil, meaning.Head{Msg: []byte(msg)}, &meaning.Defaults{Service: "web", Time: 1}).End()
	if err != nil {
		t.Skip(err)
	}
	return line
}

// FuzzParsers runs each parser on any message.
func FuzzParsers(f *testing.F) {
	for _, msg := range []string{`a=1 b="x\n" c`, `{"a":{"b":[1,{"c":"\u00e9"}]},"a":2,"_entry":"x"}`, "\x1b[31mred\x1b[0m", "GET /a took 5ms", `{"a":1`, `"`, `\`, "=", `a="\`} {
		f.Add(msg)
	}
	var all []*stage.Pipeline
	for _, parser := range []string{`json`, `json x="a.b[1].c", y="a[0]"`, `logfmt`, `logfmt --strict --keep-empty`, `unpack`, `decolorize`, `pattern "<a> <_>=<b>"`, `regexp "(?P<a>\\S+) (?P<b>.*)"`} {
		for _, v := range []stage.View{{}, {Lines: true}} {
			all = append(all, compile(f, v, `{} | `+parser+` | line_format "{{.a}}{{.b}}" | json`))
		}
	}
	after := map[string]*stage.Pipeline{"json": compile(f, stage.View{}, `{} | json`), "logfmt": compile(f, stage.View{}, `{} | logfmt`)}
	f.Fuzz(func(t *testing.T, msg string) {
		line := storedText(t, msg)
		for _, p := range all {
			checkEntry(t, p, line)
		}
		for _, field := range (stage.View{}).Fields(line) {
			if field.After == "" {
				continue
			}
			if got := extracted(after[field.After], field, line); got != field.Value {
				t.Errorf("%+v of %q: the parser has %q", field, msg, got)
			}
		}
	})
}

// extracted is the label that a parser makes for a field.
func extracted(p *stage.Pipeline, field stage.Field, line []byte) string {
	var e stage.Entry
	p.Entry(line, &e)
	return value(&e, field.Name)
}

func checkEntry(t *testing.T, p *stage.Pipeline, line []byte) {
	var e stage.Entry
	if kept := p.Entry(line, &e); kept != p.Keep(line) {
		t.Errorf("Entry %v, Keep %v", kept, !kept)
	}
	for _, labels := range [][]stage.Label{e.Stream, e.Metadata, e.Parsed} {
		for i, l := range labels {
			if l.Name == "" || strings.ContainsFunc(l.Name, func(r rune) bool { return r >= utf8.RuneSelf || r < '0' || r == '"' }) {
				t.Errorf("the name %q", l.Name)
			}
			if i > 0 && labels[i-1].Name >= l.Name {
				t.Errorf("%q after %q", l.Name, labels[i-1].Name)
			}
		}
	}
}

// FuzzLines runs queries on lines that no ingester wrote.
func FuzzLines(f *testing.F) {
	f.Add([]byte(strings.TrimSpace(string(stored(f, "web", request)))))
	f.Add([]byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"x","a":{"b":`))
	f.Add([]byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"x\","service":"web","msg":"`))
	f.Add([]byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"x"`))
	var all []*stage.Pipeline
	for _, v := range []stage.View{{}, {Lines: true, Labels: []string{"a"}}} {
		for _, query := range []string{
			`{a_b="1"} |= "x" | status>5 | json a="b.c[0]" | keep a`, `{} | json | logfmt | level_extracted="x"`, `{} | unpack | msg="x" | ts="x"`, `{} | line_format "{{.}}{{.level}}"`,
		} {
			all = append(all, compile(f, v, query))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range all {
			var e stage.Entry
			p.Keep(line)
			p.Entry(line, &e)
		}
		stage.View{}.Fields(line)
	})
}

// FuzzPaths reads a member by any path, and compares with encoding/json.
func FuzzPaths(f *testing.F) {
	f.Add(`a.b[1]`, `{"a":{"b":[1,"x"]}}`)
	f.Add(`["é"]`, `{"\u00e9":{"c":null}}`)
	f.Add(`[0]`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, path, msg string) {
		steps, err := logql.Path(path)
		var root any
		if err != nil || !utf8.ValidString(msg) || json.Unmarshal([]byte(msg), &root) != nil {
			return
		}
		if _, ok := root.(map[string]any); !ok || strings.Contains(msg, `\ud`) || strings.Contains(msg, `\uD`) {
			return // half a surrogate pair stays as written
		}
		p, err := (stage.View{}).Compile(&logql.LogExpr{Stages: []logql.Stage{&logql.JSON{Extract: []logql.Extract{{Name: "x", Path: path}}}}})
		if err != nil {
			t.Fatal(err)
		}
		var e stage.Entry
		p.Entry(storedText(t, msg), &e)
		got, want := value(&e, "x"), at(root, steps)
		if text, ok := want.(string); ok && got == text || !ok && want == nil && got == "" {
			return
		}
		var back any
		if _, ok := want.(string); ok || json.Unmarshal([]byte(got), &back) != nil || !reflect.DeepEqual(back, want) {
			if !twice(msg) {
				t.Errorf("%s of %s: %q, want %v", path, msg, got, want)
			}
		}
	})
}

// at is the value at a path.
func at(v any, path []logql.Step) any {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			v = nil
			if step.Index < 0 {
				v = in[step.Key]
			}
		case []any:
			v = nil
			if step.Index >= 0 && step.Index < len(in) {
				v = in[step.Index]
			}
		default:
			return nil
		}
	}
	return v
}

// twice reports whether an object may have a key twice: of these the first counts, and the last
// for encoding/json.
func twice(msg string) bool {
	d := json.NewDecoder(strings.NewReader(msg))
	seen := map[json.Token]bool{}
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if _, ok := token.(string); ok {
			if seen[token] {
				return true
			}
			seen[token] = true
		}
	}
}

// FuzzTemplates runs any template. It ends, and makes at most 1 MiB.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{"{{.a}}", "{{range 5}}x{{end}}", `{{printf "%s" .a | repeat 3}}`, `{{with $x := .b}}{{$x}}{{end}}`, `{{define "x"}}{{end}}`, "{{__line__ | trunc -3}}", `{{index . "a"}}`,
		`{{regexReplaceAll "(a)" .a "$1$1"}}`, `{{fromJson .b}}`, `{{slice .a 1 2}}`, `{{div 1 .a}}`, `{{round .n 400}}`, `{{alignLeft -5 .a}}`, `{{substr -1 -5 .a}}`, `{{trunc -9223372036854775808 .a}}`} {
		f.Add(text)
	}
	line := stored(f, "web", `{"msg":"hello","a":"aaa","b":"{\"c\":[1]}","n":"-1.5"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "now") {
			t.Skip("no time is the same twice")
		}
		tree := &logql.LogExpr{Stages: []logql.Stage{&logql.LineFormat{Template: text}}}
		p, err := (stage.View{}).Compile(tree)
		if err != nil {
			return
		}
		start := time.Now()
		var one, two stage.Entry
		if !p.Entry(line, &one) || !p.Entry(line, &two) {
			t.Fatal("dropped")
		}
		if string(one.Line) != string(two.Line) || labels(one.Parsed) != labels(two.Parsed) || len(one.Line) > 1<<20 || time.Since(start) > 5*time.Second {
			t.Errorf("%q: %.100q and %.100q in %v", text, one.Line, two.Line, time.Since(start))
		}
	})
}

// FuzzPatterns compares a pattern of a filter with an expression that is the same.
func FuzzPatterns(f *testing.F) {
	f.Add("GET <_> took <_>ms", "GET /a took 5ms")
	f.Add("<_>ab", "abab")
	f.Add("a<_>", "a")
	f.Fuzz(func(t *testing.T, pattern, msg string) {
		tree, err := logql.Parse("{} |> " + quoted(pattern))
		if err != nil || strings.ContainsAny(msg, "\x00") {
			return
		}
		p, err := (stage.View{}).Compile(tree.(*logql.LogExpr))
		if err != nil {
			t.Fatal(err)
		}
		line := storedText(t, msg)
		var e stage.Entry
		compile(t, stage.View{}, "{}").Entry(line, &e)
		if got, want := p.Keep(line), fits(logql.Parts(pattern), string(e.Line)); got != want {
			t.Errorf("%q fits %q: %v, want %v", e.Line, pattern, got, want)
		}
	})
}

// fits follows the rule of patterns: a place ends at the first text that follows it, but has a
// byte at least.
func fits(parts []logql.Part, line string) bool {
	for i, part := range parts {
		switch {
		case part.Name == "" && i == 0:
			if !strings.HasPrefix(line, part.Text) {
				return false
			}
			line = line[len(part.Text):]
		case part.Name == "":
			at := -1
			for n := 1; n <= len(line); n++ {
				if strings.HasPrefix(line[n:], part.Text) {
					at = n
					break
				}
			}
			if at < 0 {
				return false
			}
			line = line[at+len(part.Text):]
		case i == len(parts)-1:
			return line != ""
		}
	}
	return line == ""
}

func quoted(text string) string { return (&logql.Pattern{Text: text}).String()[len("| pattern "):] }
