package loki_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/serve/loki"
)

const instant = "/loki/api/v1/query"

// Numbers come in the shapes of Loki, each to the byte. The first is the question by which
// Grafana tests a data source.
func TestNumbers(t *testing.T) {
	w := newWorld(t)
	for i := range int64(6) {
		w.log("web", []string{"info", "error"}[i%2], noon-(6-i)*30*second, fmt.Sprintf("m%d", i), `"path":"/a"`)
	}
	vector := func(result string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[` + result + `]}}`
	}
	matrix := func(result string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":[` + result + `]}}`
	}
	for _, c := range []struct {
		path, query, params string
		body                string
	}{
		{instant, "vector(1)+vector(1)", "direction=backward&time=4000000000", vector(`{"metric":{},"value":[4000000000,"2"]}`)},
		{instant, "1+1.5", "time=4", `{"status":"success","data":{"resultType":"scalar","result":[4,"2.5"]}}`},
		{instant, "vector(1)/vector(0)", "time=4.0625", vector(`{"metric":{},"value":[4.062,"+Inf"]}`)},
		{instant, `sum by (level, detected_level) (count_over_time({service_name="web"} |= "" | drop __error__[1h]))`, "",
			vector(`{"metric":{"detected_level":"error","level":"error"},"value":[1795348800,"3"]},{"metric":{"detected_level":"info","level":"info"},"value":[1795348800,"3"]}`)},
		{instant, `count_over_time({service_name="nobody"}[1h])`, "", vector("")},
		{instant, `count_over_time({service_name="web"}[1h])`, "", vector(`{"metric":{"service_name":"web"},"value":[1795348800,"6"]}`)},
		{queryRange, `sum by (detected_level) (count_over_time({service_name="web"}[1m]))`, "start=1795348610&end=1795348811&step=60s",
			matrix(`{"metric":{"detected_level":"error"},"values":[[1795348680,"1"],[1795348740,"1"],[1795348800,"1"]]},` +
				`{"metric":{"detected_level":"info"},"values":[[1795348680,"1"],[1795348740,"1"],[1795348800,"1"]]}`)},
		{queryRange, `sum by (path) (rate({service_name="web"} | level="error" [30s]))`, "start=1795348799.5&end=1795348800.5&step=500ms",
			matrix(`{"metric":{"path":"/a"},"values":[[1795348799.5,"0.03333333333333333"],[1795348800,"0.03333333333333333"]]}`)},
		{queryRange, `vector(1)`, "start=60&end=120&step=60", matrix(`{"metric":{},"values":[[60,"1"],[120,"1"]]}`)},
	} {
		params := []string{"query", c.query}
		for pair := range strings.SplitSeq(c.params, "&") {
			if name, value, ok := strings.Cut(pair, "="); ok {
				params = append(params, name, value)
			}
		}
		a := w.ask("POST", c.path, grafana(), params...)
		decode(t, a)
		withoutStats(a).is(t, 200, c.body)
	}
}

// An index and a scan give the same numbers, for queries that both can answer.
func TestIndexAgreesWithScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	indexed := newWorld(t)
	scanned := newWorld(t, func(o *loki.Options) { o.Scan = true })
	worlds := []*world{indexed, scanned}
	levels := []string{"trace", "debug", "info", "warn", "error", "critical", "odd"}
	for _, service := range []string{"web", "orders", "web-2"} {
		var recs []rec
		for range 400 {
			at := noon - rng.Int64N(3*hour)
			if rng.IntN(3) == 0 {
				at -= at % second // full seconds and minutes are where windows end
			}
			if rng.IntN(5) == 0 {
				at -= at % minute
			}
			recs = append(recs, rec{at, canonical(service, levels[rng.IntN(len(levels))], at, "m", `"status":200`)})
		}
		for _, w := range worlds {
			w.add(service, slices.Clone(recs)...)
		}
	}
	selectors := []string{`{service_name="web"}`, `{}`, `{service_name=~"web.*"}`, `{service_name!="web"}`, `{level="error"}`, `{service_name="web",detected_level=~"e.*|w.*"}`}
	stages := []string{"", " |= ``", " | drop __error__", " | detected_level!=\"\"", ` | level="error" or level="info"`, ` | level!="unknown"`}
	around := []string{"%s", "sum(%s)", "sum by (level) (%s)", "sum by (level,detected_level) (%s)", "sum by (service_name) (%s)", "sum by (service_name,level) (%s)", "max by (service_name) (%s)", "topk(2, sum by (level) (%s))", "count(%s)"}
	windows := []string{"1m", "5m", "90s", "1h", "7m", "10s", "1h30m"}
	steps := []string{"60", "30s", "1m30s", "1h", "5m", "7s"}
	some, queries := 0, testkit.Share(300, 60)
	for range queries {
		op := []string{"count_over_time", "rate"}[rng.IntN(2)]
		offset := []string{"", " offset 5m", " offset 77s"}[rng.IntN(3)]
		q := fmt.Sprintf(around[rng.IntN(len(around))], op+"("+selectors[rng.IntN(len(selectors))]+stages[rng.IntN(len(stages))]+"["+windows[rng.IntN(len(windows))]+"]"+offset+")")
		start := noon - rng.Int64N(4*hour)
		if rng.IntN(2) == 0 {
			start -= start % minute
		}
		params := []string{"query", q, "start", text(start), "end", text(min(noon+hour, start+rng.Int64N(3*hour))), "step", steps[rng.IntN(len(steps))]}
		path := queryRange
		if rng.IntN(3) == 0 {
			path, params = instant, []string{"query", q, "time", text(start)}
		}
		a, b := indexed.ask("GET", path, nil, params...), scanned.ask("GET", path, nil, params...)
		r := decode(t, a)
		some += len(r.series)
		if a, b := withoutStats(a), withoutStats(b); a != b {
			t.Fatalf("%q has by index\n%s\nand by scan\n%s", params, a.body, b.body)
		}
	}
	if some < queries {
		t.Errorf("%d series in all are too few for a test", some)
	}
}

// A query is answered without decoding a record if indexes have its numbers, and only then.
func TestIndexAlone(t *testing.T) {
	w, _ := days(t)
	for query, alone := range map[string]bool{
		`sum by (level, detected_level) (count_over_time({service_name="web"} |= "" | drop __error__[1m]))`: true,
		`rate({service_name=~".+", level="error"}[5m])`:                                                     true,
		`sum by (service_name) (count_over_time({} | level!="info" [1h]))`:                                  true,
		`sum(count_over_time({} |= "web-1" [1m]))`:                                                          false,
		`sum by (n) (count_over_time({}[1m]))`:                                                              false,
		`bytes_over_time({}[1m])`:                                                                           false,
		`count_over_time({}[30s])`:                                                                          false,
	} {
		a := w.get(queryRange, "query", query, "since", "24h", "step", "60")
		if len(decode(t, a).series) == 0 || strings.Contains(a.body, `"totalBytesProcessed":0,`) != alone {
			t.Errorf("%s is answered from indexes alone: want %v: %s", query, alone, a.body[max(0, len(a.body)-300):])
		}
	}
}
