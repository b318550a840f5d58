package stage_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/grep"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/record"
	"blobtail/record/meaning"
)

// The generated records and queries have few names and texts, so that they often meet.
var (
	someNames  = []string{"a", "b", "a_b", "level", "detected_level", "service_name", "service", "msg", "n", "service_name_extracted", "level_extracted", "ns", "x_1", "__error__"}
	someKeys   = []string{"a", "b", "a_b", "a.b", "n", "ns", "x-1", "level", "service_name", "service.name", "é", "detected_level", "k\\\"\\\\"}
	someTexts  = []string{"x", "y", "{", "GET /a", "a=1", `\"`, `\\`, `\n`, "é", "", "5", "5ms", "3KB", "10.0.0.1", "error", `\ud800`, "web", "=", ",", ":", "}", "{\\\"a\\\":1}", "a=1 b=x level=warn", "\\u0001", "x{", "{\\\"a\\\":{\\\"b\\\":\\\"y\\\"},\\\"level\\\":\\\"info\\\",\\\"n\\\":null}"}
	someLevels = []string{"error", "info", "warn", "audit", ""}
)

func anyText(t *rapid.T) string {
	n := rapid.IntRange(1, 3).Draw(t, "parts")
	var b strings.Builder
	for range n {
		b.WriteString(rapid.SampledFrom(someTexts).Draw(t, "text"))
	}
	return b.String()
}

func anyValue(t *rapid.T, depth int) string {
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"1", "5", "0.5", "-3", "1e3"}).Draw(t, "number")
	case 1:
		return rapid.SampledFrom([]string{"true", "null"}).Draw(t, "word")
	case 2:
		if depth > 0 {
			return anyObject(t, depth-1)
		}
	case 3:
		return `["x",` + anyText2(t) + `,{"a":1}]`
	}
	return anyText2(t)
}

func anyText2(t *rapid.T) string { return `"` + anyText(t) + `"` }

