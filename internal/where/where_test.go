package where_test

import (
	"strings"
	"testing"

	"blobtail/internal/where"
)

const line = `{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"say \"hi\"","status":502,"path":"/api/x","ok":false,"none":null,"http.method":"GET","http":{"status":404,"a":{"b":1}},"tags":["a","b"],"took":1.5e3,"größe":"xl","count":7,"duration":{"len":3},"$env":16,"len":3}` + "\n"

func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		`status >= 500 && path startsWith "/api"`: true,
		`status == 502`:                             true,
		`status == 502.0`:                           true,
		`status in [500, 502]`:                      true,
		`status in 500..510`:                        true, // a number of JSON and one of the language
		`status == "502"`:                           false,
		`status >= "5"`:                             false, // it fails
		`!(missing >= 5)`:                           false, // so does this
		`missing >= 5 or status == 502`:             true,
		`status == 502 or missing >= 5`:             true,
		`not (missing >= 5 and status == 1)`:        true,
		`missing >= 5 and status == 502`:            false,
		`missing != 5`:                              true,
		`not (status in ["a", "b"])`:                true,
		`status not in ["a"] and ok == false`:       true,
		`http != nil and http.status == 404`:        true,
		`count > 5 and duration.len == 3`:           true, // these are functions too
		`count(tags, # == "a") == 1 and count == 7`: true,
		`len(missing) > 2 or ok == false`:           true,
		`missing == nil`:                            true,
		`missing?.x == nil`:                         true,
		`none == nil`:                               true,
		`not ok`:                                    true,
		`msg == "say \"hi\""`:                       true,
		`msg contains 'hi'`:                         true,
		`msg matches "^say"`:                        true,
		`level == "error" and service == "web"`:     true,
		`ts startsWith "2026-11"`:                   true,
		`http.method == "GET"`:                      true,
		`http.status == 404`:                        true,
		`http.a.b == 1`:                             true,
		`http.nothing == 1`:                         false,
		`"b" in tags`:                               true,
		`len(tags) == 2`:                            true,
		`any(tags, # == "a")`:                       true,
		`took / 1000 > 1`:                           true,
		`count % 4 == 3 and count % 4 + 1 == 4`:     true,
		`not (status % 7 == 3) and 5 % count == 5`:  true,
		`took % 400 == 300 and status % 0.5 == 0`:   true,
		`tags[status % 2] == "a"`:                   true,
		`any([4, 7], # % 2 == 1 and # == count)`:    true,
		`len(tags) % 2 == 0 and count % 0 == count`: false, // it fails
		`not (path % 2 == 1)`:                       false, // so does this
		`bitand(count, 3) == 3`:                     true,
		`größe == "xl"`:                             true,
		`$env["http.method"] == "GET"`:              true,
		`$env["$env"] == 16 and $env["len"] == 3`:   true,
		`let n = 1; $env["n"] == nil`:               true,
		`len($env) == 17 and $env["$env"] == 16`:    true,
		`let n = status; n > 500`:                   true,
		`let h = http; h.status == 404`:             true,
		`status > 500 ? true : false`:               true,
		`upper(path) == "/API/X"`:                   true,
	} {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if e.Match([]byte(line)) != want {
			t.Errorf("%s: not %v; %q", text, want, e.Notes(nil))
		} else if e.Select([]byte(line)) != want {
			t.Errorf("%s: Select is not %v", text, want)
		}
	}
}

