package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// asking is a request to a server.
type asking struct {
	path    string
	headers []string
	// lists says that the answer is made of listings: it claims nothing about the bytes of
	// blobs.
	lists bool
	// stored says that the answer is about a blob alone.
	stored bool
	// fixed says that the answer does not depend on records.
	fixed bool
}

// everyRoute are requests to all routes, about some services at a time. blob and id are of the
// service web.
func everyRoute(at time.Time, blob, id string) (all []asking) {
	from, to := fmt.Sprint(at.Add(-24*time.Hour).UnixNano()), fmt.Sprint(at.Add(time.Hour).UnixNano())
	span := "&start=" + from + "&end=" + to
	loki := func(path, query string, lists bool) {
		for _, view := range []string{"", "/json"} {
			for _, headers := range [][]string{nil, {"X-Loki-Response-Encoding-Flags", "categorize-labels"}} {
				all = append(all, asking{path: view + "/loki/api/v1/" + path + "?" + query + span, headers: headers, lists: lists})
			}
		}
	}
	q := func(text string) string { return "query=" + url.QueryEscape(text) }
	loki("query_range", q(`{service_name=~".+"}`)+"&limit=5000", false)
	loki("query_range", q(`{service_name="web"} |= "record" | json`)+"&limit=5000&direction=forward", false)
	loki("query_range", q(`sum by (level) (count_over_time({service_name=~".+"}[1m]))`)+"&step=60", true)
	loki("query_range", q(`sum by (level) (count_over_time({service_name=~".+"} |= "record" [1m]))`)+"&step=60", false)
	loki("query", q(`sum by (service_name) (count_over_time({service_name=~".+"} |= "record" [25h]))`)+"&time="+to, false)
	loki("query", q(`count_over_time({service_name=~".+"}[25h])`)+"&time="+to, true)
	all = append(all, asking{path: "/loki/api/v1/labels?" + span[1:], fixed: true})
	loki("label/service_name/values", "", true)
	loki("series", "match="+url.QueryEscape(`{service_name=~".+"}`), true)
	loki("index/stats", q(`{service_name=~".+"}`), true)
	loki("index/volume", q(`{service_name=~".+"}`)+"&limit=100", true)
	loki("index/volume_range", q(`{service_name=~".+"}`)+"&step=3600", true)
	loki("detected_labels", q(`{service_name=~".+"}`), true)
	loki("detected_fields", q(`{service_name=~".+"}`)+"&line_limit=5000", false)
	loki("detected_field/pad/values", q(`{service_name=~".+"}`)+"&line_limit=5000", false)
	loki("patterns", q(`{service_name=~".+"}`), false)
	for _, path := range []string{"drilldown-limits?", "format_query?" + q(`{a="b"}`), "status/buildinfo?"} {
		all = append(all, asking{path: "/loki/api/v1/" + path, fixed: true})
	}
	when := "from=" + url.QueryEscape(at.Add(-24*time.Hour).Format(time.RFC3339)) + "&to=" + url.QueryEscape(at.Add(time.Hour).Format(time.RFC3339))
	own := func(path, query string, lists, fixed bool) {
		all = append(all, asking{path: "/api/v1/" + path + "?" + query, lists: lists, fixed: fixed})
	}
	own("services", when, true, false)
	for _, form := range []string{"lines", "events", "csv&fields=ts,msg"} {
		own("records", when+"&service=*&limit=0&form="+form, false, false)
		own("records", when+"&service=*&limit=100000&order=desc&form="+form, false, false)
	}
	own("count", when+"&service=*", true, false)
	own("count", when+"&service=*&text=record", false, false)
	own("histogram", when+"&service=*&by=1h", true, false)
	own("histogram", when+"&service=*&by=1h&split=service&text=record", false, false)
	own("facets", when+"&service=*&sample=100000", false, false)
	own("patterns", when+"&service=*&sample=0", false, false)
	own("context", "service=web&services=all&before=1000&after=1000&id="+id, false, false)
	own("records/web/"+id, "", false, false)
	own("blobs", when+"&service=*", true, false)
	all = append(all, asking{path: "/api/v1/blobs/" + blob, stored: true})
	own("ingesters", "", false, true)
	own("whoami", "", false, true)
	own("openapi.json", "", false, true)
	return all
}

// claims reports whether an answer claims to be complete.
func claims(code int, body []byte, err error) bool {
	switch {
	case err != nil || code != http.StatusOK:
		return false
	case bytes.Contains(body, []byte(`"complete":false`)), bytes.Contains(body, []byte(`"warnings":["incomplete: `)):
		return false
	}
	return true
}

