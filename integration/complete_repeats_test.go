package integration_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// A body is sent again, and more of its records are accepted than the first time.
// Every record accepted by either answer is kept, once.
func TestCompleteRepeats(t *testing.T) {
	t.Parallel()
	const uuid = "019aa1a0-0000-7000-8000-00000000000"
	beside(t, map[string]func(t *testing.T){
		"as another form":                      func(t *testing.T) { testRepeatedForm(t, false) },
		"as another form, with a key":          func(t *testing.T) { testRepeatedForm(t, false, "Idempotency-Key", uuid+"1") },
		"as another form at another":           func(t *testing.T) { testRepeatedForm(t, true) },
		"as another form at another, with key": func(t *testing.T) { testRepeatedForm(t, true, "Idempotency-Key", uuid+"2") },
		// These two passed before: the treatment of rejected records must not change
		// that.
	})
}

// timed returns a record with a time and an id.
func timed(at time.Time, id string) string {
	return fmt.Sprintf(`{"time":"%s","level":"info","msg":"%s is what happened"}`, record.AppendTime(nil, at.UnixNano()), id)
}

// insist resends a body for as long as the ingester cannot accept it.
func (s *station) insist(c *http.Client, body string, headers ...string) (code int, a answer) {
	s.t.Helper()
	testkit.Until(s.t, s.name+" takes a body, or refuses it for good", func() bool {
		var err error
		if code, a, _, err = post(c, s.base+"/ingest/web", []byte(body), headers...); err != nil {
			s.t.Fatal(err)
		}
		return code != http.StatusServiceUnavailable
	})
	return code, a
}

// sendBody sends a body and notes the accepted records: all of the body, or only
// those that its first form has. Any code but 200 acknowledges none.
func (s *station) sendBody(body string, some, all []string, headers ...string) (accepted int) {
	s.t.Helper()
	code, a := s.insist(s.client, body, headers...)
	s.t.Logf("%s answers %d %+v", s.name, code, a)
	switch {
	case code != http.StatusOK:
		return 0
	case a.Accepted == len(all):
		s.promises.ack(all...)
	case a.Accepted == len(some):
		s.promises.ack(some...)
	default:
		s.t.Errorf("%d accepted, want %d or %d", a.Accepted, len(some), len(all))
	}
	return a.Accepted
}

// pair starts two ingesters of one store, or one that serves as both.
func pair(t *testing.T, at place, p *promises, apart bool) (a, b *station) {
	t.Helper()
	a = newStation(t, at, p, "a", "--lane", "1").start()
	if !apart {
		return a, a
	}
	return a, newStation(t, at, p, "b", "--lane", "2").start()
}

// flushed makes both ingesters put all records into blobs, and reads once more.
func (a audit) flushed(both ...*station) {
	a.t.Helper()
	for _, s := range both {
		if !s.flushes() {
			a.t.Errorf("%s does not flush", s.name)
		}
	}
	a.whole("flushed")
}

// testRepeatedForm sends lines, one of them with two records. It sends them first as
// lines and then as a stream of JSON, where two records on a line are valid.
func testRepeatedForm(t *testing.T, apart bool, headers ...string) {
	at, _ := dirStore(t)
	p := &promises{}
	a, b := pair(t, at, p, apart)
	var ids, lines []string
	now := time.Now().Truncate(time.Second)
	for i := range 4 {
		ids = append(ids, p.next("r"))
		lines = append(lines, timed(now.Add(time.Duration(1+i)*time.Millisecond), ids[i]))
	}
	body := lines[0] + "\n" + lines[1] + lines[2] + "\n" + lines[3] + "\n"
	some := []string{ids[0], ids[3]}
	with := func(form string) []string { return append([]string{"Content-Type", form}, headers...) }
	if n := a.sendBody(body, some, ids, with("application/x-ndjson")...); n != 2 {
		t.Fatalf("%d of the lines accepted, want 2", n)
	}
	b.sendBody(body, some, ids, with("application/json")...)
	read := newAudit(t, at, p)
	read.whole("sent twice")
	read.flushed(a, b)
}

// Senders at different addresses send the same bodies: these are not repeats.
func TestCompleteSenders(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"one ingester":  func(t *testing.T) { testSenders(t, false) },
		"two ingesters": func(t *testing.T) { testSenders(t, true) },
	})
}

func testSenders(t *testing.T, elsewhere bool) {
	at, _ := dirStore(t)
	stations := []*station{newStation(t, at, &promises{}, "a", "--lane", "1").start()}
	if elsewhere {
		stations = append(stations, newStation(t, at, &promises{}, "b", "--lane", "2").start())
	}
	now := time.Now().Truncate(time.Second)
	var bodies []string
	for i := range 40 { // output of a health check, every few milliseconds
		at := now.Add(time.Duration(i) * 3 * time.Millisecond)
		bodies = append(bodies, fmt.Sprintf(`{"time":"%s","level":"info","msg":"GET /healthz","status":200}`+"\n", record.AppendTime(nil, at.UnixNano())))
	}
	// Output of a cron job, in one whole second.
	cron := fmt.Sprintf(`{"time":"%s","msg":"backup begins"}`+"\n", now.UTC().Format(time.RFC3339))
	bodies = append(bodies, cron+strings.Replace(cron, "begins", "ends", 1))
	want := 0
	send := func(s *station, sender, i int) (accepted int) {
		t.Helper()
		client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+sender))}}).DialContext}}
		code, a := s.insist(client, bodies[i])
		if code != http.StatusOK {
			t.Fatalf("%d %+v", code, a)
		}
		return a.Accepted
	}
	const senders = 6
	for i := range bodies {
		for sender := range senders {
			want += send(stations[sender%len(stations)], sender, i)
		}
	}
	// A sender's own repeat counts as a repeat, also at another ingester.
	for sender := range senders {
		send(stations[(1+sender)%len(stations)], sender, 1) // 0 has a time in whole seconds
	}
	check := func(when string) {
		t.Helper()
		for _, args := range [][]string{{"web"}, {"tail", "web", "-n", "1000"}, {"web", "-n", "1000"}} {
			out, errs, code := answered(t, at, args...)
			if n := strings.Count(string(out), "\n"); code != 0 || n != want {
				t.Errorf("WRONG COMPLETE: %s: %v exits %d and shows %d of %d acknowledged records: %s", when, args, code, n, want, errs)
			}
		}
		if n := count(t, at, "web"); n != want {
			t.Errorf("WRONG COMPLETE: %s: --count is %d, and %d records were acknowledged", when, n, want)
		}
	}
	check("sent")
	for _, s := range stations {
		if !s.flushes() {
			t.Error("it does not flush")
		}
	}
	check("flushed")
}
