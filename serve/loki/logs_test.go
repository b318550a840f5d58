package loki_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const queryRange = "/loki/api/v1/query_range"

// withoutStats takes out the part of an answer that differs each time.
func withoutStats(a answer) answer {
	a.body = regexp.MustCompile(`,"stats":\{"summary":\{[^}]*\}\}`).ReplaceAllString(a.body, "")
	return a
}

// Lines come in the two shapes of Loki, each to the byte.
func TestLines(t *testing.T) {
	w := newWorld(t)
	w.log("web", "error", noon-second/2, "GET /basket", `"status":502,"http":{"path":"/b"},"tags":["a",1],"none":null`)
	w.log("web", "", noon-second, `say "hi" <b> & `+"\t\x01é", "")
	for _, c := range []struct {
		path   string
		header bool
		params []string
		body   string
	}{
		{queryRange, true, nil, `{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[` +
			`{"stream":{"service_name":"web"},"values":[` +
			`["1795348799500000000","GET /basket",{"structuredMetadata":{"detected_level":"error","http_path":"/b","status":"502","tags":"[\"a\",1]"}}],` +
			`["1795348799000000000","say \"hi\" <b> & \t\u0001é",{"structuredMetadata":{"detected_level":"unknown"}}]]}]}}`},
		{queryRange, false, nil, `{"status":"success","data":{"resultType":"streams","result":[` +
			`{"stream":{"detected_level":"error","http_path":"/b","service_name":"web","status":"502","tags":"[\"a\",1]"},"values":[["1795348799500000000","GET /basket"]]},` +
			`{"stream":{"detected_level":"unknown","service_name":"web"},"values":[["1795348799000000000","say \"hi\" <b> & \t\u0001é"]]}]}}`},
		{"/json" + queryRange, true, []string{"limit", "1"}, `{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[` +
			`{"stream":{"service_name":"web"},"values":[["1795348799500000000",` +
			`"{\"ts\":\"2026-11-22T11:59:59.500000000Z\",\"level\":\"error\",\"service\":\"web\",\"msg\":\"GET /basket\",\"status\":502,\"http\":{\"path\":\"/b\"},\"tags\":[\"a\",1],\"none\":null}",` +
			`{"structuredMetadata":{"detected_level":"error"}}]]}]}}`},
		{queryRange, true, []string{"query", `{service_name="nobody"}`}, `{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[]}}`},
		{queryRange, true, []string{"query", `{service_name="web"} |= "basket" | drop http_path`}, `{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[` +
			`{"stream":{"service_name":"web"},"values":[["1795348799500000000","GET /basket",` +
			`{"structuredMetadata":{"detected_level":"error","status":"502","tags":"[\"a\",1]"}}]]}]}}`},
	} {
		params := append([]string{"end", "1795348800000000000"}, c.params...)
		if !strings.Contains(strings.Join(params, " "), "query ") {
			params = append(params, "query", `{service_name="web"}`)
		}
		header := grafana()
		if !c.header {
			header = nil
		}
		a := w.ask("GET", c.path, header, params...)
		decode(t, a)
		withoutStats(a).is(t, 200, c.body)
	}
}

// The range begins with its start and ends before its end. The limit counts over all streams,
// from the end that the direction names.
func TestLimitsOfLines(t *testing.T) {
	w := newWorld(t)
	for i := range int64(10) {
		w.log([]string{"web", "orders"}[i%2], "info", noon-(10-i)*minute, fmt.Sprintf("m%d", i), "")
	}
	for _, c := range []struct {
		params string // besides the query
		want   string
	}{
		{"", "m9 m8 m7 m6 m5 m4 m3 m2 m1 m0"},
		{"limit=3", "m9 m8 m7"},
		{"limit=3&direction=FORWARD", "m0 m1 m2"},
		{"limit=3&direction=backward", "m9 m8 m7"},
		{"start=1795348500000000000&direction=forward", "m5 m6 m7 m8 m9"}, // noon - 5 min
		{"end=1795348500000000000&limit=2", "m4 m3"},
		{"end=1795348500&limit=2", "m4 m3"},
		{"end=1795348500.000000001&limit=2", "m5 m4"},
		{"end=2026-11-22T12:55:00.001%2B01:00&limit=2", "m5 m4"},
		{"since=2m", "m9 m8"},
		{"since=3600&end=1795348320", "m1 m0"},
		{"start=1795348500&end=1795348500", ""},
		{"start=1700000000&limit=3", "m9 m8 m7"}, // too long to be listed whole
		{"start=1700000000&limit=3&direction=forward", "m0 m1 m2"},
		{"start=1700000000&limit=20", "m9 m8 m7 m6 m5 m4 m3 m2 m1 m0"},
		{"start=1700000000&limit=3&end=9999999999", "m9 m8 m7"}, // beyond all times that there are
		{"start=1700000000&limit=3&end=2300-01-01T00:00:00Z", "m9 m8 m7"},
		{"start=-9999999999&limit=3&direction=forward", "m0 m1 m2"},
		{"start=1.7e9&limit=3&direction=forward", "m0 m1 m2"},
		{"interval=2m", "m9 m8 m7 m6 m5 m4 m3 m2 m1 m0"}, // each stream has one each two minutes
		{"interval=3m", "m9 m8 m5 m4 m1 m0"},
		{"interval=3m&limit=4", "m9 m8 m5 m4"},
		{"interval=3m&direction=forward", "m0 m1 m4 m5 m8 m9"},
	} {
		params := []string{"query", `{service_name=~".+"}`}
		if c.params != "" {
			for pair := range strings.SplitSeq(c.params, "&") {
				name, value, _ := strings.Cut(pair, "=")
				params = append(params, name, strings.ReplaceAll(value, "%2B", "+"))
			}
		}
		r := decode(t, w.ask("GET", queryRange, grafana(), params...))
		if got := messages(r, strings.Contains(strings.ToLower(c.params), "forward")); got != c.want {
			t.Errorf("%q has %q, want %q", c.params, got, c.want)
		}
	}
}

// messages are the lines of a result in the order of time, newest first or oldest. Within a
// stream they must be in that order.
func messages(r result, forward bool) string {
	var lines []string
	for {
		best := -1
		for i, s := range r.streams {
			if len(s.values) > 0 && (best < 0 || (s.values[0].ns < r.streams[best].values[0].ns) == forward) {
				best = i
			}
		}
		if best < 0 {
			return strings.Join(lines, " ")
		}
		lines = append(lines, r.streams[best].values[0].line)
		r.streams[best].values = r.streams[best].values[1:]
	}
}

// Each text is valid JSON, with any bytes that a template makes.
func TestEscapes(t *testing.T) {
	w := newWorld(t)
	w.log("web", "info", noon-minute, "/w== <&> \u2028 \"\\ \x7f", `"key\"<":"\u0000\n","tab\t":1`)
	for query, want := range map[string]string{
		`{service_name="web"}`: "/w== <&> \u2028 \"\\ \x7f",
		"{service_name=\"web\"} | line_format `{{b64dec \"/w==\"}}`": `\xff`,
		"{service_name=\"web\"} | line_format `{{.key__}}`":          "\x00\n",
	} {
		r := decode(t, w.ask("GET", queryRange, grafana(), "query", query))
		if got := r.streams[0].values[0].line; got != want {
			t.Errorf("%s has %q, want %q", query, got, want)
		}
	}
}
