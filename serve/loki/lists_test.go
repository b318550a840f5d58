package loki_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// shop is a world with some services.
func shop(t *testing.T) *world {
	w := newWorld(t)
	w.log("web", "info", noon-minute, "GET /basket", `"status":200`)
	w.log("web", "error", noon-2*minute, "GET /pay", `"status":502`)
	w.log("orders", "warn", noon-3*minute, "slow", "")
	w.log("_rejected", "", noon-3*minute, "rubbish", "")
	return w
}

// The answers that need no records, and those about services, have the shapes of Loki.
func TestLists(t *testing.T) {
	w := shop(t)
	for _, c := range []struct {
		path   string
		params []string
		body   string
	}{
		{"labels", nil, `{"status":"success","data":["level","service_name"]}`},
		{"label", nil, `{"status":"success","data":["level","service_name"]}`},
		{"labels", []string{"start", "1795348800", "end", "1795348800"}, `{"status":"success","data":["level","service_name"]}`},
		{"label/service_name/values", nil, `{"status":"success","data":["orders","web"]}`},
		{"label/service/values", []string{"query", `{service_name=~"w.*"}`}, `{"status":"success","data":["web"]}`},
		{"label/service_name/values", []string{"query", `{service_name=~"_.*"}`}, `{"status":"success","data":["_rejected"]}`},
		{"label/color/values", nil, `{"status":"success","data":[]}`},
		{"label/__stream_shard__/values", nil, `{"status":"success","data":[]}`},
		{"series", nil, `{"status":"success","data":[{"service_name":"orders"},{"service_name":"web"}]}`},
		{"series", []string{"match[]", `{service_name="web"}`, "match[]", `{service_name="orders"}`}, `{"status":"success","data":[{"service_name":"orders"},{"service_name":"web"}]}`},
		{"series", []string{"match", `{service="web"}`}, `{"status":"success","data":[{"service_name":"web"}]}`},
		{"patterns", []string{"query", `{service_name="nosuch"}`}, `{"status":"success","data":[]}`},
		{"status/buildinfo", nil, `{"version":"1.2.3","revision":"abcdef","branch":"","buildDate":"","buildUser":"","goVersion":"` + runtime.Version() + `"}`},
		{"drilldown-limits", nil, `{"limits":{"max_entries_limit_per_query":5000,"max_query_length":"0s","max_query_range":"0s","max_query_series":500,"query_timeout":"2m0s","volume_enabled":true,"pattern_persistence_enabled":true,"retention_period":"0s"},"pattern_ingester_enabled":true,"version":"1.2.3"}`},
		{"format_query", []string{"query", `{service_name="web"}|="x"`}, `{"status":"success","data":"{service_name=\"web\"}\n  |= \"x\""}`},
	} {
		for _, prefix := range []string{"/loki/api/v1/", "/json/loki/api/v1/", "/loki/api/v1/loki/api/v1/"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				a := w.ask(method, prefix+c.path, nil, c.params...)
				a.is(t, 200, c.body)
				if a.kind != "application/json; charset=UTF-8" {
					t.Errorf("%s is of the type %q", c.path, a.kind)
				}
			}
		}
	}
	w.get("/prometheus/api/v1/rules").is(t, 200, `{"status":"success","data":{"groups":[]}}`)
}

// Features that are not here are told by the text that Grafana looks for, and senders are told
// where to send.
func TestNotHere(t *testing.T) {
	w := shop(t)
	for _, path := range []string{
		"/loki/api/v1/rules", "/loki/api/v1/rules/x", "/loki/api/v2alpha/tail", "/api/prom/query", "/loki/api/v1/", "/loki/api/v1/label/x",
		"/loki/api/v1/label//values", "/json/api/v1/records", "/",
	} {
		if a := w.get(path); a.code != 404 || !strings.HasPrefix(a.body, "404 page not found; Loki's API has here: /loki/api/v1/detected_fields, ") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	a := w.ask(http.MethodPost, "/loki/api/v1/push", nil)
	a.is(t, 405, "logs are only read here: send them to an ingester, which listens on port 8514 unless it is told otherwise")
	w.ask(http.MethodDelete, "/loki/api/v1/labels", nil).is(t, 405, "this route takes GET and POST")
}
