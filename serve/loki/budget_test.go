package loki_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/units"
)

// allocated is how many bytes the process has allocated.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// within gives each request a budget, and a time.
func (w *world) within(l budget.Limits, patience time.Duration) {
	next, pool := w.api, budget.NewPool(l)
	w.api = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), patience)
		defer stop()
		ctx, made := pool.Begin(ctx)
		defer made.End()
		next.ServeHTTP(rw, r.WithContext(ctx))
	})
}

// each is a text for each number, with a text between them.
func each(n int, between, form string) string {
	var parts []string
	for i := range n {
		parts = append(parts, strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
	}
	return strings.Join(parts, between)
}

// A query that would make more than it may is refused with both figures, on each route that forms
// answers, and little memory is used.
func TestMadeTooMuch(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	const most = 8 << 20
	w := newWorld(t)
	for i := range int64(40) {
		w.log("web", "info", noon-minute-i*second, "m", fmt.Sprintf(`"n":%d`, i))
	}
	w.within(budget.Limits{Query: most}, time.Minute)
	labels := `{service_name="web"} | label_format ` + each(200, ",", "a%d=`{{repeat 1000000 \"x\"}}`")
	variables := `{service_name="web"} | line_format "` + each(200, "", "{{$a%d:=repeat 1000000 `x`}}") + `z"`
	classes := `{service_name="web"}` + each(30, "", ` |~ "^%d`+strings.Repeat("(", 400)+`[\\pL\\pN]`+strings.Repeat(")", 400)+`$"`)
	for path, queries := range map[string][]string{
		queryRange: {
			labels, variables, classes, `count_over_time(` + labels + ` [1m])`, `sum by (a1) (count_over_time(` + labels + ` [1m]))`, `bytes_over_time(` + variables + ` [1m])`,
			`count_over_time({service_name="web"} | label_format a="{{repeat 300000 .n}}" [1m])`,
		},
		"/loki/api/v1/query":                   {`count_over_time(` + labels + ` [5m])`, `sum by (a1) (count_over_time(` + labels + ` [5m]))`},
		"/json/loki/api/v1/query_range":        {labels, variables},
		"/loki/api/v1/detected_fields":         {variables + ` |= "q"`},
		"/loki/api/v1/detected_field/n/values": {variables + ` |= "q"`},
	} {
		for _, query := range queries {
			before := allocated()
			a := w.get(path, "query", query, "start", text(noon-hour), "end", text(noon), "step", "1", "time", text(noon), "limit", "1000")
			if a.code != http.StatusBadRequest || !strings.Contains(a.body, "limit: 8MiB") || !strings.Contains(a.body, "query: ") {
				t.Errorf("%s %.60s: %d %.300s", path, query, a.code, a.body)
			}
			if made := allocated() - before; made > 30*most {
				t.Errorf("%s %.60s makes %d bytes", path, query, made)
			}
		}
	}
}

// An answer with long lines has as many of the newest as it may, and says so to each client. The
// same holds for values of a field.
func TestLongLines(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	const lines = 60
	w := newWorld(t)
	for i := range int64(lines) {
		w.log("web", "info", noon-minute-i*second, fmt.Sprint(i, " ", strings.Repeat("x", 200_000)), "")
		w.log("fields", "info", noon-minute-i*second, fmt.Sprint(i), fmt.Sprintf(`"stack":"%d %s"`, i, strings.Repeat(`y\n`, 100_000)))
	}
	w.within(budget.Limits{Query: 12 << 20, Sure: 1 << 20}, time.Minute)
	for _, query := range []string{`{service_name="web"}`, `{service_name="fields"}`, `{service_name="web"} | line_format "{{repeat 200000 \"x\"}}"`, `{service_name="web"} | label_format a="{{.msg}}"`} {
		for _, header := range []http.Header{nil, grafana()} {
			for direction, newest := range map[string]int64{"backward": noon - minute, "forward": noon - minute - (lines-1)*second} {
				a := w.ask(http.MethodGet, queryRange, header, "query", query, "start", text(noon-hour), "end", text(noon), "limit", "1000", "direction", direction)
				var got struct {
					Data     struct{ Result []struct{ Values [][]any } }
					Warnings []string
				}
				if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK {
					t.Fatalf("%s: %d %.300s %v", query, a.code, a.body, err)
				}
				n, first := 0, false
				for _, s := range got.Data.Result {
					for _, v := range s.Values {
						n++
						first = first || v[0] == text(newest)
					}
				}
				if n < 3 || n == lines || !first || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], fmt.Sprintf("the answer ends after %s: more would take more memory than one query may hold (4MiB)", units.Count(n, "line"))) {
					t.Errorf("%s %s: %d lines, the first of them %v, %q", query, direction, n, first, got.Warnings)
				}
				if len(a.body) > 13<<20 {
					t.Errorf("%s: %d bytes", query, len(a.body))
				}
			}
		}
	}
	a := w.get("/loki/api/v1/detected_field/stack/values", "query", `{service_name="fields"}`, "start", text(noon-hour), "end", text(noon))
	if n := strings.Count(a.body, "yyy") + strings.Count(a.body, `y\ny`); a.code != http.StatusOK || n == 0 || !strings.Contains(a.body, `"warnings":["the answer ends after `) {
		t.Errorf("values: %d, %.300s", a.code, a.body)
	}
	if a := w.get("/loki/api/v1/detected_fields", "query", `{service_name="fields"}`, "start", text(noon-hour), "end", text(noon)); a.code != http.StatusOK || !strings.Contains(a.body, `"label":"stack","type":"string","cardinality":60`) {
		t.Errorf("fields: %d, %.300s", a.code, a.body)
	}
}

// A query ends at its deadline, however long its stages work on a record.
func TestDeadlineOfStages(t *testing.T) {
	testkit.FullOnly(t, "expressions that work as long as they can")
	w := newWorld(t)
	for i := range int64(30) {
		w.log("web", "info", noon-minute-i*second, strings.Repeat("a", 300_000), `"n":1`)
	}
	w.within(budget.Limits{}, 200*time.Millisecond)
	for _, query := range []string{
		"{service_name=`web`} | line_format `" + each(2000, "", "{{$b := contains \"aaaaaaab\" .msg}}") + "z`",
		"{service_name=`web`} | line_format `{{ regexReplaceAll \"a(.*q)?\" __line__ \"x$1\" }}` |= `q`",
		"{service_name=`web`} |~ `a(a| |x|=|b|\")*" + strings.Repeat("a*", 8000) + "q`",
		"count_over_time({service_name=`web`} | regexp `(?P<x>" + strings.Repeat(".*", 8000) + "q)` [1m])",
	} {
		begun := time.Now()
		a := w.get(queryRange, "query", query, "start", text(noon-hour), "end", text(noon), "step", "60")
		if took := time.Since(begun); a.code != http.StatusGatewayTimeout || took > 20*time.Second {
			t.Errorf("%.60s: %d after %v, %.200s", query, a.code, took, a.body)
		}
	}
}
