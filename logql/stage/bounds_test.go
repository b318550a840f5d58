package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/logql"
	"blobtail/logql/stage"
)

// allocated is how many bytes the process has allocated.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// long is a record with a long message and many fields.
func long(n int) []byte {
	var fields strings.Builder
	for i := range n / 100 {
		fmt.Fprintf(&fields, `,"f%d":"a\"b"`, i)
	}
	return fmt.Appendf(nil, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"web","msg":"%s","list":{"a":{"b":1}}%s}`+"\n",
		strings.Repeat(`a \"x\"=b `, n/10), fields.String())
}

// deep is a record with long names of its labels.
func deep(n int) []byte {
	path := strings.Repeat(`{"`+strings.Repeat("k", 120)+`":`, 8)
	var fields strings.Builder
	for i := range n / 10 {
		fmt.Fprintf(&fields, `"x%d":1,`, i)
	}
	return fmt.Appendf(nil, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"web","msg":"m","p":%s{%s"y":1}%s}`+"\n", path, fields.String(), strings.Repeat("}", 8))
}

// each is a text for each number, with a text between them.
func each(n int, between, form string) string {
	var parts []string
	for i := range n {
		parts = append(parts, strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
	}
	return strings.Join(parts, between)
}

// work runs a query over a record by several workers, in each way in which pipelines run.
func work(b *budget.Budget, text string, line []byte, times int) error {
	tree, err := logql.Parse(text)
	if err != nil {
		return err
	}
	v := stage.View{Budget: b}
	var run []func()
	if m, ok := tree.(*logql.RangeAgg); ok {
		p, err := v.Sampler(&m.Range, stage.Wanted{})
		if err != nil {
			return err
		}
		run = append(run, func() { p.Sample(line) })
	} else {
		p, err := v.Compile(tree.(*logql.LogExpr))
		if err != nil {
			return err
		}
		run = append(run, func() { p.Keep(line) }, func() {
			var e stage.Entry
			p.Entry(line, &e)
		}, func() { v.Fields(line) })
	}
	var all sync.WaitGroup
	for _, one := range run {
		for range 3 {
			all.Go(func() {
				for n := 0; n < times && b.Err() == nil; n++ {
					one()
				}
			})
		}
	}
	all.Wait()
	return b.Err()
}

// The stages of any query make no more of a record than the budget allows: the budget ends, and
// they use little more memory than it has.
func TestMade(t *testing.T) {
	testkit.FullOnly(t, "the race detector empties the pools of package regexp, so bytes do not count")
	for text, line := range map[string][]byte{
		`{} | line_format "` + each(200, "", "{{$a%d:=repeat 1000000 `x`}}") + `z"`:                                   long(100),
		`{} | label_format ` + each(200, ",", "a%d=`{{repeat 1000000 \"x\"}}`"):                                       long(100),
		`{} | label_format ` + each(2000, ",", "a%d=`{{.msg}}`"):                                                      long(100_000),
		`{} | line_format "` + each(500, "", "{{$a%d:=print .msg}}") + `z"`:                                           long(100_000),
		`{} | line_format "` + each(500, "", "{{$a%d:=upper __line__}}") + `z"`:                                       long(100_000),
		"{} | line_format `" + each(100, "", "{{$a%d:=fromJson (print \"[\" (repeat 50000 \"[],\") \"1]\")}}") + "z`": long(100),
		"{} | line_format `" + each(500, "", "{{$a%d:=regexReplaceAll \"a\" __line__ \"bb\"}}") + "z`":                long(100_000),
		`{} | ` + each(2000, " | ", `msg!="%d"`):                                                                      long(100_000),
		`{} | json | line_format "{{.p}}"`:                                                                            deep(300_000),
		`{} | label_format x="y" | keep x, f1`:                                                                        deep(300_000),
		`count_over_time({} | label_format ` + each(200, ",", "a%d=`{{repeat 1000000 \"x\"}}`") + `[1m])`:             long(100),
		`{} |~ "^` + strings.Repeat("(", 400) + `[\\pL\\pN]` + strings.Repeat(")", 400) + `$"` + each(30, "", ` |~ "^%d`+strings.Repeat("(", 400)+`[\\pL\\pN]`+strings.Repeat(")", 400)+`$"`): long(100),
	} {
		const most = 16 << 20
		_, b := budget.NewPool(budget.Limits{Query: most}).Begin(t.Context())
		before := allocated()
		err := work(b, text, line, 2)
		var over *budget.Error
		if !errors.As(err, &over) {
			t.Errorf("%.60s: it ends with %v", text, err)
		}
		if made := allocated() - before; made > 20*most {
			t.Errorf("%.60s: %d bytes were made", text, made)
		}
		b.End()
	}
}