// An answer of any route never claims to be complete if records are missing: because a blob is
// damaged, or an ingester that holds records does not answer.
func TestServeIncomplete(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	records := 3000
	if _, long := torture(t); long {
		records = 9000
	}
	h := newHouse(t, at, 2)
	h.p(0).mustPost("/ingest/web", threeBlocks(records))
	h.p(0).mustPost("/ingest/api", threeBlocks(100))
	h.p(0).mustFlush()
	h.p(1).mustPost("/ingest/web", threeBlocks(10))
	s := serve(t, h.read)
	const key = "web/2026/11/10/1200/000001.log"
	found, err := filepath.Glob(filepath.Join(root, "web/2026/11/10/1200/*.log"))
	if err != nil || len(found) != 1 {
		t.Fatalf("blobs %v, %v", found, err)
	}
	path := found[0]
	blob, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	routes := everyRoute(day, blob, firstID(t, s, "web"))
	walk := func(what string, want func(asking) bool) {
		for _, r := range routes {
			code, body, err := s.get(r.path, r.headers...)
			if got := claims(code, body, err); got != want(r) {
				t.Errorf("%s: %s %v claims %v, want %v: %d, %v, %.300s", what, r.path, r.headers, got, want(r), code, err, body)
			}
		}
	}
	walk("all is well", func(asking) bool { return true })

	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(sound)
	for _, b := range index(t, key, sound).Blocks {
		bad[b.Offset+b.Stored/2] ^= 4
	}
	replace(t, path, bad)
	walk("a damaged blob", func(r asking) bool { return r.lists || r.fixed })
	replace(t, path, sound)
	if code, body, err := s.get(routes[0].path); !claims(code, body, err) {
		t.Errorf("the blob is back: %d, %v, %.300s", code, err, body)
	}

	h.p(1).kill()
	walk("an ingester is gone", func(r asking) bool { return r.fixed || r.stored })
}

// firstID is the id of the oldest record of a service.
func firstID(t *testing.T, s *server, service string) string {
	t.Helper()
	body := s.mustGet("/api/v1/records?form=events&first=1&from=2020-01-01&service=" + service)
	var e struct{ Record struct{ ID string } }
	if err := json.Unmarshal(body[:bytes.IndexByte(body, '\n')], &e); err != nil || e.Record.ID == "" {
		t.Fatalf("%v %.300s", err, body)
	}
	return e.Record.ID
}

// A token cannot tell a service that it may not read from one that does not exist. Of all
// routes, TestServeHides of cmd/query, TestNarrow of serve/loki and TestNarrowedToken of serve/api
// prove that no byte of an answer tells of such services.
func TestServeNarrow(t *testing.T) {
	t.Parallel()
	f := &fleet{t: t, dir: t.TempDir()}
	f.tokens = filepath.Join(f.dir, "tokens.yaml")
	narrow := f.token("narrow", "--read", "web")
	wide := f.token("wide", "--read", "*", "--read", "_*")
	at, root := dirStore(t)
	h := newHouse(t, at, 1)
	const hidden = "zebrafish"
	h.p(0).mustPost("/ingest/web", threeBlocks(300))
	h.p(0).mustPost("/ingest/"+hidden, threeBlocks(300))
	h.p(0).mustFlush()
	h.p(0).mustPost("/ingest/"+hidden+"-live", threeBlocks(3))
	s := serve(t, h.read, "--tokens", f.tokens)
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	testkit.Until(t, "the tokens are known", func() bool {
		code, _, _ := s.get("/api/v1/whoami", bearer(narrow)...)
		return code == http.StatusOK
	})
	found, err := filepath.Glob(filepath.Join(root, hidden, "2026/11/10/1200/*.log"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no blob: %v", err)
	}
	blob, err := filepath.Rel(root, found[0])
	if err != nil {
		t.Fatal(err)
	}
	body := s.mustGet("/api/v1/records?form=events&first=1&from=2020-01-01&service=web", bearer(narrow)...)
	var e struct{ Record struct{ ID string } }
	if err := json.Unmarshal(body[:bytes.IndexByte(body, '\n')], &e); err != nil {
		t.Fatal(err)
	}
	if code, all, _ := s.get("/api/v1/services?from=2020-01-01", bearer(wide)...); !bytes.Contains(all, []byte(hidden)) {
		t.Errorf("the wide token does not see the hidden service: %d %.500s", code, all)
	}
	hiddenIsNone(t, s, bearer(narrow), hidden, blob, e.Record.ID)
}

// hiddenIsNone checks that a hidden service cannot be told from one that does not exist.
func hiddenIsNone(t *testing.T, s *server, token []string, hidden, blob, id string) {
	for _, path := range []string{
		"/api/v1/records?from=2020-01-01&service=zebrafis", "/api/v1/count?from=2020-01-01&service=zebr*",
		"/api/v1/records/zebrafis/" + id, "/api/v1/context?service=zebrafis&id=" + id,
		"/loki/api/v1/query_range?query=" + url.QueryEscape(`{service_name=~"zebr.+"}`),
		"/loki/api/v1/query_range?query=" + url.QueryEscape(`{service_name="zebrafis"}`),
	} {
		if code, body, _ := s.get(path, token...); bytes.Contains(body, []byte(hidden)) {
			t.Errorf("%s: %d %.500s", path, code, body)
		}
	}
	for _, pair := range [][2]string{
		{"/api/v1/records?from=2020-01-01&service=" + hidden, "/api/v1/records?from=2020-01-01&service=aardvarks"},
		{"/api/v1/blobs/" + blob, "/api/v1/blobs/" + strings.Replace(blob, hidden, "aardvarks", 1)},
		{"/api/v1/records/" + hidden + "/" + id, "/api/v1/records/aardvarks/" + id},
		{"/api/v1/tail?n=10&service=" + hidden, "/api/v1/tail?n=10&service=aardvarks"},
	} {
		code1, body1, _ := s.get(pair[0], token...)
		code2, body2, _ := s.get(pair[1], token...)
		if body1 = bytes.ReplaceAll(body1, []byte(hidden), []byte("aardvarks")); code1 != code2 || !bytes.Equal(body1, body2) {
			t.Errorf("%s: %d %s; one that does not exist: %d %s", pair[0], code1, body1, code2, body2)
		}
	}
}
