package logql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"blobtail/logql"
)

// TestHostile ensures that texts which are as long, as deep or as costly as can be take little
// time, whether they are refused or not. A query that grows with the square of its length would
// take minutes.
func TestHostile(t *testing.T) {
	const tooLong = 20 * time.Second // on a busy machine, with the race detector
	long := func(before, each, after string) string {
		n := (logql.MaxText - len(before) - len(after)) / len(each)
		return before + strings.Repeat(each, n) + after
	}
	most := strings.Repeat("a", 32<<10)
	for name, c := range map[string]struct {
		query string
		want  string // of the error; "": it is taken
	}{
		"too long":              {long(`{a="`, "b", `"}`) + "bbbbbbbbb", "input size too long"},
		"brackets":              {long("", "(", ""), "nested deeper than 100"},
		"brackets of ranges":    {long("rate(", "(", ""), "nested deeper than 100"},
		"brackets of filters":   {long(`{} | `, "(", ""), "nested deeper than 100"},
		"aggregations":          {long("", "sum(", ""), "nested deeper than 100"},
		"powers":                {long("1", "^1", ""), "nested deeper than 100"},
		"sums":                  {long("1", "+1", ""), "more than 1000 operators"},
		"signs":                 {long("", "+", ""), "unexpected +"},
		"filters":               {long(`{}`, `|=""`, ""), ""},
		"one filter":            {long(`{}|=""`, `or""`, ""), ""},
		"stages":                {long(`{}`, "|json", ""), ""},
		"conditions":            {long(`{}|a=1`, " b=1", ""), ""},
		"alternatives":          {long(`{}|a=1`, " or b=1", ""), ""},
		"matchers":              {long(`{`, `a="",`, "}"), ""},
		"names":                 {long(`{}|drop a`, ",a", ""), ""},
		"labels":                {long("sum by(a", ",a", ")(rate({}[1m]))"), ""},
		"a name":                {long(`{`, "a", `=""}`), ""},
		"comments":              {long(``, "#\n", `{}`), ""},
		"newlines":              {long(``, "\n", `?`), "unexpected character"},
		"a path":                {long(`{}|json a="a`, ".a", `"`), ""},
		"a path of elements":    {long("{}|json a=`a", "[0]", "`"), ""},
		"a path without end":    {long("{}|json a=`a", "[", "`"), "invalid JSON path"},
		"a pattern":             {long("{}|pattern `<a>", " <_>", "`"), ""},
		"a pattern not closed":  {long("{}|pattern `", "<", "`"), "at least one capture"},
		"half patterns":         {long("{}|pattern `", "<a ", "`"), "at least one capture"},
		"long half patterns":    {long("{}|pattern `", "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "`"), "at least one capture"},
		"an address":            {long(`{}|=ip("`, "1", `")`), "no address"},
		"a number":              {long("", "9", ""), "out of range"},
		"a duration":            {long("rate({}[", "1ns", "])"), ""},
		"text without end":      {long(`{a="`, `\"`, ""), "not terminated"},
		"an expression":         {`{a=~"` + most + `"}`, ""},
		"a long expression":     {`{a=~"` + most + `a"}`, "at most 32768"},
		"repeats":               {`{a=~"` + strings.Repeat("(a{999})", 4000) + `"}`, "too large"},
		"repeats of repeats":    {`{a=~"((a{100}){100}){100}"}`, "invalid repeat count"},
		"many expressions":      {long(`{`, `a=~"x{999}",`, "}"), "too large together"},
		"classes":               {`{a=~"` + strings.Repeat(`\\pL`, 10_000) + `"}`, "too large"},
		"deep expressions":      {`{a=~"` + strings.Repeat("(", 32<<10) + `"}`, "error parsing regexp"},
		"alternatives of texts": {`{a=~"x` + strings.Repeat("|y", 16_000) + `"}`, ""},
	} {
		start := time.Now()
		tree, err := logql.Parse(c.query)
		if took := time.Since(start); took > tooLong {
			t.Errorf("%s: parsing took %v", name, took)
		}
		switch {
		case c.want != "" && err == nil:
			t.Errorf("%s: was taken", name)
		case c.want != "":
			var e *logql.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
				t.Errorf("%s: %.200v, want %q", name, err, c.want)
			} else if len(e.Msg) > 300 {
				t.Errorf("%s: a message of %d bytes", name, len(e.Msg))
			}
		case err != nil:
			t.Errorf("%s: %.200v", name, err)
		default:
			start = time.Now()
			_ = tree.String()
			_ = logql.Format(tree)
			if took := time.Since(start); took > tooLong {
				t.Errorf("%s: printing took %v", name, took)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, query := range map[string]string{
		"histogram": "sum by (level, detected_level) (count_over_time({service_name=\"web\"} |= `` | drop __error__[1m]))",
		"drilldown": "{service_name=\"web\"} |= `basket` | json | logfmt | drop __error__, __error_details__ | status=\"502\"",
		"ratio":     `sum(rate({service_name="web"} | level="error" [5m])) / sum(rate({service_name="web"}[5m]))`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := logql.Parse(query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
