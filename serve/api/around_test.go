package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// idsOf are the ids of the records among events, with their messages.
func idsOf(events []form.Event) (ids, messages []string) {
	for _, e := range events {
		if e.Record == nil {
			continue
		}
		var line struct{ Msg string }
		if json.Unmarshal(e.Record.Line, &line) != nil {
			line.Msg = "unreadable"
		}
		ids, messages = append(ids, e.Record.ID), append(messages, line.Msg)
	}
	return ids, messages
}

// mixed sends records of one ns to two services, by several requests, and others before and
// after them.
func mixed(h *readingtest.House) {
	fill(h, 0, "web", then.Add(-time.Minute), 20)
	for i := range 5 {
		var lines []readingtest.Line
		for j := range 10 {
			service := "web"
			if j%3 == 0 {
				service = "orders"
			}
			lines = append(lines, readingtest.Line{Time: then, Service: service, Msg: fmt.Sprintf("same %d %d", i, j)})
		}
		h.Send(i%2, lines...)
		if i == 2 {
			h.Flush()
		}
	}
	fill(h, 1, "web", then.Add(time.Minute), 20)
	fill(h, 0, "orders", then.Add(3*time.Hour), 5)
}

// The context of a record among others of the same time has its true neighbours, whether
// records are in blobs, in logs or in compacted blobs. Ids stay the same.
func TestContext(t *testing.T) {
	testkit.FullOnly(t, "hundreds of questions, one after another")
	h := readingtest.New(t, 2)
	mixed(h)
	s := serve(t, h)
	want, _ := idsOf(s.events("records?service=*&limit=0&form=events"))
	web, _ := idsOf(s.events("records?service=web&limit=0&form=events"))
	if len(want) != 95 {
		t.Fatalf("%d records", len(want))
	}
	check := func() {
		t.Helper()
		for _, scope := range []struct {
			word string
			all  []string
		}{{"same", web}, {"all", want}} {
			for at, id := range scope.all {
				if !slices.Contains(web, id) {
					continue
				}
				before, after := at%13, at%7
				events := s.events(fmt.Sprintf("context?service=web&id=%s&before=%d&after=%d&services=%s", id, before, after, scope.word))
				got, _ := idsOf(events)
				if expected := scope.all[max(0, at-before):min(len(scope.all), at+after+1)]; !slices.Equal(got, expected) {
					t.Errorf("%s of %s, %d before and %d after:\n%v\nwant\n%v", scope.word, id, before, after, got, expected)
				}
				anchors := 0
				for _, e := range events {
					if e.Record != nil && e.Record.Anchor {
						anchors++
						if e.Record.ID != id {
							t.Errorf("the anchor is %s, not %s", e.Record.ID, id)
						}
					}
				}
				if end := events[len(events)-1].End; anchors != 1 || end == nil || !end.Complete {
					t.Errorf("%d anchors, end %+v", anchors, end)
				}
			}
		}
		for at, id := range web {
			one := object[form.Found](s, "records/web/"+id)
			previous, next := "", ""
			if at > 0 {
				previous = web[at-1]
			}
			if at+1 < len(web) {
				next = web[at+1]
			}
			if one.ID != id || one.Previous != previous || one.Next != next || !one.Complete || !strings.Contains(string(one.Line), `"service":"web"`) {
				t.Errorf("%s: %+v", id, one)
			}
		}
	}
	check()
	h.Flush()
	check()
	blobs := len(h.Blobs("web"))
	h.Compact()
	if now := len(h.Blobs("web")); now >= blobs {
		t.Fatalf("%d blobs were %d before they were compacted", now, blobs)
	}
	check()
}

// An id that is none, or of no record, is an error that says so.
func TestBadIDs(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 3)
	fill(h, 0, "orders", then, 3)
	s := serve(t, h)
	ids, _ := idsOf(s.events("records?service=web&form=events"))
	orders, _ := idsOf(s.events("records?service=orders&form=events"))
	other := strings.TrimSuffix(ids[0], "-0") + "-77"
	for path, want := range map[string]struct {
		status int
		words  string
	}{
		"records/web/" + ids[0]:                        {http.StatusOK, `"id":`},
		"records/web/x":                                {http.StatusBadRequest, "is no id"},
		"records/web/" + strings.ToUpper(ids[0]) + "F": {http.StatusBadRequest, "is no id"},
		"records/web/0" + ids[0]:                       {http.StatusBadRequest, "is no id"},
		"records/web/" + other:                         {http.StatusNotFound, "No such record"},
		"records/web/" + orders[0]:                     {http.StatusNotFound, "No such record"},
		"records/webb/" + ids[0]:                       {http.StatusNotFound, "is it web?"},
		"records/*/" + ids[0]:                          {http.StatusNotFound, "No such service"},
		"context?service=web":                          {http.StatusBadRequest, "which record"},
		"context?service=*&id=" + ids[0]:               {http.StatusBadRequest, "one service"},
		"context?service=web&id=" + other:              {http.StatusNotFound, "No such record"},
		"context?service=web&before=1001&id=" + ids[0]: {http.StatusBadRequest, "from 0 to 1000"},
		"context?service=web&services=x&id=" + ids[0]:  {http.StatusBadRequest, "same or all"},
	} {
		if a := s.get(path); a.status != want.status || !strings.Contains(a.body, want.words) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
