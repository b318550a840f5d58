package stage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blobtail/logql/stage"
	"blobtail/record"
)

// chosen is a selection in one line: names of services, levels, texts, and whether they decide.
func chosen(s stage.Selection) string {
	var levels []string
	for l, ok := range s.Levels {
		if ok {
			levels = append(levels, record.Level(l).String())
		}
	}
	if len(levels) == record.NumLevels {
		levels = []string{"all"}
	}
	return fmt.Sprintf("%v %v %q %v", s.Names, levels, s.Texts, s.All)
}

func TestSelection(t *testing.T) {
	for query, want := range map[string]string{
		`{}`:                                          `[] [all] [] true`,
		`{service_name="web"}`:                        `[web] [all] [] true`,
		`{service="web"}`:                             `[web] [all] [] true`,
		`{service_name=~"web|orders|worker"}`:         `[orders web worker] [all] [] true`,
		`{service_name=~"web-[12]|a(b|c)?"}`:          `[a ab ac web-1 web-2] [all] [] true`,
		`{service_name=~"web.*"}`:                     `[] [all] [] true`,
		`{service_name=~"web|api", service!="web"}`:   `[api] [all] [] true`,
		`{service_name="web", level="error"}`:         `[web] [error] [] true`,
		`{level=~"err.*|unknown"}`:                    `[] [error other] [] true`,
		`{level!~"info|debug|trace"}`:                 `[] [warn error critical other] [] true`,
		`{level=""}`:                                  `[] [] [] true`,
		`{level="other"}`:                             `[] [] [] true`,
		`{} | detected_level="error" or level="warn"`: `[] [warn error] [] true`,
		`{} | detected_level!=""`:                     `[] [all] [] true`,
		`{} | level="error" and status="5xx"`:         `[] [error] ["5xx"] false`,
		`{} | level="error" or status="5xx"`:          `[] [all] [] false`,
		`{} | json | level="error"`:                   `[] [all] [] false`,
		`{} | logfmt a="b" | level="error"`:           `[] [error] [] true`,
		`{} | drop level | level="error"`:             `[] [all] [] false`,
		`{} | keep status | level=""`:                 `[] [all] [] false`,
		`{} | keep level | level="info"`:              `[] [info] [] true`,
		`{} | label_format level="x" | level="x"`:     `[] [all] [] false`,
		"{} |= ``": `[] [all] [] true`,
		"{} |= `` | json | logfmt | drop __error__, __error_details__": `[] [all] [] true`,
		"{} |~ `` |~ `.*` |= `a` or ``":                                `[] [all] [] true`,
		"{} != ``":                                                     `[] [all] [] false`,
		"{} | line_format `x` | label_format a=b":                      `[] [all] [] true`,
		"{} | line_format `x` |= `x`":                                  `[] [all] [] false`,
		"{} |= `a` |= `b\"` != `c` |= `d` or `e`":                      `[] [all] ["a" "b\""] false`,
		"{} |= `{x` |= `{` |= `a\\b`":                                  `[] [all] ["x"] false`,
		`{} |= "\xc3"`:                                                 `[] [all] [] false`,
		"{} |~ `a+basket[0-9]` |~ `(?i)x`":                             `[] [all] ["basket"] false`,
		"{} |~ `one|two`":                                              `[] [all] [] false`,
		"{} |> `GET <_> took <_>`":                                     `[] [all] ["GET " " took "] false`,
		"{} !> `GET <_>` !~ `x` != `y`":                                `[] [all] [] false`,
		"{} | decolorize |= `a`":                                       `[] [all] [] false`,
		"{} | json |= `a`":                                             `[] [all] ["a"] false`,
		`{namespace="prod", a="x\"y", b=""}`:                           `[] [all] ["prod"] false`,
		`{} | trace_id="4bf9" | json | user="u1"`:                      `[] [all] ["4bf9"] false`,
		`{} | status=502`:                                              `[] [all] [] false`,
		`{} |= ip("10.0.0.0/8")`:                                       `[] [all] [] false`,
	} {
		got := compile(t, stage.View{}, query).Selection()
		if chosen(got) != want {
			t.Errorf("%s: %s, want %s", query, chosen(got), want)
		}
		if lines := compile(t, stage.View{Lines: true}, query).Selection(); slices.Contains(lines.Texts, "a") {
			t.Errorf("%s: lines have the text a from msg on", query)
		}
	}
}

