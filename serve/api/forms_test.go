package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/internal/door"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
	"blobtail/record/forms"
)

// accessLog puts lines of an access log into a house, and records of another service.
func accessLog(h *readingtest.House, n int) {
	var lines []readingtest.Line
	for i := range n {
		status := 200 + i%3*100
		at := then.Add(time.Duration(i) * time.Second)
		lines = append(lines, readingtest.Line{Time: at, Service: "nginx-1", Msg: fmt.Sprintf(
			`10.0.0.%d - - [x] "GET /p%d HTTP/1.1" %d 5 "-" "a"`, i%200, i%7, status)},
			readingtest.Line{Time: at, Service: "web", Msg: "10.0.0.7 is a text"})
	}
	h.Send(0, lines...)
	h.Flush()
}

const accessForm = "<ip> - <_> [<_>] \"<_:request>\" <status:number> <bytes> \"<_>\" \"<agent>\""

// The forms of a server count in each route, for their services. A question that names a form has that.
func TestServerForms(t *testing.T) {
	h := readingtest.New(t, 1)
	accessLog(h, 300)
	s := serveForms(t, h, forms.Text([]forms.Rule{{Services: []string{"nginx*"}, Form: accessForm}}), 0, door.ReadsOptions{})
	if n := object[form.Count](s, "count?service=*&where="+url.QueryEscape("status >= 400")).Records; n != 100 {
		t.Errorf("%d of status 400", n)
	}
	if n := object[form.Count](s, "count?service=*&q="+url.QueryEscape("level_extracted=warn path=/p3")).Records; n != 14 {
		t.Errorf("%d of a level and a path", n)
	}
	if n := object[form.Count](s, "count?service=*&parse=none&where="+url.QueryEscape("status >= 400")).Records; n != 0 {
		t.Errorf("%d without forms", n)
	}
	for _, sample := range []string{"", "&sample=0&fields=status,ip,level_extracted", "&sample=0&fields=status"} {
		f := object[form.Facets](s, "facets?service=*"+sample)
		if status := fieldOf(t, f, "status"); status.Present != 300 || status.Distinct != 3 || status.Type != "int" {
			t.Errorf("facets %s: %+v", sample, status)
		}
	}
	for range 2 { // the second time from what is kept
		b := object[form.Histogram](s, "histogram?service=nginx-1&by=1h&split=level_extracted")
		if len(b.Buckets) != 1 || b.Buckets[0].Counts["info"] != 200 || b.Buckets[0].Counts["warn"] != 100 {
			t.Errorf("by level: %+v", b.Buckets)
		}
		of := object[form.Histogram](s, "histogram?service=nginx-1&by=1h&split=status&parse=none")
		if len(of.Buckets) != 1 || of.Buckets[0].Counts["200"] != 0 {
			t.Errorf("without forms: %+v", of.Buckets)
		}
	}
	csv := s.get("records?service=nginx-1&form=csv&fields=status,path,msg&limit=1").body
	if want := "status,path,msg\n400,/p5,\"10.0.0.99 - - [x]"; !strings.HasPrefix(csv, want) {
		t.Errorf("csv: %s", csv)
	}
	events := s.get("records?service=nginx-1&form=events&limit=1").body
	id := strings.Split(strings.TrimPrefix(events, `{"record":{"id":"`), `"`)[0]
	near := s.get("context?service=nginx-1&before=1&after=1&id=" + id).body
	one := s.get("records/nginx-1/" + id).body
	if n := strings.Count(near, `"agent":"a"`); n != 2 || strings.Contains(one, `"agent"`) {
		t.Errorf("%d of 2 neighbours have fields; the record is %s", n, one)
	}
	// The stages of LogQL.
	stages := "logql=" + url.QueryEscape("{service_name=`nginx-1`} | pattern `<who> - <_> [<_>] \"<_> <way> HTTP<_>`") + "&parse=stages"
	if f := object[form.Facets](s, "facets?"+stages); fieldOf(t, f, "way").Distinct != 7 {
		t.Errorf("stages: %+v", f)
	}
	if b := object[form.Histogram](s, "histogram?by=1h&split=way&"+stages); len(b.Buckets) != 1 || b.Buckets[0].Counts["/p3"] != 43 {
		t.Errorf("stages: %+v", b.Buckets)
	}
	for _, bad := range []string{
		"records?service=web&parse=stages", "count?parse=json&logql=" + url.QueryEscape("{service_name=`web`}"),
		"count?service=web&parse=combind",
	} {
		if a := s.get(bad); a.status != 400 || !strings.Contains(a.body, "parse") {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}
