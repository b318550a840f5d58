package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
)

// A name that is no service, beside others, is named in the answer, and nothing is missing because
// of it: in each route, whether it does not exist or is hidden. A glob that matches none is passed
// over.
func TestAbsent(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 30)
	fill(h, 0, "secret", then, 30)
	h.Flush()
	fill(h, 0, "fresh", then.Add(time.Hour), 3)
	for _, s := range []*server{serve(t, h), serve(t, h, "web", "fresh")} {
		for name, absent := range map[string][]string{
			"service=web&service=nosuch":                 {"nosuch"},
			"service=fresh,nosuch":                       {"nosuch"},
			"service=web,nosuch,other":                   {"nosuch", "other"},
			"service=web&service=nosuch-*":               nil,
			"service=web,_nosuch*,nosuch":                {"nosuch"},
			"service=web,fresh":                          nil,
			"logql={service=~%22web|nosuch%22}":          nil, // chosen, as by a glob
			"service=web,fresh&level=error&service=x*":   nil,
			"service=web,secret":                         {"secret"},
			"service=secret,nosuch,web":                  {"nosuch", "secret"},
			"service=web&service=nosuch&from=2031-01-01": {"nosuch"},
		} {
			if s.secret == "" && strings.Contains(name, "secret") || s.secret != "" && strings.Contains(name, "logql") {
				continue // everybody may read it here; a selector does not choose hidden services
			}
			routes := []string{"records", "records?form=events&limit=0", "count", "histogram", "histogram?split=service", "facets", "days", "blobs"}
			if !strings.Contains(name, "from=") {
				routes = append(routes, "tail?once=1", "tail?once=1&from=2026-11-20")
			}
			for _, route := range routes {
				if strings.Contains(name, "logql") && (route == "days" || route == "blobs") || strings.Contains(name, "level") && (route == "days" || route == "blobs") {
					continue
				}
				path := route + map[bool]string{true: "&", false: "?"}[strings.Contains(route, "?")] + name
				a := s.get(path)
				if s.secret != "" && strings.Contains(a.body, "secret 1") {
					t.Errorf("%s: records of a service that the token may not read: %.500s", path, a.body)
				}
				if a.status != http.StatusOK || !looksComplete(t, path, a) {
					t.Errorf("%s: %d %v %.500s", path, a.status, a.trailer, a.body)
					continue
				}
				if route == "records" { // lines alone
					told := strings.FieldsFunc(a.trailer.Get(form.TrailerAbsent), func(r rune) bool { return r == ',' || r == ' ' })
					if slices.Sort(told); !slices.Equal(told, absent) {
						t.Errorf("%s: %v", path, a.trailer)
					}
					continue
				}
				first := strings.HasPrefix(a.body, `{"absent":`)
				if strings.HasPrefix(route, "records") && strings.Contains(a.body, `{"record":`) && first != (len(absent) > 0) {
					t.Errorf("%s: the names are not before the first record: %.300s", path, a.body)
				}
				o := outcomeOf(t, a)
				slices.Sort(o.Absent)
				if !slices.Equal(o.Absent, absent) || !o.Complete || len(o.Problems) > 0 {
					t.Errorf("%s: absent %q, %+v", path, o.Absent, o)
				}
				for _, name := range absent {
					if told := strings.Contains(a.body, `no service \"`+name+`\"`) || strings.HasPrefix(route, "tail") && strings.Contains(a.body, `{"absent":"`+name+`"}`); !told {
						t.Errorf("%s: nobody says that there is no %s: %s", path, name, a.body)
					}
				}
			}
		}
		for _, path := range []string{"count?service=nosuch,other", "count?service=nosuch&service=x*", "records?service=x*,y*", "days?service=nosuch,other", "tail?once=1&service=nosuch,x*", "histogram?split=service&service=nosuch,other"} {
			if a := s.get(path); a.status != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
}

// outcomeOf is the outcome of an answer.
func outcomeOf(t *testing.T, a answer) (o form.Outcome) {
	t.Helper()
	text := a.body
	if at := strings.LastIndex(text, `{"end":`); at >= 0 {
		text = strings.TrimSuffix(strings.TrimSpace(text[at+len(`{"end":`):]), "}")
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return o
}

// While an ingester is out of reach, a service without records elsewhere is not absent: its records
// may be among those that are missing.
func TestAbsentOrMissing(t *testing.T) {
	h := readingtest.New(t, 2)
	fill(h, 0, "web", then, 30)
	h.Flush()
	fill(h, 1, "gone", then, 3)
	h.Kill(1)
	s := serve(t, h)
	for _, path := range []string{"count?service=web,gone", "count?service=gone", "count?service=nosuch"} {
		o := object[form.Count](s, path)
		if o.Complete || len(o.Absent) > 0 || !strings.Contains(strings.Join(o.Warnings, " "), "in blobs") {
			t.Errorf("%s: %+v", path, o)
		}
	}
}

// Totals say so when they may count a record twice: one that was stored while the ingesters were
// asked is in a blob of its time.
func TestTotalsMayCountTwice(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "apart", then, 10)
	fill(h, 0, "beside", then, 10)
	h.Flush()
	fill(h, 0, "apart", then.Add(time.Hour), 3)
	fill(h, 0, "beside", then, 3)
	var got form.Services
	if err := json.Unmarshal([]byte(serve(t, h).get("services").body), &got); err != nil {
		t.Fatal(err)
	}
	for _, s := range got.Services {
		if s.Records != 10 || s.Unflushed != 3 || s.Estimated != (s.Name == "beside") {
			t.Errorf("%+v", s)
		}
	}
	if len(got.Services) != 2 {
		t.Errorf("%+v", got)
	}
}

// A service that began since services were listed last exists, though none of its records match. A
// client does not learn so of services that it may not read.
func TestBegunIsNotAbsent(t *testing.T) {
	for _, stored := range []bool{false, true} {
		h := readingtest.New(t, 1)
		fill(h, 0, "web", then, 3)
		h.Flush()
		s, narrow := serve(t, h), serve(t, h, "web")
		s.get("count?service=nosuch") // lists services
		narrow.get("count?service=nosuch")
		fill(h, 0, "fresh", then, 3)
		if stored {
			h.Flush()
		}
		const none = "&from=2031-01-01"
		for path, status := range map[string]int{"count?service=fresh": 200, "count?service=fr*": 200, "records?service=fresh": 200, "count?service=nosuch": 404} {
			if a := s.get(path + none); a.status != status {
				t.Errorf("stored %v, %s: %d %s", stored, path, a.status, a.body)
			}
			if a := narrow.get(path + none); a.status != http.StatusNotFound {
				t.Errorf("stored %v, %s with a token for web: %d %s", stored, path, a.status, a.body)
			}
		}
	}
}
