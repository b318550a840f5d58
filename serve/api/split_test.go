package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// A histogram by fields names its values with their types, each by a key of its own, and the sums
// agree.
func TestSplit(t *testing.T) {
	h := readingtest.New(t, 1)
	for i, fields := range []string{`"a":200`, `"a":200`, `"a":"200"`, `"a":"200"`, `"a":"200"`, "", `"a":"(none)"`, `"a":""`, `"a":null`, `"a.b":"x,y"`, `"a":{"b":"deep"}`} {
		h.Send(0, readingtest.Line{Service: "web", Time: then.Add(time.Duration(i) * time.Second), Msg: "m", Fields: fields})
	}
	h.Flush()
	h.Send(0, readingtest.Line{Service: "api", Time: then.Add(time.Minute), Msg: "m", Level: "error", Fields: `"a":200`})
	s := serve(t, h)
	hist := object[form.Histogram](s, "histogram?service=*&by=1m&split=a&top=50")
	var got []string
	for _, v := range hist.Values {
		got = append(got, fmt.Sprintf("%s %q %q %d", v.Key, v.Values, v.Types, v.Records))
	}
	want := []string{
		`"200" ["200"] ["string"] 3`, `200 ["200"] ["int"] 3`, `(none) [""] [""] 2`, `"" [""] ["string"] 1`, `"(none)" ["(none)"] ["string"] 1`, `null ["null"] ["null"] 1`, `{"b":"deep"} ["{\"b\":\"deep\"}"] ["object"] 1`,
	}
	if !slices.Equal(got, want) || hist.Split != "a" || hist.Capped || hist.Short != 0 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	top := object[form.Histogram](s, "histogram?service=*&by=1m&split=a&top=2")
	if b := top.Buckets; len(b) != 2 || b[0].Total != 11 || b[0].Others != 6 || !reflect.DeepEqual(b[0].Counts, map[string]int64{`"200"`: 3, "200": 2}) || b[1].Total != 1 || b[1].Others != 0 {
		t.Errorf("%+v", b)
	}
	for split, want := range map[string]string{
		"a.b": `(none) 10, deep 1, x,y 1`, "level": `info 11, error 1`, "service": `web 11, api 1`, "level,service": `info / web 11, error / api 1`,
		"nosuch,level": `(none) / info 11, (none) / error 1`, "msg,service": `m / web 11, m / api 1`,
	} {
		hist := object[form.Histogram](s, "histogram?service=*&by=1h&top=9&split="+url.QueryEscape(split))
		text := ""
		for i, v := range hist.Values {
			text += fmt.Sprintf("%s %d, ", v.Key, v.Records)
			if b := hist.Buckets[0]; b.Counts[v.Key] != v.Records || b.Total != 12 || hist.Split != split {
				t.Errorf("%s: value %d, %+v", split, i, hist)
			}
		}
		if strings.TrimSuffix(text, ", ") != want {
			t.Errorf("%s: %s, not %s", split, text, want)
		}
	}
	if plain := object[form.Histogram](s, "histogram?service=*&by=1h&split=service"); plain.Values != nil || plain.Buckets[0].Counts["web"] != 11 {
		t.Errorf("split by service alone: %+v", plain)
	}
	for _, bad := range []string{"split=a,b,c", "split=a,,b", "split=a,a", "split=a&top=0", "split=a&top=51", "split=a&top=x"} {
		if a := s.get("histogram?service=*&" + bad); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

// Pages of a list join without a gap among records of one moment, in both directions.
func TestPages(t *testing.T) {
	h := readingtest.New(t, 1)
	for range 3 {
		var lines []readingtest.Line
		for i := range 100 {
			lines = append(lines, readingtest.Line{Service: []string{"web", "api"}[i%2], Time: then, Msg: fmt.Sprint(i)})
		}
		h.Send(0, lines...)
		if len(h.Blobs("web")) == 0 {
			h.Flush()
		}
	}
	s := serve(t, h)
	all, _ := idsOf(s.events("records?service=*&limit=0&form=events&order=desc"))
	for _, c := range []struct {
		query string
		ids   []string
	}{{"limit=37&order=desc&before=", all}, {"first=41&after=", func() []string { up := slices.Clone(all); slices.Reverse(up); return up }()}} {
		got := c.ids[:1]
		for {
			page, _ := idsOf(s.events("records?service=*&form=events&" + c.query + got[len(got)-1]))
			if len(page) == 0 {
				break
			}
			got = append(slices.Clone(got), page...)
		}
		if !slices.Equal(got, c.ids) || len(got) != 300 {
			t.Errorf("%s: pages have %d records, and all are %d", c.query, len(got), len(c.ids))
		}
	}
	for _, query := range []string{"before=" + all[1] + "&after=" + all[0], "before=" + all[0] + "&after=" + all[0]} {
		if a := s.get("records?service=*&" + query); a.status != http.StatusBadRequest || !strings.Contains(a.body, "before wants the later one of two records") {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	if between, _ := idsOf(s.events("records?service=*&form=events&before=" + all[0] + "&after=" + all[2])); !slices.Equal(between, all[1:2]) {
		t.Errorf("between two records there are %v", between)
	}
	if a := s.get("records?service=*&before=yesterday"); a.status != http.StatusBadRequest || !strings.Contains(a.body, "no id of a record") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Answers tell the absolute range of a relative one.
func TestRange(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 3)
	h.Flush()
	s := serve(t, h)
	for _, path := range []string{"count?service=web", "histogram?service=web", "facets?service=web", "patterns?service=web", "services?"} {
		for query, want := range map[string]form.Range{
			"": {}, "&from=2026-11-20&to=2026-11-21": {From: "2026-11-20T00:00:00.000000000Z", To: "2026-11-21T00:00:00.000000000Z"}, "&since=1h&to=2026-11-20T13:00Z": {From: "2026-11-20T12:00:00.000000000Z", To: "2026-11-20T13:00:00.000000000Z"},
		} {
			var got struct{ Range *form.Range }
			a := s.get(path + query)
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Range == nil || got.Range.From != want.From || got.Range.To != want.To || got.Range.Now == "" {
				t.Errorf("%s%s: %v %s", path, query, err, a.body)
			}
		}
	}
	events := s.events("records?service=web&form=events&since=1h&to=2026-11-20T12:30Z")
	if end := events[len(events)-1].End; end == nil || end.Range == nil || end.Range.From != "2026-11-20T11:30:00.000000000Z" || end.Range.To != "2026-11-20T12:30:00.000000000Z" {
		t.Errorf("%+v", end)
	}
}