// TestSelectionBehindParsers: a parser may copy parts of the record.
func TestSelectionBehindParsers(t *testing.T) {
	for query, want := range map[string]string{
		`{} | json | level="error"`:                          `[] [error] [] true`,
		`{} | json | level=~"error|warn" | status="5"`:       `[] [warn error] ["5"] false`,
		`{} | json | level!="error"`:                         `[] [trace debug info warn critical other] [] false`,
		`{} | json | level="audit"`:                          `[] [other] [] false`,
		`{} | json | level="error" or level="audit"`:         `[] [error other] [] false`,
		`{} | json | level="unknown"`:                        `[] [other] [] false`,
		`{} | json | detected_level="error"`:                 `[] [all] [] false`,
		`{} | json | drop level | level="error"`:             `[] [all] [] false`,
		`{} | logfmt | json | level="error"`:                 `[] [all] [] false`,
		`{} | line_format "x" | json | level="error"`:        `[] [all] [] false`,
		`{} | json level="x" | level="error"`:                `[] [all] [] false`,
		`{} | json | trace_id="4bf9"`:                        `[] [all] ["4bf9"] false`,
		`{} | json x="a.b" | x="4bf9"`:                       `[] [all] ["4bf9"] false`,
		`{} | line_format "{{.a}}" | json | trace_id="4bf9"`: `[] [all] [] false`,
		`{} | regexp "(?P<x>.*)" | x="4bf9"`:                 `[] [all] [] false`,
	} {
		if got := chosen(compile(t, stage.View{Lines: true}, query).Selection()); got != want {
			t.Errorf("lines: %s: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		`{} | json | trace_id="4bf9"`:                    `[] [all] [] false`,
		`{} | regexp "(?P<x>.*)" | x="4bf9"`:             `[] [all] ["4bf9"] false`,
		`{} | pattern "<x> <_>" | x="4bf9"`:              `[] [all] ["4bf9"] false`,
		`{} | decolorize | pattern "<x> <_>" | x="4bf9"`: `[] [all] [] false`,
	} {
		if got := chosen(compile(t, stage.View{}, query).Selection()); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := compile(t, stage.View{Lines: true}, "{a=\"prod\"} |= `b`").Selection(); !slices.Equal(got.Texts, []string{"prod"}) {
		t.Errorf("texts of a field in lines: %q", got.Texts)
	}
}

func TestServices(t *testing.T) {
	all := []string{"web", "api", "_rejected", "_other"}
	for query, want := range map[string]string{
		`{}`:                                            "web api",
		`{service_name=~".*"}`:                          "web api",
		`{service_name=~"_.*"}`:                         "_rejected _other",
		`{service_name="_rejected"}`:                    "_rejected",
		`{service_name=~".*_rejected"}`:                 "",
		`{service_name=~"web|_rejected"}`:               "web",
		`{service_name!="web"}`:                         "api",
		`{service_name!~"w.*"}`:                         "api",
		`{service_name=~"_.*", service_name!="_other"}`: "_rejected",
		`{service_name=""}`:                             "", `{service_name="a", service_name="b"}`: "",
	} {
		p := compile(t, stage.View{}, query)
		sel := p.Selection()
		var got []string
		for _, name := range all {
			line := stored(t, "web", `{"msg":"x"}`)
			line = []byte(strings.Replace(string(line), `"service":"web"`, `"service":"`+name+`"`, 1))
			if sel.Service(name) {
				got = append(got, name)
			}
			if keep := p.Keep(line); keep != sel.Service(name) {
				t.Errorf("%s of %s: Keep %v, Service %v", query, name, keep, !keep)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		if sel.Names != nil {
			for _, name := range got {
				if !slices.Contains(sel.Names, name) {
					t.Errorf("%s: names %v lack %s", query, sel.Names, name)
				}
			}
		}
	}
	if names := compile(t, stage.View{}, `{service_name=""}`).Selection().Names; names == nil || len(names) != 0 {
		t.Errorf("no service can match, but names are %#v", names)
	}
}

// TestErrors ensures that Compile refuses a query that cannot run, and names the part at fault.
func TestErrors(t *testing.T) {
	for query, want := range map[string]string{
		"{} | line_format `{{.a`":                    "unclosed action",
		"{} | label_format a=`{{nope .a}}`":          `function "nope" not defined`,
		"{} | line_format `{{range .a}}{{end}}`":     "not allowed",
		"{} | line_format `{{define \"x\"}}{{end}}`": "not allowed",
	} {
		if _, err := (stage.View{}).Compile(parse(t, query)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

// A template may make too much of a record, in front of a filter that needs the result. Then the
// record is neither in nor out. If the query has a filter on __error__, that filter decides.
func TestUnjudged(t *testing.T) {
	const large = "line_format `{{repeat 2000000 \"x\"}}`"
	line := stored(t, "web", `{"level":"error","msg":"a=1 b=2","status":502}`)
	for query, want := range map[string][2]int64{ // dropped, and dropped or kept
		`{} | ` + large + ` |= "xx"`:                                    {1, 1},
		`{} | ` + large + ` != "xx"`:                                    {0, 1},
		`{} | ` + large:                                                 {0, 0}, // the label __error__ says it
		`{} | ` + large + ` |= "xx" | __error__=""`:                     {1, 1},
		`{} | ` + large + ` | __error__=""`:                             {0, 0},
		`{} | ` + large + ` | __error__="" or status=502 |= "x"`:        {0, 0},
		`{} | ` + large + ` | __error__!="" != "xx"`:                    {0, 0},
		"{} | label_format a=`{{repeat 2000000 \"x\"}}` | a=\"x\"":      {1, 1},
		"{} | label_format a=`{{repeat 2000000 \"x\"}}` | status=\"7\"": {0, 0}, // it needs no a
		"{} | line_format `{{div 1 0}}` |= \"xx\"":                      {0, 0}, // as everywhere
		"{} | line_format `{{repeat 20 \"x\"}}` |= \"xx\"":              {0, 0},
	} {
		pipe, err := stage.View{}.Compile(parse(t, query))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		pipe.Keep(line)
		for i, kept := range []bool{false, true} {
			if n, why := pipe.Unjudged(kept); n != want[i] || (why != nil) != (n > 0) {
				t.Errorf("%s: %d records, %v, want %d", query, n, why, want[i])
			}
		}
	}
}
