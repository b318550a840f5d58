package logql_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/logql"
)

// same ensures that a query, its line and its pretty form have the same tree.
func same(t *testing.T, query string, tree logql.Expr) {
	t.Helper()
	for _, text := range []string{tree.String(), logql.Format(tree)} {
		again, err := logql.Parse(text)
		if err != nil {
			t.Fatalf("%s\nwas printed as\n%s\n%v", query, text, err)
		}
		if !reflect.DeepEqual(tree, again) {
			t.Fatalf("%s\nwas printed as\n%s\nwhich is another tree", query, text)
		}
	}
}

// TestGrafana ensures that queries which Grafana writes by itself are understood.
func TestGrafana(t *testing.T) {
	data, err := os.ReadFile("testdata/grafana.txt")
	if err != nil {
		t.Fatal(err)
	}
	for query := range strings.Lines(string(data)) {
		query = strings.TrimSuffix(query, "\n")
		tree, err := logql.Parse(query)
		if err != nil {
			t.Errorf("%s\n%v", query, err)
			continue
		}
		same(t, query, tree)
	}
}

// TestTrees ensures that texts have the trees that they mean.
func TestTrees(t *testing.T) {
	eq := func(name, value string) logql.Matcher {
		return logql.Matcher{Name: name, Op: logql.Equal, Value: value}
	}
	is := func(name, value string) logql.Cond { return &logql.MatchCond{Matcher: eq(name, value)} }
	log := func(stages ...logql.Stage) *logql.LogExpr {
		return &logql.LogExpr{Selector: []logql.Matcher{eq("a", "b")}, Stages: stages}
	}
	where := func(c logql.Cond) logql.Stage { return &logql.LabelFilter{Cond: c} }
	rate := func() *logql.RangeAgg {
		return &logql.RangeAgg{Op: "rate", Range: logql.LogRange{Log: log(), Window: time.Minute}}
	}
	n := func(v float64) logql.Metric { return &logql.Number{Value: v} }
	for _, c := range []struct {
		query string
		want  logql.Expr
	}{
		{`{}`, &logql.LogExpr{}},
		{`{a="b"} != "x" or ip("::1")`, log(&logql.LineFilter{Op: logql.ContainsNot, Any: []logql.LineArg{{Text: "x"}, {Text: "::1", IP: true}}})},
		{`{a="b"} | json != "x"`, log(&logql.JSON{}, &logql.LineFilter{Op: logql.ContainsNot, Any: []logql.LineArg{{Text: "x"}}})},
		{`{a="b"} | json="x"`, log(where(is("json", "x")))},
		{`{a="b"} | json x="y[0]", z`, log(&logql.JSON{Extract: []logql.Extract{{Name: "x", Path: "y[0]"}, {Name: "z", Path: "z"}}})},
		{`{a="b"} | label_format x=y, z="{{.y}}"`, log(&logql.LabelFormat{Set: []logql.Rename{{Name: "x", From: "y"}, {Name: "z", Template: "{{.y}}"}}})},
		{`{a="b"} | w="1" or x="2" and y="3", z="4"`, log(where(&logql.Or{Left: is("w", "1"),
			Right: &logql.And{Left: &logql.And{Left: is("x", "2"), Right: is("y", "3")}, Right: is("z", "4")}}))},
		{`{a="b"} | (w="1" or x="2") y="3"`, log(where(&logql.And{Left: &logql.Or{Left: is("w", "1"), Right: is("x", "2")}, Right: is("y", "3")}))},
		{`{a="b"} | x = -1h30m`, log(where(&logql.CompareCond{Name: "x", Op: logql.EQ, Value: -5400, Unit: logql.Duration, Text: "-1h30m"}))},
		{`{a="b"} | x >= 1.5KiB`, log(where(&logql.CompareCond{Name: "x", Op: logql.GE, Value: 1536, Unit: logql.Bytes, Text: "1.5KiB"}))},
		{`{a="b"} | x != 1e3`, log(where(&logql.CompareCond{Name: "x", Op: logql.NE, Value: 1000, Text: "1e3"}))},
		{`{a="b"} | x != ip("10.0.0.0/8")`, log(where(&logql.IPCond{Name: "x", Op: logql.NotEqual, Text: "10.0.0.0/8"}))},
		{`{a="b"} | drop x, y=~"z"`, log(&logql.Drop{Labels: []logql.NameMatch{{Name: "x"}, {Name: "y", Op: logql.Matches, Value: "z"}}})},
		{`sum_over_time({a="b"}[1d] offset -1h | unpack | unwrap bytes(x) | y="1" | z="2")`, &logql.RangeAgg{Op: "sum_over_time", Range: logql.LogRange{
			Log: log(&logql.Unpack{}), Window: 24 * time.Hour, Offset: -time.Hour,
			Unwrap: &logql.Unwrap{Label: "x", Convert: "bytes", Filters: []logql.Cond{is("y", "1"), is("z", "2")}}}}},
		{`topk by (x) (3, rate({a="b"}[1m]))`, &logql.VectorAgg{Op: "topk", Param: 3, Grouping: &logql.Grouping{Labels: []string{"x"}}, Of: rate()}},
		{`1 - 2 - 3`, &logql.Binary{Op: "-", Left: &logql.Binary{Op: "-", Left: n(1), Right: n(2)}, Right: n(3)}},
		{`1 ^ 2 ^ -3 * 4`, &logql.Binary{Op: "*", Left: &logql.Binary{Op: "^", Left: n(1), Right: &logql.Binary{Op: "^", Left: n(2), Right: n(-3)}}, Right: n(4)}},
		{`1 + 2 > bool 3`, &logql.Binary{Op: ">", Bool: true, Left: &logql.Binary{Op: "+", Left: n(1), Right: n(2)}, Right: n(3)}},
		{`rate({a="b"}[1m]) or rate({a="b"}[1m]) unless on () vector(1)`, &logql.Binary{Op: "or", Left: rate(),
			Right: &logql.Binary{Op: "unless", Matching: &logql.Matching{On: true}, Left: rate(), Right: &logql.Vector{Value: 1}}}},
	} {
		tree, err := logql.Parse(c.query)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
		} else if !reflect.DeepEqual(tree, c.want) {
			t.Errorf("%s\n got %s\nwant %s", c.query, tree, c.want)
		}
	}
}

