package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// A search line is the same question as its filters, for each route, and lines that are repeated
// all count, but for services, which are a union.
func TestSearch(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 300)
	fill(h, 0, "orders", then.Add(time.Hour), 100)
	s := serve(t, h)
	span := "from=" + url.QueryEscape(then.Format(time.RFC3339)) + "&to=" + url.QueryEscape(then.Add(2*time.Hour).Format(time.RFC3339))
	for _, c := range []struct {
		filters string
		lines   []string
		records int
	}{
		{"service=*&text=web+1", []string{`"web 1"`}, 111},
		{"service=*&text=web+1&level=error", []string{`"web 1"`, `level:error`}, 11},
		{"service=web&service=orders&level=error&where=" + url.QueryEscape("status in [200, \"200\"]"),
			[]string{`service=web level:error`, `status=200`, `service=orders`}, 14},
		{"service=*&where=" + url.QueryEscape(`not (status >= 201) or path == "/p3"`), []string{`NOT status >= 201 OR path="/p3"`}, 171},
	} {
		line := "service=*"
		for _, q := range c.lines {
			line += "&q=" + url.QueryEscape(q)
		}
		for _, route := range []string{"count?", "records?limit=0&", "histogram?by=1h&", "facets?", "patterns?", "tail?once=1&n=1000&"} {
			end := span
			if strings.HasPrefix(route, "tail") {
				end, _, _ = strings.Cut(span, "&to=")
			}
			want, got := s.get(route+c.filters+"&"+end), s.get(route+line+"&"+end)
			if got.status != http.StatusOK || dropped(got.body) != dropped(want.body) {
				t.Errorf("%s %q: %d %.600s\nwant %.600s", route, c.lines, got.status, got.body, want.body)
			}
		}
		if n := object[form.Count](s, "count?"+line+"&"+span).Records; n != int64(c.records) {
			t.Errorf("%q: %d records, want %d", c.lines, n, c.records)
		}
	}
	for q, note := range map[string]string{
		"WARN":    "WARN is a text here; write level=warn for the level",
		"web and": `"and" is a text here; write AND to join terms`,
	} {
		if notes := object[form.Count](s, "count?service=*&q="+url.QueryEscape(q)).Notes; !slices.Equal(notes, []string{note}) {
			t.Errorf("%s: %q, want %q", q, notes, note)
		}
	}
	// A condition is told the search in the words of the API, not of the command.
	notes := object[form.Count](s, "count?service=*&where="+url.QueryEscape(`status == "it's"`)).Notes
	if len(notes) != 1 || !strings.HasSuffix(notes[0], `; as a search: q=status="it's"`) {
		t.Errorf("%q", notes)
	}
}

// dropped is an answer without what differs from one time to the next.
func dropped(body string) string {
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	for _, name := range []string{"cost", "range"} {
		delete(v, name)
	}
	return fmt.Sprint(v)
}

// A mistake of a line is refused with its place, by all routes.
func TestSearchMistakes(t *testing.T) {
	s := serve(t, readingtest.New(t, 1))
	for _, c := range []struct {
		query  string
		line   string
		column int
		says   string
	}{
		{"q=" + url.QueryEscape(`größe "no end`), `größe "no end`, 7, `write "two words"`},
		{"q=a&q=" + url.QueryEscape(`x level:loud`), `x level:loud`, 9, "levels are trace"},
		{"q=" + url.QueryEscape(`a /(/`), `a /(/`, 3, "quotes are for a text as it is"},
		{"q=" + url.QueryEscape(`a where:(status ==)`), `a where:(status ==)`, 3, "where: "},
		{"q=level=error&q=" + url.QueryEscape("level=warn"), "level=warn", 1, "leaves no level"},
		{"q=a&not=1&text=b", "", 0, "NOT"},
		{"q=a&logql=" + url.QueryEscape(`{service="web"}`), "", 0, "leave out q, or logql"},
	} {
		service := "service=*&"
		if strings.Contains(c.query, "logql") {
			service = ""
		}
		for _, route := range []string{"count", "records", "histogram", "facets", "patterns", "tail"} {
			a := s.get(route + "?" + service + c.query)
			var p form.Problem
			if err := json.Unmarshal([]byte(a.body), &p); err != nil {
				t.Error(err)
			}
			if a.status != http.StatusBadRequest || p.Line != c.line || p.Column != c.column || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s %s: %d %+v", route, c.query, a.status, p)
			}
		}
	}
}

// What a question says is told without a read, and so are its mistakes.
func TestParse(t *testing.T) {
	s := serve(t, readingtest.New(t, 1))
	ask := func(params ...string) form.Parsed {
		t.Helper()
		v := url.Values{}
		for i := 0; i < len(params); i += 2 {
			v.Add(params[i], params[i+1])
		}
		return object[form.Parsed](s, "parse?"+v.Encode())
	}
	got := ask("q", "basket  status=502", "q", "-path:/login", "service", "web", "typed", "basket sta")
	if got.Line != "basket status=502 -path:/login" || len(got.Terms) != 3 || got.Mistake != nil {
		t.Errorf("%+v", got)
	} else if last := got.Terms[2]; last.Name != "path" || !last.Not {
		t.Errorf("%+v", last)
	}
	if !strings.HasPrefix(got.LogQL, `{service_name="web"} |`) || !strings.HasSuffix(got.LogQL, `| status="502"`) ||
		!strings.HasSuffix(got.Lacks[len(got.Lacks)-1], "left out: -path:/login") {
		t.Errorf("%s %q", got.LogQL, got.Lacks)
	}
	if got.Word == nil || got.Word.From != 7 || got.Word.Name != "sta" {
		t.Errorf("%+v", got.Word)
	}
	for line, want := range map[string]string{
		"service in (web, db) -level=debug b OR c":   "level=error",
		"(service=web OR service=db) -level=debug c": "level=error (service=web OR service=db) -level=debug",
	} {
		if got := ask("q", "a level=error", "q", line).Index; got != want {
			t.Errorf("%s: index %q, want %q", line, got, want)
		}
	}
	if got := ask("logql", `{service="web"} |= "x"`); got.LogQL != `{service="web"} |= "x"` || got.Mistake != nil {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		params []string
		want   form.Mistake
	}{
		{[]string{"q", "status=", "typed", "status="}, form.Mistake{Parameter: "q", Line: "status=", Column: 8}},
		{[]string{"logql", "{"}, form.Mistake{Parameter: "logql"}},
		{[]string{"from", "yesterdayish"}, form.Mistake{Parameter: "from"}},
		{[]string{"from", "2026-11-20", "to", "2026-11-19"}, form.Mistake{Parameter: "from"}},
	} {
		got := ask(c.params...).Mistake
		if got == nil || got.Text == "" {
			t.Errorf("%q: %+v", c.params, got)
			continue
		}
		if got.Text = ""; *got != c.want {
			t.Errorf("%q: %+v, want %+v", c.params, got, c.want)
		}
	}
	day := ask("day", "2026-11-20", "timezone", "Asia/Kolkata").Range
	if day == nil || day.From != "2026-11-19T18:30:00.000000000Z" || day.To != "2026-11-20T18:30:00.000000000Z" {
		t.Errorf("%+v", day)
	}
	at := ask("from", "1795773600", "to", "2026-11-28 15:04 UTC").Range
	if at == nil || at.From != "2026-11-27T10:00:00.000000000Z" || at.To != "2026-11-28T15:04:00.000000000Z" {
		t.Errorf("%+v", at)
	}
}