// Comparisons of package template do not look at the budget, so a query has few of them.
func TestComparisons(t *testing.T) {
	one := "{{if eq .a .b}}{{end}}"
	for text, enough := range map[string]bool{
		"{} | line_format `" + strings.Repeat(one, 300) + "`":                                                                          true,
		"{} | line_format `" + strings.Repeat(one, 200) + "` | label_format x=`" + strings.Repeat("{{lt .a (index .b 1)}}", 200) + "`": false,
		"{} | line_format `{{eq .a" + strings.Repeat(" .b", 1000) + "}}`":                                                              false,
	} {
		tree, err := logql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (stage.View{}).Compile(tree.(*logql.LogExpr)); (err == nil) != enough || err != nil && !strings.Contains(err.Error(), "the query compares more than 1000 values in templates") {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// A plain query has enough memory for long records, and gives all of it back.
func TestEnough(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	for _, text := range []string{
		`{}`, `{} |= "x" | json | logfmt | line_format "{{.msg | upper | trunc 50}} {{ __line__ | replace \"a\" \"b\" }}"`, `{} | label_format a="{{.msg}}", b=f1 | keep a, b`,
		`{} | msg=~".*x.*" | regexp "(?P<y>a+)" | y="a"`, `sum_over_time({} | logfmt | unwrap f1 [1m])`, `{} | line_format "{{ regexReplaceAll \"a(.)\" __line__ \"$1\" | fromJson }}"`,
	} {
		_, b := budget.NewPool(budget.Limits{}).Begin(t.Context())
		if err := work(b, text, long(300_000), 2); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := b.Take(budget.DefaultQuery - 1<<20); err != nil { // the rest has expressions and series
			t.Errorf("%s keeps more than 1 MiB: %v", text, err)
		}
		b.End()
	}
}

// The stages of a query end soon after it.
func TestEnds(t *testing.T) {
	for text, line := range map[string][]byte{
		"{} | line_format `{{$a := repeat 100000 \"ab\"}}" + each(300, "", "{{$a = $a | ToUpper | lower | trunc 200000 | title}}") + "z`": long(100),
		"{} | line_format `" + each(2000, "", "{{$b := contains \"aaaaaaab\" .msg}}") + "z`":                                              long(400_000),
		"{} | line_format `" + each(2000, "", "{{$b := float64 (repeat 900000 \"1\")}}") + "z`":                                           long(100),
		"{} | line_format `{{ regexReplaceAll \"a(.*q)?\" __line__ \"x$1\" }}`":                                                           long(400_000),
		"{} | line_format `{{ count \"a(.*q)?\" __line__ }}`":                                                                             long(400_000),
		"{} |~ `(a| |x|=|b|\")*" + strings.Repeat("a*", 8000) + "q`":                                                                      long(400_000),
		"{} | regexp `(?P<x>" + strings.Repeat(".*", 8000) + "q)`":                                                                        long(400_000),
		`{} | ` + each(2000, " or ", `z%d="1"`):                                                                                           long(400_000),
		`{} | json | ` + each(8000, " | ", `keep a%d`):                                                                                    long(400_000),
		`{} | json | keep ` + each(15000, ",", `a%d`):                                                                                     long(400_000),
		`{} | logfmt ` + each(6000, ",", `a%d="b%d"`):                                                                                     long(400_000),
		`{} | json ` + each(2000, ",", `a%d="b%d"`) + ` | ` + each(2000, " or ", `a%d="1"`):                                               long(400_000),
		`{} |= ` + each(5000, " or ", `"aa%d"`):                                                                                           long(400_000),
		`{} ` + each(3000, " ", `|~ "b%d.*q"`):                                                                                            long(400_000),
		`count_over_time({} ` + each(3000, " ", `!~ "[ab]%d"`) + `[1m])`:                                                                  long(400_000),
	} {
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, b := budget.NewPool(budget.Limits{}).Begin(ctx)
		begun := time.Now()
		err := work(b, text, line, 200)
		var over *budget.Error
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &over) || took > 20*time.Second {
			t.Errorf("%.60s: %v after %v", text, err, took)
		}
		b.End()
		stop()
	}
}

// FuzzBounds finds queries that make more than they may of a record, or that work for long.
func FuzzBounds(f *testing.F) {
	for _, text := range []string{
		"{} | line_format `{{$a := repeat 1000 .msg}}{{printf \"%s%s\" $a $a}}{{.f1 | b64enc | urlencode | title}}`", "{} | label_format a=`{{__line__ | indent 500}}`,b=a",
		`{} | json | logfmt | unpack | decolorize | keep a | drop b`, `count_over_time({} | regexp "(?P<x>.*)(?P<y>.*)" [1m])`, `{} |~ "(a*)*b" != "x" | pattern "<a> <b>"`,
		"{} | line_format `{{fromJson .msg}}{{ regexReplaceAll \"(a|b)*\" __line__ \"$1$1\" }}{{.msg | replace \"a\" \"aaaaaaaaaa\"}}`",
	} {
		f.Add(text, `a=b {"x":[1,2]}`)
	}
	f.Fuzz(func(t *testing.T, text, msg string) {
		const most = 2 << 20
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		_, b := budget.NewPool(budget.Limits{Query: most}).Begin(ctx)
		defer b.End()
		before, begun := allocated(), time.Now()
		_ = work(b, text, storedText(t, msg), 1)
		_ = work(b, text, long(20_000), 1)
		if made, took := allocated()-before, time.Since(begun); made > 512<<20 || took > 20*time.Second {
			t.Errorf("%q makes %d bytes in %v", text, made, took)
		}
	})
}
