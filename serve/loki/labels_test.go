package loki_test

import (
	"slices"
	"strings"
	"testing"

	"blobtail/serve/loki"
)

// Fields that the operator names are labels of streams, in every answer.
func TestLabels(t *testing.T) {
	w := newWorld(t, func(o *loki.Options) { o.Labels = []string{"region"} })
	w.log("web", "info", noon-minute, "a", `"region":"eu","n":1`)
	w.log("web", "error", noon-2*minute, "b", `"region":"us","n":1`)
	w.log("orders", "info", noon-3*minute, "c", `"n":2`)
	get := func(path string, params ...string) answer { return w.get("/loki/api/v1/"+path, params...) }
	get("labels").is(t, 200, `{"status":"success","data":["level","region","service_name"]}`)
	get("label/region/values").is(t, 200, `{"status":"success","data":["eu","us"]}`)
	get("label/region/values", "query", `{level="error"}`).is(t, 200, `{"status":"success","data":["us"]}`)
	get("series").is(t, 200, `{"status":"success","data":[{"region":"eu","service_name":"web"},{"region":"us","service_name":"web"},{"service_name":"orders"}]}`)
	get("series", "match[]", `{region="us"}`).is(t, 200, `{"status":"success","data":[{"region":"us","service_name":"web"}]}`)
	withoutStats(get("query", "query", `count_over_time({region=~".+"}[1h])`)).is(t, 200, `{"status":"success","data":{"resultType":"vector","result":[`+
		`{"metric":{"region":"eu","service_name":"web"},"value":[1795348800,"1"]},{"metric":{"region":"us","service_name":"web"},"value":[1795348800,"1"]}]}}`)
	r := decode(t, w.ask("GET", queryRange, grafana(), "query", `{service_name="web"}`))
	if len(r.streams) != 2 || r.streams[0].labels["region"] != "eu" || r.streams[0].values[0].metadata["n"] != "1" {
		t.Errorf("the streams are %v", r.streams)
	}
	if r := decode(t, get("index/volume", "query", `{region="eu"}`)); len(r.series) > 0 { // listings do not know regions
		t.Errorf("volumes by region are %v", r.series)
	}
}

// The series of services with a level are found without the others.
func TestSeriesByLevel(t *testing.T) {
	w := shop(t)
	w.get("/loki/api/v1/series", "match[]", `{level="error"}`).is(t, 200, `{"status":"success","data":[{"service_name":"web"}]}`)
	w.get("/loki/api/v1/series", "match[]", `{status="200"}`).is(t, 200, `{"status":"success","data":[{"service_name":"web"}]}`)
	w.get("/loki/api/v1/label/level/values", "query", `{service_name="web"}`).is(t, 200, `{"status":"success","data":["error","info"]}`)
}

// Volumes are sums of lengths of lines, and add up however they are divided.
func TestVolumes(t *testing.T) {
	w := shop(t)
	sizes := map[string]int{}
	for _, s := range decode(t, w.ask("GET", "/json"+queryRange, grafana(), "query", `{}`)).streams {
		for _, v := range s.values {
			sizes[s.labels["service_name"]] += len(v.line) + 1
		}
	}
	ask := func(path, query, by string) (names []string, sum int) {
		for _, s := range decode(t, w.get("/loki/api/v1/index/"+path, "query", query, "targetLabels", by, "step", "60")).series {
			n := 0
			for _, p := range s.points {
				n += atoi(t, p.value)
			}
			names = append(names, s.labels["service_name"]+s.labels["level"])
			if by == "service_name" && n != sizes[s.labels["service_name"]] {
				t.Errorf("%s has %d bytes, want %d", s.labels["service_name"], n, sizes[s.labels["service_name"]])
			}
			sum += n
		}
		return names, sum
	}
	for _, path := range []string{"volume", "volume_range"} {
		for by, want := range map[string]string{"service_name": "web orders", "level": "warn error info", "service_name,level": "orderswarn webinfo weberror"} {
			names, sum := ask(path, `{}`, by)
			fields := strings.Fields(want)
			slices.Sort(names)
			slices.Sort(fields)
			if all := sizes["web"] + sizes["orders"]; !slices.Equal(names, fields) || sum < all-2 || sum > all+2 {
				t.Errorf("%s by %s has %q with %d bytes, want %q with %d", path, by, names, sum, fields, all)
			}
		}
		if names, _ := ask(path, `{}`, "status"); names != nil {
			t.Errorf("%s by a field has %q", path, names)
		}
	}
	if names, _ := ask("volume", `{}`, "service_name"); names[0] != "web" {
		t.Errorf("the largest is not the first: %q", names)
	}
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	for _, c := range text {
		if c < '0' || c > '9' {
			t.Fatalf("%q is no whole number", text)
		}
		n = 10*n + int(c-'0')
	}
	return n
}
