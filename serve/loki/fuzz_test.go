package loki_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Any request has an answer: JSON that is valid, or one line of text that names the mistake. No
// request of a stranger is the server's fault.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"/loki/api/v1/query_range?query={service_name=\"web\"}&limit=3", "/json/loki/api/v1/query_range?query={} | json | line_format \"{{.msg}}\"&direction=forward",
		"/loki/api/v1/query?query=sum by (level) (rate({}[1m]))&time=1795348800.5", "/loki/api/v1/query_range?query=rate({}[1s])&step=1ms&start=1795348799&end=1795348800",
		"/loki/api/v1/label/level/values?query={}&start=2026-11-22T11:00:00Z", "/loki/api/v1/series?match[]={level=~\"e.*\"}", "/loki/api/v1/index/volume_range?query={}&step=1h&targetLabels=level,service",
		"/loki/api/v1/detected_fields?query={}|=\"G\"&line_limit=7", "/loki/api/v1/detected_field/status/values?limit=1", "/loki/api/v1/format_query?query=1+1", "/loki/api/v1/tail?query={}&delay_for=1",
		"/loki/api/v1/query_range?query={}&since=9999999h&interval=1ns", "/loki/api/v1/query?query=topk(0,vector(NaN))", "/loki/api/v1/query_range?query={}&start=-9223372036854775808&end=9223372036854775807",
		"/loki/api/v1/query?query=sum_over_time({}|unwrap status[1h])&time=9223372036854775807", "/loki/api/v1/query_range?query=vector(1)&step=9000000000&start=-9000000000000000000&end=9000000000000000000",
	} {
		path, params, _ := strings.Cut(seed, "?")
		f.Add(path, params)
	}
	w := newWorld(f)
	w.log("web", "info", noon-minute, "GET /basket", `"status":200,"http":{"a":[1]}`)
	w.log("web", "error", noon-2*minute, `{"a":{"b":"c"}}`, `"status":502`)
	w.log("orders", "odd", noon-3*minute, "a=1 b=\"c d\"", "")
	f.Fuzz(func(t *testing.T, path, params string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawQuery = path, params
		if len(params)%2 == 0 {
			r.Header = grafana()
		}
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		kind, body := rec.Header().Get("Content-Type"), rec.Body.String()
		switch {
		case strings.HasPrefix(kind, "application/json"):
			if !json.Valid([]byte(body)) || !strings.HasPrefix(body, "{") {
				t.Errorf("%s?%s: %d %q", path, params, rec.Code, body)
			}
		case rec.Code < 400 || rec.Code >= 500 || strings.Count(body, "\n") != 1 || len(body) < 4:
			t.Errorf("%s?%s: %d %q", path, params, rec.Code, body)
		}
	})
}
