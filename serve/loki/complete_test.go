package loki_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"blobtail/reading/readingtest"
	"blobtail/reading/unflushed"
	"blobtail/serve/loki"
)

// inhabited is a world of real ingesters, with the clock of the machine.
func inhabited(t testing.TB, h *readingtest.House) *world {
	return &world{t: t, api: loki.New(loki.Options{Reader: h.Reader()})}
}

// question is a request to one route.
type question struct {
	path   string
	params []string
	lines  bool // the lines of blobs answer it, not listings or indexes
}

// questions are requests to all routes that tell about records.
func questions() []question {
	const web = `{service_name="web"}`
	return []question{
		{"query_range", []string{"query", web}, true},
		{"query_range", []string{"query", web, "direction", "forward"}, true},
		{"query_range", []string{"query", web, "interval", "1ms"}, true},
		{"query_range", []string{"query", "{}", "since", "48h"}, true},
		{"query_range", []string{"query", `sum(count_over_time(` + web + `[1m]))`, "step", "60"}, false},
		{"query_range", []string{"query", `sum by (n) (count_over_time(` + web + `[1m]))`, "step", "60"}, true},
		{"query_range", []string{"query", `rate(` + web + `[1m]) or absent_over_time({service_name="none"}[1m])`, "step", "60"}, false},
		{"query", []string{"query", `sum by (level) (count_over_time(` + web + `[1h]))`}, false},
		{"query", []string{"query", `bytes_over_time(` + web + `[1h])`}, true},
		{"label/service_name/values", nil, false},
		{"label/service_name/values", []string{"query", `{service_name=~"nobody.*"}`}, false},
		{"label/level/values", nil, false},
		{"series", []string{"match[]", web}, false},
		{"series", []string{"match[]", `{service_name="web",level="info"}`}, false},
		{"index/stats", []string{"query", web}, false},
		{"index/volume", []string{"query", web}, false},
		{"index/volume", []string{"query", "{}", "targetLabels", "level"}, false},
		{"index/volume_range", []string{"query", web}, false},
		{"detected_labels", nil, false},
		{"detected_fields", []string{"query", web}, true},
		{"detected_field/n/values", []string{"query", web}, true},
	}
}

// looksComplete reports whether an answer does.
func (a answer) looksComplete() bool {
	return a.code == 200 && !strings.Contains(a.body, `"warnings":["incomplete: `)
}

// walk asks all questions of an incomplete store, in each way to ask.
func walk(t *testing.T, w *world, damaged bool, why string) {
	t.Helper()
	for _, q := range questions() {
		if damaged && !q.lines {
			continue
		}
		for _, prefix := range []string{"/loki/api/v1/", "/json/loki/api/v1/"} {
			plain := w.ask(http.MethodGet, prefix+q.path, nil, q.params...)
			if plain.code != 500 || !strings.HasPrefix(plain.body, "incomplete: ") || !strings.Contains(plain.body, why) ||
				!strings.HasSuffix(plain.body, "; add partial=1 to the request to have the rest\n") {
				t.Errorf("%s %q: %d %s", q.path, q.params, plain.code, plain.body)
			}
			for _, some := range []answer{
				w.ask(http.MethodGet, prefix+q.path, grafana(), q.params...),
				w.ask(http.MethodPost, prefix+q.path, nil, append(q.params, "partial", "1")...),
			} {
				if some.code != 200 || some.looksComplete() || !strings.Contains(some.body, why) {
					t.Errorf("%s %q: %d %s", q.path, q.params, some.code, some.body)
				}
			}
		}
	}
}

// An answer that lacks the records of a damaged block does not look complete.
func TestDamage(t *testing.T) {
	h := readingtest.New(t, 1)
	for range 3 {
		h.Send(0, readingtest.Line{Service: "web", Msg: "hello", Fields: `"n":1`, Time: time.Now().Add(-time.Minute)})
		h.Flush()
	}
	w := inhabited(t, h)
	for _, q := range questions() {
		if a := w.get("/loki/api/v1/"+q.path, q.params...); !a.looksComplete() {
			t.Fatalf("%s %q: %d %s", q.path, q.params, a.code, a.body)
		}
	}
	h.Damage(h.Blobs("web")[1])
	walk(t, inhabited(t, h), true, "1 of 3 blobs could not be read: ")
}

// An answer that lacks the records of a stopped ingester does not look complete: if others
// answer, if none does, and if nobody else has any service.
func TestStoppedIngester(t *testing.T) {
	for _, ingesters := range []int{1, 2} {
		for _, stored := range []bool{true, false} {
			h := readingtest.New(t, ingesters)
			if stored {
				h.Send(0, readingtest.Line{Service: "web", Msg: "stored"})
				h.Flush()
			}
			h.Send(0, readingtest.Line{Service: "web", Msg: "held", Fields: `"n":1`})
			h.Kill(0)
			walk(t, inhabited(t, h), false, "ingester 00000001 on i0")
		}
	}
}

// An answer does not look complete if a filter could not judge a line, because a template in
// front of it would have made too much.
func TestUnjudged(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "hello", Time: time.Now().Add(-time.Minute)})
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "hello", Time: time.Now().Add(-time.Second)})
	w := inhabited(t, h)
	const large = "{service_name=\"web\"} | line_format `{{repeat 2000000 \"x\"}}`"
	for query, complete := range map[string]bool{
		large:                                              true, // the label __error__ tells it
		large + ` != "xx"`:                                 true, // so does that
		large + ` |= "xx"`:                                 false,
		large + ` |= "xx" | __error__=""`:                  false,
		large + ` | __error__=""`:                          true,
		large + ` | __error__="" |= "xx"`:                  true,
		`{service_name="web"} |= "he"`:                     true,
		"sum(count_over_time(" + large + ` |= "xx" [1h]))`: false,
	} {
		path := "/loki/api/v1/query_range"
		for _, params := range [][]string{nil, {"direction", "forward"}, {"since", "2h"}} {
			a := w.ask(http.MethodGet, path, grafana(), append([]string{"query", query}, params...)...)
			if a.code != 200 || a.looksComplete() != complete || !complete && !strings.Contains(a.body, "not known of some records whether they match") {
				t.Errorf("%s: %d %.500s", query, a.code, a.body)
			}
		}
		if a := w.ask(http.MethodGet, path, nil, "query", query); (a.code == 200) != complete {
			t.Errorf("%s: %d %.500s", query, a.code, a.body)
		}
	}
}

// If the operator wants no ingester to be asked, the server says so in each answer, to each client.
func TestBlobsAlone(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "stored", Fields: `"n":1`})
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "held"})
	w := &world{t: t, api: loki.New(loki.Options{Reader: h.Reader(func(o *unflushed.Options) { o.Off = true })})}
	for _, q := range append(questions(), question{path: "labels"}) {
		for _, header := range []http.Header{nil, grafana()} {
			a := w.ask(http.MethodGet, "/loki/api/v1/"+q.path, header, q.params...)
			if a.code != 200 || strings.Count(a.body, unflushed.LiveOff) != 1 || strings.Contains(a.body, "held") {
				t.Errorf("%s %q: %d %s", q.path, q.params, a.code, a.body)
			}
		}
	}
}
