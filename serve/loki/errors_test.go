package loki_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/storage/storagetest"
)

// Each refusal has the words that clients of Loki look for, as one line of plain text.
func TestErrors(t *testing.T) {
	w := newWorldWithin(t, 20_000)
	for i := range int64(600) {
		w.log("web", "info", noon-minute-i*int64(time.Millisecond), fmt.Sprintf("m %d, and the line is longer than that", i), fmt.Sprintf(`"n":%d`, i))
	}
	w.log("odd", "info", noon-minute, "m", `"took":"long"`)
	for _, c := range []struct {
		path, params string // as name=value, divided by ;
		code         int
		text         string
	}{
		{queryRange, `query={service_name=web}`, 400, "parse error at line 1, col 15: syntax error: unexpected IDENTIFIER, expecting STRING"},
		{queryRange, "query=", 400, "parse error"},
		{queryRange, `query={service_name="web"}|line_format "{{range .a}}{{end}}"`, 400, "parse error at line 1, col 34: the template: {{range .a}}{{end}} is not allowed"},
		{queryRange, "", 400, "parse error"},
		{instant, `query={service_name="web"}`, 400, "log queries are not supported as an instant query type, please change your query to a range query type"},
		{queryRange, `query=rate({service_name="web"}[1m]);start=0;end=1000000;step=1`, 400, "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter"},
		{queryRange, `query=rate({service_name="web"}[1m]);step=0`, 400, "zero or negative query resolution step widths are not accepted. Try a positive integer"},
		{queryRange, `query=rate({service_name="web"}[1m]);step=x`, 400, `cannot parse "x" of 'step' to a valid duration`},
		{queryRange, `query=rate({service_name="web"}[1m]);step=1e300`, 400, `cannot parse "1e300" to a valid duration. It overflows int64`},
		{queryRange, `query={service_name="web"};start=1795348800;end=1795348799`, 400, "end timestamp must not be before or equal to start time"},
		{queryRange, `query={service_name="web"};start=yesteryear`, 400, "could not parse 'start' parameter: "},
		{queryRange, `query={service_name="web"};limit=0`, 400, "limit must be a positive value"},
		{queryRange, `query={service_name="web"};limit=-1`, 400, "limit must be a positive value"},
		{queryRange, `query={service_name="web"};limit=ten`, 400, `limit must be a number, and "ten" is not`},
		{queryRange, `query={service_name="web"};limit=9000`, 400, "max entries limit per query exceeded, limit > max_entries_limit_per_query (9000 > 5000)"},
		{queryRange, `query={service_name="web"};direction=up`, 400, `invalid direction "up": it is forward or backward`},
		{queryRange, `query={service_name="web"};interval=-1`, 400, "interval must be >= 0"},
		{queryRange, `query={service_name="web"} |= "` + strings.Repeat("x", 131_072) + `"`, 400, "the query is too long: it has 131098 bytes of text, and at most 131072 are taken"},
		{instant, `query=sum by (n) (count_over_time({service_name="web"}[1h]))`, 400, "the query would read too many bytes (query: "},
		{instant, `query=sum_over_time({service_name="odd"} | unwrap took [1h])`, 400, `pipeline error: 'SampleExtractionErr' for series: '{service_name="odd"}'`},
		{instant, `query=label_replace(vector(1),"a","b","c","d")`, 400, "blobtail does not have label_replace"},
		{"/loki/api/v1/index/stats", `query=vector(1)`, 400, "vector(1) reads no lines"},
		{"/loki/api/v1/index/volume_range", `query={};start=0;end=1000000;step=1`, 400, "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter"},
		{"/loki/api/v1/series", `match[]={service_name="web"} |= "x"`, 400, `is no selector, such as {service_name="web"}`},
		{"/loki/api/v1/tail", `query=rate({service_name="web"}[1m])`, 400, "tail takes a query for lines, and this one has numbers as its result"},
		{"/loki/api/v1/tail", `query={service_name="web"};delay_for=6`, 400, "delay_for can't be greater than 5"},
		{"/loki/api/v1/tail", `query={service_name="web"}`, 426, "tail needs a WebSocket: the request has no Upgrade"},
	} {
		form := url.Values{}
		for pair := range strings.SplitSeq(c.params, ";") {
			name, value, _ := strings.Cut(pair, "=")
			form.Add(name, value)
		}
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		body := rec.Body.String()
		if rec.Code != c.code || !strings.Contains(body, c.text) || strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, "\n") {
			t.Errorf("%s %.80s: %d %.300q, want %d %q", c.path, c.params, rec.Code, body, c.code, c.text)
		}
		if kind, sniff := rec.Header().Get("Content-Type"), rec.Header().Get("X-Content-Type-Options"); kind != "text/plain; charset=utf-8" || sniff != "nosniff" {
			t.Errorf("%s %.80s: the type is %q, %q", c.path, c.params, kind, sniff)
		}
	}
}

// There may be 500 series, and not more.
func TestManySeries(t *testing.T) {
	w := newWorld(t)
	var recs []rec
	for i := range int64(501) {
		recs = append(recs, rec{noon - minute + i, canonical("web", "info", noon-minute+i, "m", fmt.Sprintf(`"n":%d`, i))})
	}
	w.add("web", recs...)
	ask := func(to int64) answer {
		return w.get(instant, "query", `sum by (n) (count_over_time({service_name="web"}[1h]))`, "time", text(noon-minute+to))
	}
	if r := decode(t, ask(500)); len(r.series) != 500 {
		t.Errorf("%d series", len(r.series))
	}
	ask(501).is(t, 400, "maximum number of series (500) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()")
}

// A store that fails is the server's fault, and a body that is too large that of the client.
func TestFailures(t *testing.T) {
	w := shop(t)
	w.faults = storagetest.Times(-1, storagetest.List, "", storagetest.Fault{Before: errors.New("no route to host")})
	a := w.get(queryRange, "query", `{service_name="web"}`)
	if a.code != 500 || !strings.HasPrefix(a.body, "storage: ") || !strings.Contains(a.body, "no route to host") {
		t.Errorf("%d %s", a.code, a.body)
	}
	w.faults = nil
	a = w.ask(http.MethodPost, queryRange, nil, "query", `{service_name="web"}`, "x", strings.Repeat("y", 1<<20))
	if a.code != 400 || !strings.Contains(a.body, "too large") {
		t.Errorf("%d %s", a.code, a.body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, queryRange+"?query={}", nil)
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	if rec.Code != 504 || !strings.HasPrefix(rec.Body.String(), "request timed out, decrease the duration of the request") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// A plus sign that was typed in the URL comes as a blank, and is read as a plus sign.
func TestTypedPlus(t *testing.T) {
	w := newWorld(t)
	for i := range int64(10) {
		w.log("web", "info", noon-i*minute, fmt.Sprint("m ", i), "")
	}
	at := func(minutes int64) string {
		return time.Unix(0, noon-minutes*minute).In(time.FixedZone("", 3600)).Format("2006-01-02T15:04:05-07:00")
	}
	get := func(query string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, queryRange+`?query={service_name="web"}&`+query, nil))
		return rec
	}
	count := func(query string) int { return strings.Count(get(query).Body.String(), `"m `) }
	if n := count("start=" + at(5) + "&end=" + at(1)); n != 4 {
		t.Errorf("%d lines", n)
	}
	if n := count("start=" + strings.ReplaceAll(at(5), "+", "%2B") + "&end=" + at(1)); n != 4 {
		t.Errorf("%d lines", n)
	}
	if rec := get("start=2026-11-20T25:00:00+01:00"); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "write %2B") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := get("since=1h+x"); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "write %2B") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
