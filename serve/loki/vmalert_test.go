package loki_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/reading/readingtest"
)

// vmalert asks as version 1.151.0 does: by POST, with all parameters in the URL, no body, and the
// content type of JSON.
func (w *world) vmalert(path string, params url.Values) answer {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/loki"+path+"?"+params.Encode(), nil)
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	w.api.ServeHTTP(got, r)
	return answer{got.Code, got.Header().Get("Content-Type"), got.Body.String()}
}

// The requests of vmalert are answered: an evaluation, with a time in the zone of its host and a step
// that has no effect, and a part of a replay. It reads no warnings, so an answer that lacks records
// is an error for it. integration/vmalert runs vmalert itself.
func TestVmalert(t *testing.T) {
	w := newWorld(t)
	for i := range int64(6) {
		w.log("web", "error", noon-(6-i)*30*second, "m", "")
	}
	evaluate := url.Values{"query": {`sum by (service_name) (count_over_time({level="error"}[2m])) > 1`}, "time": {"2026-11-22T13:00:00+01:00"}, "step": {"300s"}}
	replay := url.Values{
		"query": {`sum by (service_name) (count_over_time({level="error"}[1m]))`}, "step": {"60s"}, "nocache": {"1"},
		"start": {"2026-11-22T11:58:00Z"}, "end": {"2026-11-22T12:00:00Z"},
	}
	withoutStats(w.vmalert("/api/v1/query", evaluate)).is(t, 200,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"service_name":"web"},"value":[1795348800,"4"]}]}}`)
	withoutStats(w.vmalert("/api/v1/query_range", replay)).is(t, 200,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service_name":"web"},"values":[[1795348680,"2"],[1795348740,"2"],[1795348800,"2"]]}]}}`)

	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "held"})
	h.Kill(0)
	dead := inhabited(t, h)
	now := time.Now().UTC().Format(time.RFC3339)
	for path, params := range map[string]url.Values{
		"/api/v1/query":       {"query": evaluate["query"], "time": {now}},
		"/api/v1/query_range": {"query": replay["query"], "start": {now}, "end": {now}, "step": {"60s"}},
	} {
		if a := dead.vmalert(path, params); a.code != http.StatusInternalServerError || !strings.HasPrefix(a.body, "incomplete: ingester ") {
			t.Errorf("%s without an ingester: %d %s", path, a.code, a.body)
		}
	}
}
