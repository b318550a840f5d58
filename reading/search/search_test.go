package search_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/search"
)

// Lines of the page before this package ask what they asked then: testdata/asks.jsonl has the
// parameters that its own parser made of them.
func TestAsksOfBefore(t *testing.T) {
	text, err := os.ReadFile("testdata/asks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		var c struct {
			Q, Ask string
			Fold   bool
			Within []string
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		want, err := url.ParseQuery(c.Ask)
		if err != nil {
			t.Fatal(err)
		}
		var levels blobs.LevelSet
		if l := want.Get("level"); l != "" {
			if levels, err = blobs.ParseLevels(l); err != nil {
				t.Fatal(err)
			}
		}
		q, err := search.Parse(c.Q)
		if err != nil {
			t.Errorf("%q: %v", c.Q, err)
			continue
		}
		got, err := q.Parts(c.Fold, c.Within)
		if err != nil {
			t.Errorf("%q: %v", c.Q, err)
			continue
		}
		services := got.Services
		if len(services) == 0 {
			services = c.Within
		}
		if len(services) == 0 {
			services = []string{"*"}
		}
		if !slices.Equal(services, want["service"]) || got.Levels != levels || !slices.Equal(got.Texts, want["text"]) ||
			!slices.Equal(got.Without, want["without"]) || !slices.Equal(got.Exprs, want["expr"]) || got.Where != want.Get("where") {
			t.Errorf("%q: %+v, want %v", c.Q, got, want)
		}
		roundTrip(t, c.Q)
		n++
	}
	if n != 500 {
		t.Errorf("%d lines", n)
	}
}

// roundTrip parses what the text of a query says.
func roundTrip(t *testing.T, line string) {
	t.Helper()
	q, err := search.Parse(line)
	if err != nil {
		return
	}
	text := q.String()
	again, err := search.Parse(text)
	if err != nil {
		t.Fatalf("%q is printed as %q: %v", line, text, err)
	}
	first, err1 := q.Parts(false, nil)
	second, err2 := again.Parts(false, nil)
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(second)
	if string(a) != string(b) || (err1 == nil) != (err2 == nil) {
		t.Fatalf("%q is printed as %q, and asks %s, %v in place of %s, %v", line, text, b, err2, a, err1)
	}
	if got := again.String(); got != text {
		t.Fatalf("%q is printed as %q, and that as %q", line, text, got)
	}
}

// A line is made of the parts of a question, and of as few as can be.
func TestParts(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`a AND b`, `texts a,b`},
		{`a && b`, `texts a,b`},
		{`a OR b`, `exprs a|b`},
		{`a.b || "c d"`, `exprs a\.b|c d`},
		{`a b OR c`, `where ((has("a")) and (has("b"))) or (has("c"))`},
		{`a (b OR c) d`, `texts a,d exprs b|c`},
		{`NOT a`, `without a`},
		{`NOT (a OR b)`, `where (not (has("a"))) and (not (has("b")))`},
		{`-(a b)`, `where (not (has("a"))) or (not (has("b")))`},
		{`a AND NOT (b c) AND d`, `texts a,d where (not (has("b"))) or (not (has("c")))`},
		{`and`, `texts and note`},
		{`"AND"`, `texts AND`},
		{`*timeout*`, `texts timeout`},
		{`time*out`, `exprs (?s)time.*out`},
		{`-tim*`, `without tim`},
		{`*`, ``},
		{`level:error`, `levels error`},
		{`level:(error OR warn)`, `levels warn,error`},
		{`level:warn+ NOT level:critical`, `levels warn,error`},
		{`level:>=error`, `levels error,critical`},
		{`status:500`, `where (status in [500, "500"]) or (has("status:500"))`},
		{`-status:500`, `where (not (status in [500, "500"])) and (not (has("status:500")))`},
		{`status:"500"`, `where (status in [500, "500"]) or (has("status:500"))`},
		{`status="500"`, `where status == "500"`},
		{`status >= 500`, `where float(status) >= 500`},
		{`status>=500`, `where float(status) >= 500`},
		{`status == 500`, `where status in [500, "500"]`},
		{`status != 500`, `where not (status in [500, "500"])`},
		{`status:>=500`, `where float(status) >= 500`},
		{`status:[500 TO 599]`, `where (float(status) >= 500) and (float(status) <= 599)`},
		{`status:{500 TO *]`, `where float(status) > 500`},
		{`status:(500 OR 502)`, `where (status in [500, "500"]) or (status in [502, "502"])`},
		{`status in (500,502)`, `where (status in [500, "500"]) or (status in [502, "502"])`},
		{`-status in (500, 502)`, `where (not (status in [500, "500"])) and (not (status in [502, "502"]))`},
		{`status=(500 502)`, `where (status in [500, "500"]) or (status in [502, "502"])`},
		{`path=~/^.api/`, `where path != nil and (type(path) == "string" ? path : toJSON(path)) matches "^.api"`},
		{`path !~ "a/b"`, `where not (path != nil and (type(path) == "string" ? path : toJSON(path)) matches "a\\/b")`},
		{`service:web`, `services web`},
		{`service:(web OR db)`, `services web,db`},
		{`(service=web status=1) OR service=db`,
			`where ((service matches "^(web)$") and (status in [1, "1"])) or (service matches "^(db)$")`},
		{`level=error OR status=1`, `where (level in ["error"]) or (status in [1, "1"])`},
		{`localhost:8080`, `where (localhost in [8080, "8080"]) or (has("localhost:8080"))`},
		{`Error: x`, `texts Error:,x`},
		{`12:30:45`, `texts 12:30:45`},
		{`http://x/y`, `texts http://x/y`},
		{`std::string`, `texts std::string`},
		{`a:b:c`, `texts a:b:c`},
		{`message:x`, `where has("x") and msg contains "x"`},
		{`msg:"two words"`, `where has("two words") and msg contains "two words"`},
		{`_msg:tim*`, `where has("tim") and msg contains "tim"`},
		{`@http.status:500`, `where (http.status in [500, "500"]) or (has("http.status:500"))`},
		{`user:*`, `where user != nil`},
		{`_exists_:user`, `where user != nil`},
		{`-_exists_:user`, `where user == nil`},
		{`f(x)`, `texts f(x)`},
		{`(f(x) OR b)`, `exprs f\(x\)|b`},
		{`(a`, `texts (a`},
		{`/a/ OR b`, `where (has(/a/)) or (has("b"))`},
		{`level:error AND (service:api OR service:web) AND NOT path:*health*`,
			`services api,web levels error ` +
				`where (not (path != nil and (type(path) == "string" ? path : toJSON(path)) matches "(?s)^.*health.*$"))` +
				` and (not (has(/(?s)path:.*health/)))`},
		{`{app="x"}`, `column 1: this is LogQL: use it in place of a search, or write app=x; service=NAME is the service`},
		{`error | stats count() by user`, `column 7: a search has no stages, which are of LogQL: write error`},
		{`|= "x"`, `column 1: a search has no stages, which are of LogQL: write x`},
		{`timeot~2`, `column 1: there is no search for what is like a word: write timeot or timeot*, and "timeot~2" for the text`},
		{`error^2`, `column 1: there is no search for what is like a word: write error or error*, and "error^2" for the text`},
		{`_stream:{app="x"}`, `column 8: there are no streams: write app=x`},
		{`@timestamp:[a TO b]`, `column 11: the range of times is not a part of the search: choose it, by --since, or from= and to=`},
		{`a OR`, `column 3: OR joins two terms: write a OR b, and "OR" for the text`},
		{`AND a`, `column 1: AND joins two terms: write a AND b, and "AND" for the text`},
		{`level:foo`,
			`column 7: no level "foo": write level=error,warn or level>=warn; levels are trace, debug, info, warn, error, critical, other`},
		{`level=error level=warn`, `column 13: this leaves no level: write level=error,warn for one of two`},
		{`größe "x`, `column 7: this quote has no end: write "two words"`},
	} {
		if got := asked(c.line); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.line, got, c.want)
		}
		roundTrip(t, c.line)
	}
}