func anyObject(t *rapid.T, depth int) string {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(someKeys), 0, 5, rapid.ID[string]).Draw(t, "keys")
	var parts []string
	for _, key := range keys {
		parts = append(parts, `"`+key+`":`+anyValue(t, depth))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// anyRecord is a stored line.
func anyRecord(t *rapid.T) []byte {
	object := anyObject(t, 2)
	head := fmt.Sprintf(`{"msg":%s,"severity":%q`, anyText2(t), rapid.SampledFrom(someLevels).Draw(t, "level"))
	if len(object) > 2 {
		head += ","
	}
	p := meaning.NewReader()
	if _, err := p.Scan([]byte(head + object[1:])); err != nil {
		t.Fatalf("%s: %v", head+object[1:], err)
	}
	line, _ := p.AppendLine(nil, &meaning.Defaults{Service: rapid.SampledFrom([]string{"web", "api"}).Draw(t, "service"), Time: 1795323600000000000})
	return line
}

func anyName(t *rapid.T) string { return rapid.SampledFrom(someNames).Draw(t, "name") }

// anyString is a text of a query.
func anyString(t *rapid.T) string {
	text := anyText(t)
	if rapid.Bool().Draw(t, "decoded") {
		text = string(record.AppendUnescaped(nil, []byte(text)))
	}
	return fmt.Sprintf("%q", text)
}

func anyMatch(t *rapid.T) string {
	if rapid.Bool().Draw(t, "expression") {
		return anyName(t) + rapid.SampledFrom([]string{"=~", "!~"}).Draw(t, "op") +
			rapid.SampledFrom([]string{`".*"`, `".+"`, `"x|y"`, `"err.*|5"`, `"[^x]*"`, `"(?i)WEB|warn"`, `""`}).Draw(t, "expression")
	}
	return anyName(t) + rapid.SampledFrom([]string{"=", "!="}).Draw(t, "op") + anyString(t)
}

func anyCond(t *rapid.T, depth int) string {
	switch rapid.IntRange(0, 5).Draw(t, "condition") {
	case 0:
		return anyName(t) + rapid.SampledFrom([]string{">5", "<=5", "==5", "!=5ms", ">1KB"}).Draw(t, "comparison")
	case 1:
		if depth > 0 {
			return "(" + anyCond(t, depth-1) + " or " + anyCond(t, depth-1) + ")"
		}
	case 2:
		if depth > 0 {
			return anyCond(t, depth-1) + " and " + anyCond(t, depth-1)
		}
	}
	return anyMatch(t)
}

func anyStage(t *rapid.T) string {
	some := func() string {
		n := rapid.IntRange(1, 3).Draw(t, "names")
		var all []string
		for range n {
			if rapid.IntRange(0, 3).Draw(t, "with value") == 0 {
				all = append(all, anyMatch(t))
			} else {
				all = append(all, anyName(t))
			}
		}
		return strings.Join(all, ", ")
	}
	switch rapid.IntRange(0, 15).Draw(t, "stage") {
	case 0, 1:
		return rapid.SampledFrom([]string{"|=", "!="}).Draw(t, "op") + " " + anyString(t)
	case 2:
		return "|= " + anyString(t) + " or " + anyString(t)
	case 3:
		return rapid.SampledFrom([]string{`|~ "x.*y"`, `!~ "(?i)get"`, `|~ "a=1|x"`, `|~ "^.?a"`, `|> "<_>x<_>"`, `|> "{<_>"`, `!> "<_>/a"`, `|= ip("10.0.0.0/8")`, `|~ "x$"`, `|~ "(x)+\""`}).Draw(t, "filter")
	case 4, 5:
		return "| " + anyCond(t, 1)
	case 6:
		return "| json"
	case 7:
		return rapid.SampledFrom([]string{`| json a="b", ns="a.b"`, `| json level="n"`}).Draw(t, "json")
	case 8:
		return rapid.SampledFrom([]string{"| logfmt", "| logfmt --strict", "| logfmt --keep-empty", `| logfmt n="a"`}).Draw(t, "logfmt")
	case 9:
		return rapid.SampledFrom([]string{`| regexp "(?P<a>\\w+) (?P<level>.)"`, `| pattern "<a> <_>=<n>"`, "| unpack", "| decolorize"}).Draw(t, "parser")
	case 10:
		return "| line_format " + rapid.SampledFrom([]string{`"{{.a}} {{.level}}"`, "`{\"a\":\"{{.n}}\"}`", `"{{.a | int | add 1}}"`, `"{{__line__}}x"`, `"{{.a | div 1}}"`, `"{{if .a}}x{{else}}{{.b}}{{end}}"`}).Draw(t, "template")
	case 11:
		return "| label_format " + rapid.SampledFrom([]string{`a=b`, `level=a`, `n="{{.a}}{{.service_name}}"`, `a="{{div 1 .n}}"`, `service_name=a, b="y"`, `x_1=detected_level`}).Draw(t, "labels")
	case 12, 13:
		return "| drop " + some()
	}
	return "| keep " + some()
}

func anyQuery(t *rapid.T) string {
	n := rapid.IntRange(0, 2).Draw(t, "matchers")
	var matchers []string
	for range n {
		m := anyMatch(t)
		for strings.HasPrefix(m, "__error__") {
			m = anyMatch(t)
		}
		matchers = append(matchers, m)
	}
	query := "{" + strings.Join(matchers, ", ") + "}"
	n = rapid.IntRange(0, 5).Draw(t, "stages")
	for range n {
		query += " " + anyStage(t)
	}
	return query
}

func anyView(t *rapid.T) stage.View {
	return stage.View{Lines: rapid.Bool().Draw(t, "lines"), Labels: rapid.SampledFrom([][]string{nil, nil, {"ns"}, {"a_b", "n"}}).Draw(t, "labels")}
}

// TestNeeds runs each query with all stages and with those that its answer needs: the answers are
// the same. And no record is lost by services, levels and texts.
func TestNeeds(t *testing.T) {
	for i := range testkit.Share(8, 1) { // a round is 100 queries
		t.Run(fmt.Sprint(i), needs)
	}
}

func needs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, text := anyView(t), anyQuery(t)
		e, err := logql.Parse(text)
		if err != nil {
			t.Skip(err)
		}
		p, err := v.Compile(e.(*logql.LogExpr))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		sel := p.Selection()
		for range 5 {
			line := anyRecord(t)
			var entry stage.Entry
			full := p.Entry(line, &entry)
			if keep := p.Keep(line); keep != full {
				t.Fatalf("%s of %s: Keep is %v, Entry is %v with %+v", text, line, keep, full, entry)
			}
			checkSelection(t, sel, text, line, full)
			if full {
				checkSeries(t, v, e.(*logql.LogExpr), text, line, &entry)
			}
		}
	})
}

