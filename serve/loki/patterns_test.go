package loki_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The text of each pattern is a filter |> that is true for its lines and no others, in both views.
func TestPatterns(t *testing.T) {
	w := newWorld(t)
	for i := range int64(20) {
		w.log("web", "info", noon-i*second-second, fmt.Sprintf("GET /basket/%d took %dms", i, 10*i), "")
		w.log("web", []string{"warn", "error"}[i%2], noon-i*minute-second, fmt.Sprintf(`user "u%d" has no <name> in C:\temp\%d`, i, i), `"n":1`)
	}
	w.log("web", "error", noon-minute, "disk full", "")
	w.log("web", "error", noon-minute, "panic: 7\ngoroutine 1", "")
	for _, view := range []string{"", "/json"} {
		a := w.get(view+"/loki/api/v1/patterns", "query", `{service_name="web"}`, "step", "10s")
		var answer struct {
			Data []struct {
				Pattern, Level string
				Samples        [][2]int64
			}
		}
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.Data) != 4 {
			t.Fatalf("%d %s: %v", a.code, a.body, err)
		}
		levels := ""
		for _, p := range answer.Data {
			levels += p.Level + ","
			n, last := int64(0), int64(0)
			for _, s := range p.Samples {
				if s[0]%10 != 0 || s[0] <= last {
					t.Errorf("%q: the times %v", p.Pattern, p.Samples)
				}
				n, last = n+s[1], s[0]
			}
			found := w.get(view+"/loki/api/v1/query", "query", fmt.Sprintf("sum(count_over_time({service_name=\"web\"} |> `%s` [1h]))", p.Pattern), "time", text(noon))
			var counted struct {
				Data struct{ Result []struct{ Value [2]any } }
			}
			if err := json.Unmarshal([]byte(found.body), &counted); err != nil || len(counted.Data.Result) != 1 || counted.Data.Result[0].Value[1] != fmt.Sprint(n) {
				t.Errorf("%s has %d lines, and |> finds %s", p.Pattern, n, found.body)
			}
		}
		if levels != "info,,error,error," {
			t.Errorf("levels %s in %s", levels, a.body)
		}
	}
	w.get("/loki/api/v1/patterns", "query", `{service_name="web"} |= "disk"`, "step", "1m").is(t, 200,
		`{"status":"success","data":[{"pattern":"disk full","level":"error","samples":[[1795348740,1]]}]}`)
}