// asked is what a line asks, or its mistake.
func asked(line string) string {
	q, err := search.Parse(line)
	var p search.Parts
	if err == nil {
		p, err = q.Parts(false, nil)
	}
	if err != nil {
		return err.Error()
	}
	if p.Where != "" {
		if _, err := where.Parse(nil, p.Where, false); err != nil {
			return "where " + p.Where + ": " + err.Error()
		}
	}
	var levels []string
	for l, name := range []string{"trace", "debug", "info", "warn", "error", "critical", "other"} {
		if p.Levels>>l&1 != 0 {
			levels = append(levels, name)
		}
	}
	var out []string
	for _, part := range []struct {
		name   string
		values []string
	}{{"services", p.Services}, {"levels", levels}, {"texts", p.Texts}, {"without", p.Without}, {"exprs", p.Exprs}} {
		if len(part.values) > 0 {
			out = append(out, part.name+" "+strings.Join(part.values, ","))
		}
	}
	if p.Where != "" {
		out = append(out, "where "+p.Where)
	}
	if len(q.Notes()) > 0 {
		out = append(out, "note")
	}
	return strings.Join(out, " ")
}

// Hints are for terms that are texts, and may have been meant as a level or a field.
func TestHints(t *testing.T) {
	for line, want := range map[string]string{
		"error":           "error is a text here; write level=error for the level",
		"a Warning":       "Warning is a text here; write level=warn for the level",
		"status = 500":    "fields have no blanks in them: write status=500",
		"x user: ann":     "fields have no blanks in them: write x user:ann",
		`level=error "x"`: "",
	} {
		q, err := search.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(q.Hints(), " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func FuzzPrint(f *testing.F) {
	for _, line := range []string{
		`a OR (b c) -d`, `status:[1 TO *}`, `x in ("a",b)`, `-"q\"" /re\/x/`, `where:(a == ")")`, `level:warn+`, `@a:b NOT c`, `f =~ "a\\"`,
	} {
		f.Add(line)
	}
	all := corpus(f)
	f.Fuzz(func(t *testing.T, line string) {
		roundTrip(t, line)
		q, err := search.Parse(line)
		if err != nil {
			return
		}
		again, err := search.Parse(q.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, fold := range []bool{false, true} {
			one, err := filterOf(q, fold)
			if err != nil {
				if !errors.As(err, new(*search.Mistake)) && len(line) < 2000 {
					t.Fatalf("%q: %v", line, err) // the condition that was made cannot be read
				}
				continue
			}
			other, err := filterOf(again, fold)
			if err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			for _, r := range all {
				if one.finds(r) != other.finds(r) {
					t.Fatalf("%q and %q differ for %s", line, q, r.line)
				}
			}
		}
	})
}