// TestPositions ensures that lines and columns are of runes, from 1.
func TestPositions(t *testing.T) {
	for query, want := range map[string][2]int{
		"":                                  {1, 1},
		"{a=\"é日本\"} ?":                     {1, 11},
		"{a=\"b\"}\n  |= \"é\"\n\t| json ?": {3, 9},
		"{a=\"b\"} # ?\n ?":                 {2, 2},
		"{a=`\n\n`} ?":                      {3, 4},
	} {
		_, err := logql.Parse(query)
		var e *logql.Error
		if !errors.As(err, &e) || [2]int{e.Line, e.Col} != want {
			t.Errorf("%q: %v, want line and column %v", query, err, want)
		}
	}
}

// TestLocate ensures that an error about a text gets its place.
func TestLocate(t *testing.T) {
	wrong := errors.New("wrong")
	err := fmt.Errorf("stage: %w", &logql.TextError{Text: "{{x}}", Err: wrong})
	for query, want := range map[string]string{
		"{a=\"é\"} | line_format `{{x}}`":            "parse error at line 1, col 23: wrong",
		"{} # {{x}}\n| label_format a=\"{{\\x78}}\"": "parse error at line 2, col 18: wrong",
		"{} | line_format \"x\"":                     "stage: wrong",
	} {
		if got := logql.Locate(query, err).Error(); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := logql.Locate("{a=\"wrong\"}", wrong); got != wrong {
		t.Error(got)
	}
}

// TestFormat ensures that the pretty form is one that people can read.
func TestFormat(t *testing.T) {
	for query, want := range map[string]string{
		`{service_name="web"} |= "x"`: "{service_name=\"web\"}\n  |= \"x\"",
		`sum(rate({a="b"}[1m]))/2`:    `sum(rate({a="b"}[1m])) / 2`,
		`topk(2,sum by(x)(rate({a="b"}|json|x>5[1m] offset 1h)))*(vector(1)+2)`: `topk(2,
  sum by (x) (
    rate(
      {a="b"}
        | json
        | x>5
        [1m] offset 1h
    )
  )
)
*
(
  vector(1) + 2
)`,
		`quantile_over_time(0.9,{a="b"}|unwrap x[1m])by(y)`: `quantile_over_time(
  0.9,
  {a="b"}
    | unwrap x
    [1m]
) by (y)`,
	} {
		tree, err := logql.Parse(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		} else if got := logql.Format(tree); got != want {
			t.Errorf("%s\n got\n%s\nwant\n%s", query, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/grafana.txt")
	if err != nil {
		f.Fatal(err)
	}
	for query := range strings.Lines(string(data)) {
		f.Add(query)
	}
	for _, q := range readJudged(f) {
		f.Add(q.query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		tree, err := logql.Parse(query)
		if err == nil {
			same(t, query, tree)
			return
		}
		var e *logql.Error
		if !errors.As(err, &e) || e.Msg == "" {
			t.Fatalf("%q: %v", query, err)
		}
	})
}
