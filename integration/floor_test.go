package integration_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
)

// An ingester is killed while it holds records of the last ten minutes. Reads of the hours
// before are complete without it, by every command and by a server. A read that reaches
// further is incomplete and says up to when it is whole.
func TestFloor(t *testing.T) {
	t.Parallel()
	stores(t, testFloor)
}

func testFloor(t *testing.T, at place) {
	old, fresh := &promises{}, &promises{}
	a := newStation(t, at, old, "a", "--lane", "1").start()
	now := time.Now()
	for _, age := range []time.Duration{5 * time.Hour, 3 * time.Hour, 2*time.Hour + time.Minute} {
		a.takeAt(now.Add(-age))
	}
	if floor := floorOf(t, at, a.id()); floor.IsZero() || floor.After(now.Add(-5*time.Hour)) {
		t.Errorf("the row has the floor %v while the log has records of five hours ago", floor)
	}
	if !a.flushes() {
		t.Fatal("a does not flush")
	}
	testkit.Until(t, "the floor rises", func() bool { return floorOf(t, at, a.id()).After(now.Add(-20 * time.Minute)) })
	a.promises = fresh
	for _, age := range []time.Duration{10 * time.Minute, 5 * time.Minute, 0} {
		a.takeAt(time.Now().Add(-age))
	}
	a.kill()
	floor := floorOf(t, at, a.id())
	if ago := time.Since(floor); ago > 20*time.Minute {
		t.Errorf("the floor is %v: %v ago", floor, ago)
	}
	sentence := "records before " + floor.UTC().Format(time.RFC3339) + " are whole"
	s := serve(t, at)
	named := serve(t, at, "--live-url", a.base)
	look := func(when string, reachable bool) {
		t.Helper()
		for _, end := range []time.Time{now.Add(-time.Hour), floor} {
			before := newAudit(t, at, old).only(asRead, asCount, asHist, asNewest).by("--from", rfc(now.Add(-6*time.Hour)), "--to", rfc(end))
			before.whole(when)
			before.by("--live-url", a.base).whole(when + ", by its URL")
			for _, s := range []*server{s, named} {
				answers(t, s, when, now.Add(-6*time.Hour), end, "")
			}
		}
		last := newAudit(t, at, fresh).only(asRead, asCount, asHist, asNewest).by("--from", rfc(now.Add(-time.Hour)))
		last.by("--live-url", a.base).names(when+", the last hour", sentence)
		answers(t, named, when, now.Add(-time.Hour), time.Now(), sentence)
		if reachable { // a remote store, and no URL: see the note of a read
			last.names(when+", the last hour", sentence)
			newAudit(t, at, fresh).only(asRead).by("--from", rfc(now.Add(-time.Hour)), "--to", rfc(floor.Add(time.Nanosecond))).names(when, sentence)
			answers(t, s, when, now.Add(-time.Hour), time.Now(), sentence)
		}
	}
	look("at once", strings.HasPrefix(at.store, "dir:"))
	fallsSilent(t, at, a.id())
	look("after a minute", true)
	out, errs, code := logquery(t, at, "ingesters", "-o", "json")
	if want := fmt.Sprintf(`"floor":"%s`, floor.UTC().Format("2006-01-02T15:04:05")); code != 0 || !strings.Contains(string(out), want) || !strings.Contains(errs, sentence) {
		t.Errorf("the list of ingesters: %d, %s, %s", code, out, errs)
	}
	// A start on the log answers for it again.
	a.start()
	newAudit(t, at, fresh).only(asRead, asCount).by("--live-url", a.base, "--from", rfc(now.Add(-time.Hour))).whole("after a start")
}

// answers asks a server for a range, in several ways. says is the complaint in each answer; "": it
// is whole.
func answers(t *testing.T, s *server, when string, from, to time.Time, says string) {
	t.Helper()
	span := "from=" + url.QueryEscape(rfc(from)) + "&to=" + url.QueryEscape(rfc(to)) + "&service=web"
	loki := fmt.Sprintf("&start=%d&end=%d&query=%s", from.UnixNano(), to.UnixNano(), url.QueryEscape(`{service_name="web"}`))
	for _, path := range []string{
		"/api/v1/records?form=events&limit=10&" + span, "/api/v1/count?" + span, "/api/v1/histogram?by=1h&" + span,
		"/json/loki/api/v1/query_range?limit=10" + loki, "/loki/api/v1/index/stats?" + loki[1:],
	} {
		code, body, err := s.get(path)
		whole := claims(code, body, err) && !strings.Contains(string(body), "incomplete")
		if whole != (says == "") {
			t.Errorf("%s: %s claims to be whole: %v; %d, %v, %.500s", when, path, whole, code, err, body)
		}
		if says != "" && !strings.Contains(path, "index/stats") && !strings.Contains(string(body), says) {
			t.Errorf("%s: %s does not say %q: %d, %v, %.500s", when, path, says, code, err, body)
		}
	}
}

// floorOf is the floor in the row of an ingester.
func floorOf(t *testing.T, at place, id string) (floor time.Time) {
	t.Helper()
	tables, end := tablesOf(t, at)
	defer end()
	rows, err := lease.List(t.Context(), tables, spec(t, at).Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range rows {
		if i.ID == id {
			return i.Floor
		}
	}
	return floor
}
