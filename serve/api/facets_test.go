package api_test

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

func fieldOf(t *testing.T, f form.Facets, name string) form.Field {
	t.Helper()
	for _, field := range f.Fields {
		if field.Name == name {
			return field
		}
	}
	t.Fatalf("no field %s: %+v", name, f)
	return form.Field{}
}

// Facets name their records. Level and service are of all records, others of the newest.
func TestFacets(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 300)
	fill(h, 0, "orders", then.Add(time.Hour), 100)
	h.Flush()
	fill(h, 0, "web", then.Add(2*time.Hour), 30)
	s := serve(t, h)
	all := object[form.Facets](s, "facets?service=*")
	if all.Basis.Records != 430 || *all.Basis.Of != 430 || all.Basis.Newest || !all.Complete {
		t.Errorf("basis: %+v", all.Basis)
	}
	status := fieldOf(t, all, "status")
	if status.Type != "int" || status.Present != 430 || status.Distinct != 3 || status.Exact || !reflect.DeepEqual(status.Values[0], form.Value{Value: "200", Count: 144, Types: []string{"int"}}) {
		t.Errorf("status: %+v", status)
	}
	few := object[form.Facets](s, "facets?service=*&sample=50&fields=level,path,service&top=2")
	if few.Basis.Records != 50 || *few.Basis.Of != 430 || !few.Basis.Newest || len(few.Fields) != 3 || few.Fields[0].Name != "level" || few.Fields[1].Name != "service" {
		t.Errorf("few: %+v", few)
	}
	if level := few.Fields[0]; !level.Exact || len(level.Values) != 2 || !reflect.DeepEqual(level.Values[0], form.Value{Value: "info", Count: 387, Types: []string{"string"}}) || level.Values[1].Count != 43 {
		t.Errorf("level: %+v", level)
	}
	if path := few.Fields[2]; path.Present != 50 || path.Distinct != 7 || len(path.Values) != 2 {
		t.Errorf("path: %+v", path)
	}
	direct, _, err := h.Reader().For(nil).Survey(t.Context(), reading.Ask{Services: []string{"*"}, Range: reading.Always()}, reading.SurveyOptions{Sample: 50, Fields: []string{"level", "path", "service"}, Top: 2})
	if err != nil || !reflect.DeepEqual(few.Survey(), direct) {
		t.Errorf("%v: %+v by HTTP, and of the store %+v", err, few.Survey(), direct)
	}
	text := object[form.Facets](s, "facets?service=*&text=web&sample=100")
	if text.Basis.Of != nil || !text.Basis.Newest || fieldOf(t, text, "service").Exact {
		t.Errorf("text: %+v", text)
	}
	if whole := object[form.Facets](s, "facets?service=*&text=web&sample=0"); *whole.Basis.Of != 330 || fieldOf(t, whole, "service").Values[0].Count != 330 {
		t.Errorf("whole: %+v", whole)
	}
}

// Many fields, many values and long ones are bounded, and the answer says so.
func TestFacetsAreBounded(t *testing.T) {
	h := readingtest.New(t, 1)
	var lines []readingtest.Line
	for i := range 1500 {
		lines = append(lines, readingtest.Line{Service: "web", Time: then, Fields: fmt.Sprintf(`"id":"%d","f%d":1.5,"long":%q,"v":%s`, i, i%300, strings.Repeat("é", 500), []string{"1", "1.5", `"x"`}[i%3])})
	}
	h.Send(0, lines...)
	all := object[form.Facets](serve(t, h), "facets?service=web&top=1000")
	id, long, v := fieldOf(t, all, "id"), fieldOf(t, all, "long"), fieldOf(t, all, "v")
	if !id.Capped || id.Distinct != 1000 || len(id.Values) != 1000 || len(all.Fields) > 202 || len(all.Warnings) != 1 || len(long.Values[0].Value) != 256 || v.Type != "mixed" {
		t.Errorf("id %d, long %q, v %s, %d fields, %q", id.Distinct, long.Values[0].Value, v.Type, len(all.Fields), all.Warnings)
	}
}

// A query in LogQL selects the same records as the parameters.
func TestLogQL(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 300)
	fill(h, 0, "orders", then, 30)
	s := serve(t, h)
	for query, same := range map[string]string{
		`{service="web"}`: "service=web",
		`{service="web"} |= "web 1" | level="error"`: "service=web&text=web+1&level=error",
		`{service=~".+"} | status > 201`:             "service=*&where=status>201",
		`{service="web", level="error"}`:             "service=web&level=error",
	} {
		got, want := s.get("records?limit=0&logql="+url.QueryEscape(query)), s.get("records?limit=0&"+same)
		if got.status != 200 || got.body != want.body || got.body == "" {
			t.Errorf("%s: %d, %d lines, want %d", query, got.status, strings.Count(got.body, "\n"), strings.Count(want.body, "\n"))
		}
	}
	for query, want := range map[string]string{
		`{service="web"`: "parse error", `rate({service="web"}[1m])`: "query of numbers", `{service="wbe"}`: "is it web?", `{service=~"x.+"}`: "no service matches",
	} {
		if a := s.get("count?logql=" + url.QueryEscape(query)); a.status/100 != 4 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	if a := s.get("count?service=web&logql=" + url.QueryEscape(`{service="web"}`)); a.status != 400 {
		t.Errorf("both: %d %s", a.status, a.body)
	}
}

// A word that is no level counts as other, whether levels are counted by indexes or by lines. A value
// has the types that it has in records, also of a field in an object.
func TestFacetsOfWords(t *testing.T) {
	h := readingtest.New(t, 1)
	for _, fields := range []string{`"a":200`, `"a":"200"`, `"a.b":"x"`, `"a":{"b":"x"}`} {
		h.Send(0, readingtest.Line{Service: "web", Time: then, Level: "loud", Msg: "m", Fields: fields})
	}
	h.Flush()
	s := serve(t, h)
	for _, query := range []string{"", "&text=m"} {
		all := object[form.Facets](s, "facets?service=web&fields=level,service,a,a.b"+query)
		for name, want := range map[string]form.Value{
			"level": {Value: "other", Count: 4, Types: []string{"string"}}, "service": {Value: "web", Count: 4, Types: []string{"string"}},
			"a": {Value: "200", Count: 2, Types: []string{"int", "string"}}, "a.b": {Value: "x", Count: 2, Types: []string{"string"}},
		} {
			if got := fieldOf(t, all, name).Values[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s%s: %+v, not %+v", name, query, got, want)
			}
		}
	}
}