// Select has the result of Match for records that lack a level or a text that the
// expression needs, and for those that have it in another form.
func TestSelect(t *testing.T) {
	lines := []string{line}
	for _, level := range []string{"", "info", "error", "critical", "audit", `say \"hi\"`} {
		for _, rest := range []string{``, `,"path":"/api/x"`, `,"path":["/api/x"]`, `,"path":"say \"hi\""`, `,"path":"\ud83d"`, `,"path":"\\ud83d"`, `,"p":"/api/x","level.x":"error"`} {
			lines = append(lines, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"`+level+`","service":"web","msg":"m"`+rest+"}\n")
		}
	}
	for _, text := range []string{
		`level == "error"`, `"error" == level`, `not (level == "error")`, `level != "error"`, `level in ["error", "critical"]`, `level not in ["error"]`,
		`level == "audit"`, `level == ""`, `level == "error" and path == "/api/x"`, `level == "error" or path == "/api/x"`,
		`level == "error" or level == "info"`, `level in ["error"] and level in ["error", "audit"]`, `level in ["error", "info"] and level == "info"`,
		`path == "/api/x"`, `path == 'say "hi"'`, `level == 'say "hi"'`, `level == "error" and level == "info"`, `path == "\\ud83d"`,
		`let level = path; level == "error"`, `(level == "error" ? path : level) == "info"`, `level == path`, `level in [path, "info"]`, `level == 5 or level == "info"`,
	} {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, line := range lines {
			if got, want := e.Select([]byte(line)), e.Match([]byte(line)); got != want {
				t.Errorf("%s: Select is %v, Match %v: %s", text, got, want, line)
			}
		}
	}
}

// BenchmarkSelect measures expressions over a record that lacks the fields they need, and over one
// that has them.
func BenchmarkSelect(b *testing.B) {
	record := []byte(line)
	for _, text := range []string{`level == "info" and status >= 500`, `path == "/other"`, `level == "error"`, `level == "error" and status >= 500`} {
		b.Run(text, func(b *testing.B) {
			e, err := where.Parse(nil, text, false)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Select(record)
			}
		})
	}
}

// An expression that would make too much of a record has no result for it that anybody may rely
// on, unless the rest of the expression decides.
func TestUnjudged(t *testing.T) {
	const large = `len(map(1..2000000, # + status)) > 0`
	for text, want := range map[string]struct{ match, unjudged bool }{
		large:                                   {false, true},
		`not (` + large + `)`:                   {false, true},
		large + ` and ok == false`:              {false, true},
		`missing >= 5 and ` + large:             {false, true}, // though the record matches in no case
		`missing >= 5 or ` + large:              {false, true},
		large + ` and missing == 5`:             {false, false},
		large + ` or ok == false`:               {true, false},
		`not (` + large + ` and missing == 5)`:  {true, false},
		`missing >= 5`:                          {false, false}, // the record lacks it
		`status >= "5"`:                         {false, false},
		`len(map(1..1000, # + status)) == 1000`: {true, false},
		`len(repeat(msg, 2000000)) > 0`:         {false, true},
	} {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		match := e.Match([]byte(line))
		n, why := e.Unjudged()
		if match != want.match || (n == 1) != want.unjudged || (why == nil) != (n == 0) || why != nil && !strings.Contains(why.Error(), "memory budget exceeded") {
			t.Errorf("%s: %t, %d unjudged, %v", text, match, n, why)
		}
		if selected, may := e.Select([]byte(line)), e.MaySelect([]byte(line)); selected != want.match || may != (want.match || want.unjudged) {
			t.Errorf("%s: selected %t, may be %t", text, selected, may)
		}
		if notes := e.Notes(nil); want.unjudged && len(notes) > 0 && strings.Contains(strings.Join(notes, " "), "budget") {
			t.Errorf("%s: %q", text, notes)
		}
	}
}

// An expression that calls now() asks for the time, and no other does: a field may have that name.
func TestAsksTime(t *testing.T) {
	for text, want := range map[string]bool{
		`date(ts) > now() - duration("1h")`:                          true,
		`status == 502 and not (now() < date(ts))`:                   true,
		`let old = now() - duration("1h"); date(ts) < old`:           true,
		`any(tags, date(#).Unix() > now().Unix())`:                   true,
		`"x" in map(tags, {string(now())})`:                          true,
		`date(ts) > date("2026-11-20T15:00:00Z") - duration("1h")`:   false,
		`now == 1 or msg contains "now()" or $env["now"] == "now()"`: false,
	} {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if e.AsksTime() != want {
			t.Errorf("%s: %v", text, e.AsksTime())
		}
	}
}