func checkSelection(t *rapid.T, sel stage.Selection, text string, line []byte, kept bool) {
	service, _ := record.LineService(line)
	head := sel.Levels[record.LineLevel(line)] && sel.Service(string(service)) && (sel.Names == nil || slices.Contains(sel.Names, string(service)))
	if sel.All && kept != head {
		t.Fatalf("%s of %s: All is set, kept %v, service and level %v", text, line, kept, head)
	}
	if !kept {
		return
	}
	if !head {
		t.Fatalf("%s of %s: kept in spite of service and level", text, line)
	}
	var l grep.Line
	raw := bytes.TrimSuffix(line, []byte("\n"))
	l.Set(raw, raw)
	for _, one := range sel.Texts {
		if !grep.Fixed(one, false).Match(&l) {
			t.Fatalf("%s of %s: kept, but a search does not find %q", text, line, one)
		}
	}
}

// checkSeries compares the labels of a sample with those of the entry.
func checkSeries(t *rapid.T, v stage.View, e *logql.LogExpr, text string, line []byte, entry *stage.Entry) {
	by := rapid.SliceOfNDistinct(rapid.SampledFrom(someNames[:len(someNames)-1]), 0, 3, rapid.ID[string]).Draw(t, "by")
	s, err := v.Sampler(&logql.LogRange{Log: e}, stage.Wanted{Only: &logql.Grouping{Labels: by}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	_, series, ok, err := s.Sample(line)
	if value(entry, "__error__") != "" {
		if err == nil {
			t.Fatalf("%s of %s: no error, but %+v", text, line, entry)
		}
		return
	}
	if err != nil || !ok {
		t.Fatalf("%s of %s: %v %v", text, line, ok, err)
	}
	for _, name := range by {
		if v.Lines && name != "service_name" && name != "detected_level" || name == "msg" {
			continue // an entry of a line does not show the fields
		}
		if (name == "level" || name == "service") && (strings.Contains(text, "drop") || strings.Contains(text, "format")) {
			continue // one of two names for a label may be gone, which an entry does not show
		}
		want, got := value(entry, name), ""
		for _, l := range series.Labels {
			if l.Name == name {
				got = l.Value
			}
		}
		if got != want {
			t.Fatalf("%s of %s by %s: series %v, entry %+v", text, line, name, series.Labels, *entry)
		}
	}
}

// value is the label of an entry.
func value(e *stage.Entry, name string) string {
	for _, labels := range [][]stage.Label{e.Parsed, e.Stream, e.Metadata} {
		for _, l := range labels {
			if l.Name == name {
				return l.Value
			}
		}
	}
	switch name {
	case "level":
		return value2(e, "detected_level")
	case "service":
		return value2(e, "service_name")
	}
	return ""
}

// value2 is the label of an entry, unless a stage made it.
func value2(e *stage.Entry, name string) string {
	for _, labels := range [][]stage.Label{e.Stream, e.Metadata} {
		for _, l := range labels {
			if l.Name == name {
				return l.Value
			}
		}
	}
	return ""
}
