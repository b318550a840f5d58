package api_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/reading/readingtest"
)

// A tail that ends has services that began a moment ago, and those that only an ingester knows
// that cannot be asked are not called absent: a list of services is a hint.
func TestTailOnceOfUnlisted(t *testing.T) {
	h := readingtest.New(t, 2)
	fill(h, 0, "web", then, 5)
	s := serve(t, h)
	if a := s.get("services?service=*"); a.status == 0 {
		t.Fatal(a)
	}
	if a := s.get("tail?service=api&once=1"); a.status != 404 || !strings.Contains(a.body, `no service \"api\"`) {
		t.Errorf("before it began: %d %s", a.status, a.body)
	}
	fill(h, 1, "api", then.Add(time.Minute), 5)
	for _, query := range []string{"service=api", "service=a*", "service=api&service=web"} {
		if a := s.get("tail?once=1&" + query); a.status != 200 || !strings.Contains(a.body, `"service":"api"`) || !looksComplete(t, "tail", a) {
			t.Errorf("%s: %d %.500s", query, a.status, a.body)
		}
	}
	h.Kill(1)
	for _, query := range []string{"service=other", "service=o*", "service=other&service=web"} {
		if a := serve(t, h).get("tail?once=1&" + query); a.status != 200 || looksComplete(t, "tail", a) || !strings.Contains(a.body, `"problem"`) {
			t.Errorf("%s, with an ingester away: %d %.500s", query, a.status, a.body)
		}
	}
}

// A histogram by service counts all services, also beside one with unflushed records only, none of
// them in the range.
func TestHistogramBesideUnflushed(t *testing.T) {
	h := readingtest.New(t, 1)
	fill(h, 0, "api", then.Add(-time.Hour), 3)
	fill(h, 0, "web", then, 5)
	a := serve(t, h).get("histogram?service=api&service=web&split=service&by=1h&from=2026-11-20T12:00:00Z")
	if a.status != 200 || !strings.Contains(a.body, `"counts":{"web":5}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}
