package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// The counts, the lists and the records of a store agree, whether records are in blobs or not.
func TestAgree(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 300)
	fill(h, 0, "orders", then.Add(time.Hour), 50)
	h.Flush()
	fill(h, 0, "web", then.Add(2*time.Hour), 25)
	s := serve(t, h)

	services := object[form.Services](s, "services")
	if len(services.Services) != 2 || !services.Complete {
		t.Fatalf("services: %+v", services)
	}
	web := services.Services[1]
	if web.Name != "web" || web.Records != 300 || web.Unflushed != 25 || web.Blobs == 0 || web.First != "2026-11-20T12:00:00.000000000Z" || web.Last != "2026-11-20T14:00:24.000000000Z" {
		t.Errorf("web: %+v", web)
	}
	count := object[form.Count](s, "count?service=*")
	if count.Records != 375 || !count.Complete || count.Unflushed != 25 {
		t.Errorf("count: %+v", count)
	}
	if count := object[form.Count](s, "count?service=web&level=error&text=web&where=status>200"); count.Records != 21 {
		t.Errorf("filtered count: %+v", count)
	}
	a := s.get("records?service=*&limit=0")
	if n := strings.Count(a.body, "\n"); n != 375 || a.trailer.Get(form.TrailerComplete) != "1" || a.trailer.Get(form.TrailerMore) != "0" || a.header.Get("Content-Type") != form.Lines {
		t.Errorf("%d lines, trailers %v", n, a.trailer)
	}
	events := s.events("records?service=*&limit=10&form=events&order=desc")
	end := events[len(events)-1].End
	if len(events) != 11 || end == nil || !end.Complete || !end.More || end.Records != 10 || events[0].Record.ID[:20] != "1795183224000000000-" {
		t.Errorf("events: %+v", events)
	}
	for _, split := range []string{"level", "service"} {
		hist := object[form.Histogram](s, "histogram?service=*&by=1h&split="+split)
		total := int64(0)
		for _, b := range hist.Buckets {
			total += b.Total
		}
		if total != 375 || len(hist.Buckets) != 3 || hist.By != "1h" || hist.Buckets[0].Time != "2026-11-20T12:00:00.000000000Z" {
			t.Errorf("histogram by %s: %+v", split, hist)
		}
	}
	if me := object[form.Whoami](s, "whoami"); me.Version != "v1.2.3" || me.ID != "" {
		t.Errorf("whoami: %+v", me)
	}
	if a := s.get("records?service=web&first=3&fields=ts,msg", "Accept", "text/csv"); !strings.HasPrefix(a.body, "ts,msg\n2026-11-20T12:00:00.000000000Z,web 0\n") || a.header.Get("Content-Type") != form.CSV {
		t.Errorf("csv: %v %s", a.header, a.body)
	}
}

// Records stream byte for byte as they are stored.
func TestBadRequests(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 30)
	h.Flush()
	s := serve(t, h)
	for path, words := range map[string][]string{
		"records":                                {"400", "which service"},
		"records?service=wbe":                    {"404", "No such service", "is it web?"},
		"records?service=x*":                     {"404", "no service matches"},
		"records?service=x*&service=wbe":         {"404", "no service \\\"wbe\\\"", "is it web?"},
		"records?service=web&service=,":          {"400", "service=, names no service"},
		"records?service=web&limit=-1":           {"400", "limit=-1", "from 0"},
		"records?service=web&limit=1e3":          {"400", "limit=1e3 is no number"},
		"tail?service=web&n=9999999999999999999": {"400", "n=9999999999999999999: it must be from 0 to 10000"},
		"records?service=web&txt=1":              {"400", "no parameter", "is it text?"},
		"records?service=web&level=":             {"400", "without a value"},
		"records?service=web&level=x&level=":     {"400"},
		"records?service=web&from=1&from=2":      {"400", "2 times"},
		"records?service=web&level=loud":         {"400", "level"},
		"records?service=web&expr=(":             {"400", "("},
		"records?service=web&where=status>":      {"400", "where"},
		"records?service=web&where=level>'hi'":   {"400", "where", "is no word of a level", "from low to high"},
		"records?service=web&from=yore":          {"400", "from", "yore"},
		"records?service=web&form=csv":           {"400", "fields"},
		"records?service=web&order=up":           {"400", "asc or desc"},
		"records?service=web&limit=1&first=1":    {"400", "leave one out"},
		"count?service=web&live=maybe":           {"400", "auto, off or only"},
		"histogram?service=web&by=1m&buckets=4":  {"400", "leave one out"},
		"histogram?service=web&by=0s":            {"400", "by=0s"},
		"servces":                                {"404", "is it services?"},
	} {
		a := s.get(path)
		if strconv.Itoa(a.status) != words[0] || a.header.Get("Content-Type") != form.Trouble {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		for _, word := range append(words[1:], `"type":"about:blank"`) {
			if !strings.Contains(a.body, word) {
				t.Errorf("%s: nobody says %q: %s", path, word, a.body)
			}
		}
	}
}

// A query that would decode more than a limit is refused.
func TestLimitOfBytes(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 3000)
	h.Flush()
	s := serveWith(t, h, 1000)
	for path, status := range map[string]int{"count?service=web": 200, "count?service=web&text=web": 400, "facets?service=web&text=web": 400} {
		if a := s.get(path); a.status != status || status == 400 && !strings.Contains(a.body, "shorter range") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// A plus sign that was typed in the URL comes as a blank. It is read as the plus sign if that is
// the only reading, and refused if there are two.
func TestTypedPlus(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 300)
	h.Flush()
	s := serve(t, h)
	for typed, meant := range map[string]string{
		"level=warn+":                        "level=warn%2B",
		"level=info,warn+":                   "level=info,warn%2B",
		"level=warn%2B+":                     "level=warn%2B",
		"level=info,+error":                  "level=info,error",
		"from=2026-11-20T13:00:30+01:00":     "from=2026-11-20T12:00:30Z",
		"to=2026-11-20+13:01+01:00":          "to=2026-11-20T12:01:00Z",
		"from=20/Nov/2026:13:00:30++0100":    "from=2026-11-20T12:00:30Z",
		"from=2026-11-20+12:01":              "from=2026-11-20T12:01:00Z",
		"from=2026-11-20+13:01&timezone=+01": "from=2026-11-20T12:01:00Z",
		"since=2026-11-20T13:01+01:00":       "from=2026-11-20T12:01:00Z",
	} {
		got, want := object[form.Count](s, "count?service=web&"+typed), object[form.Count](s, "count?service=web&"+meant)
		if got.Records != want.Records || want.Records == 0 || want.Records == 300 && !strings.HasPrefix(typed, "level=") {
			t.Errorf("%s: %d records, and %d for %s", typed, got.Records, want.Records, meant)
		}
	}
	for _, typed := range []string{"level=warn+,error", "level=error+,+warn", "since=+2h", "from=2026-11-20T25:00:00+01:00"} {
		if a := s.get("count?service=web&" + typed); a.status != http.StatusBadRequest || !strings.Contains(a.body, "write %2B") {
			t.Errorf("%s: %d %s", typed, a.status, a.body)
		}
	}
}
