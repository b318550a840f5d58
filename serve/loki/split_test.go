package loki_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// days is a world with three days of records. Some of them share their time.
func days(t testing.TB) (w *world, all int) {
	rng := rand.New(rand.NewPCG(3, 4))
	w = newWorld(t)
	for _, service := range []string{"web", "orders"} {
		var recs []rec
		for i := range 900 {
			at := noon - rng.Int64N(72*hour)
			if i%3 == 0 {
				at -= at % hour
			}
			all++
			recs = append(recs, rec{at, canonical(service, []string{"info", "error", "warn"}[i%3], at, fmt.Sprintf("%s-%d", service, i), `"n":1`)})
		}
		w.add(service, recs...)
	}
	return w, all
}

// Grafana asks for the lines of some days in pieces of a day from the end, each for as many
// lines as are missing. The pieces together are the whole.
func TestSplitLines(t *testing.T) {
	w, all := days(t)
	for _, limit := range []int{100, 700, 1500, all, 5000} {
		params := func(from, to int64, limit int) []string {
			return []string{"direction", "backward", "query", `{service_name=~".+"}`, "start", text(from), "end", text(to), "limit", text(int64(limit)), "step", "60000ms"}
		}
		whole := decode(t, w.ask("GET", queryRange, grafana(), params(noon-72*hour, noon, limit)...))
		var pieces []result
		missing := limit
		for to := noon; to > noon-72*hour && missing > 0; to -= 24 * hour {
			r := decode(t, w.ask("GET", queryRange, grafana(), params(to-24*hour, to, missing)...))
			pieces = append(pieces, r)
			missing -= len(lines(r))
		}
		got, want := lines(pieces...), lines(whole)
		if !maps.Equal(got, want) || len(want) != min(limit, all) {
			t.Errorf("with the limit %d, %d lines in pieces, %d at once", limit, len(got), len(want))
		}
	}
}

// lines counts the lines of results by time and line.
func lines(all ...result) map[string]int {
	n := map[string]int{}
	for _, r := range all {
		for _, s := range r.streams {
			for _, v := range s.values {
				n[fmt.Sprint(v.ns, v.line, s.labels, v.metadata)]++
			}
		}
	}
	return n
}

// Grafana asks for numbers of some days in pieces that are multiples of the step, each ending a
// step before the next one begins. The pieces together are the whole.
func TestSplitNumbers(t *testing.T) {
	w, _ := days(t)
	for _, query := range []string{
		`sum by (level, detected_level) (count_over_time({service_name="web"} |= "" | drop __error__[STEP]))`,
		`rate({service_name=~".+"}[5m])`,
		`sum by (n) (count_over_time({service_name="web"} |= "web-1" [STEP]))`,
	} {
		for _, step := range []int64{minute, 7 * minute, hour, 24 * hour} {
			q := strings.ReplaceAll(query, "STEP", fmt.Sprintf("%ds", step/second))
			ask := func(from, to int64) result {
				return decode(t, w.ask("GET", queryRange, grafana(), "query", q, "start", text(from), "end", text(to), "step", fmt.Sprintf("%dms", step/1e6)))
			}
			from, to := noon-72*hour+13*second, noon-17*second
			whole := ask(from, to)
			points := map[string][]point{}
			pieces := 0
			size := max(step, 24*hour/step*step)
			for start := from - from%step; start <= to; start += size {
				end := min(to, start+size-step)
				for _, s := range ask(start, end).series {
					points[fmt.Sprint(s.labels)] = append(points[fmt.Sprint(s.labels)], s.points...)
				}
				pieces++
			}
			if pieces < 3 || len(whole.series) == 0 {
				t.Fatalf("%d pieces, %d series", pieces, len(whole.series))
			}
			for _, s := range whole.series {
				if got := points[fmt.Sprint(s.labels)]; !slices.Equal(got, s.points) {
					t.Errorf("%s by %d ms, %v: %d points in %d pieces, %d at once", q, step/1e6, s.labels, len(got), pieces, len(s.points))
				}
				delete(points, fmt.Sprint(s.labels))
			}
			if len(points) > 0 {
				t.Errorf("%s: only pieces have %v", q, points)
			}
		}
	}
}

// page reads all lines of a range as logcli does: it goes on with the time of the last line, and
// drops the lines of that time that it has already.
func page(t *testing.T, w *world, batch int, forward bool) (got []string) {
	from, to, direction := noon-72*hour, noon, "BACKWARD"
	if forward {
		direction = "FORWARD"
	}
	var last []string // of the time at which the next page begins
	for {
		r := decode(t, w.get(queryRange, "direction", direction, "limit", text(int64(batch+len(last))), "query", `{service_name="web"}`, "start", text(from), "end", text(to)))
		var some []value
		for _, s := range r.streams {
			some = append(some, s.values...)
		}
		slices.SortStableFunc(some, func(a, b value) int {
			if forward {
				return cmp.Compare(a.ns, b.ns)
			}
			return cmp.Compare(b.ns, a.ns)
		})
		fresh := slices.DeleteFunc(slices.Clone(some), func(v value) bool { return slices.Contains(last, v.line) })
		if len(fresh) == 0 {
			return got
		}
		end := some[len(some)-1].ns
		last = nil
		for _, v := range some {
			if v.ns == end {
				last = append(last, v.line)
			}
		}
		for _, v := range fresh {
			got = append(got, v.line)
		}
		if from, to = noon-72*hour, end+1; forward {
			from, to = end, noon
		}
	}
}

// The pages of logcli have each line once, even where more lines share a time than fit a page.
func TestPages(t *testing.T) {
	w, _ := days(t)
	for i := range int64(12) {
		w.log("web", "info", noon-5*hour, fmt.Sprintf("same %d", i), "")
	}
	for _, forward := range []bool{false, true} {
		for _, batch := range []int{7, 30, 1000} {
			got := page(t, w, batch, forward)
			once := slices.Compact(slices.Sorted(slices.Values(got)))
			if len(got) != 912 || len(once) != 912 {
				t.Errorf("pages of %d, forward %v: %d lines, %d of them different", batch, forward, len(got), len(once))
			}
		}
	}
}
