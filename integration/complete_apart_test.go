package integration_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// trio is a place of Azurite with cables to it that are cut one by one.
type trio struct {
	at, through place // directly, and by cables
	tables      *cable
	promises    *promises
}

func newTrio(t testing.TB) *trio {
	t.Helper()
	at, _ := azureStore(t)
	through, _, tables := laid(t, at)
	return &trio{at, through, tables, &promises{}}
}

// The row of an ingester says that all its records are in blobs. The ingester is then
// cut off from the tables, accepts a record, and hangs or is killed.
func TestCompleteCutOff(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"and hangs":           func(t *testing.T) { testCutOff(t, (*station).freeze) },
		"and killed":          func(t *testing.T) { testCutOff(t, func(s *station) { s.kill() }) },
		"and runs":            testCutOffForLong,
		"from the start":      testStartCutOff,
		"and killed, silence": func(t *testing.T) { testTablesSilent(t) },
	})
}

func testCutOff(t *testing.T, end func(*station)) {
	p := newTrio(t)
	a := newStation(t, p.at, p.promises, "a", "--lane", "1").start()
	b := newStation(t, p.through, p.promises, "b", "--lane", "2").start()
	a.take()
	b.take()
	a.rest()
	b.rest()
	p.tables.set(cut)
	taken := b.offers(2)
	t.Logf("%d of 2 records acknowledged without the tables", taken)
	read := newAudit(t, p.at, p.promises)
	byA := read.by("--live-url", a.base)
	byA.complete("at once")
	t.Logf("not ready: %s", b.refuses())
	fallsSilent(t, p.at, b.id())
	byA.complete("after a minute")
	end(b)
	look := func(a audit, when string) {
		t.Helper()
		if taken > 0 {
			a.names(when, b.id())
		} else {
			a.complete(when)
		}
	}
	look(byA, "ended")
	look(read, "ended, nobody is asked")
	age(t, p.at, b.id(), 3*time.Hour)
	look(byA, "hours later")
	look(read, "hours later, nobody is asked")
}

// The tables do not even refuse: every request to them waits.
func testTablesSilent(t *testing.T) {
	p := newTrio(t)
	a := newStation(t, p.at, p.promises, "a", "--lane", "1").start()
	b := newStation(t, p.through, p.promises, "b", "--lane", "2").start()
	a.take()
	b.take()
	a.rest()
	b.rest()
	p.tables.set(silent)
	t.Logf("%d of 2 records acknowledged with silent tables", b.offers(2))
	b.kill()
	age(t, p.at, b.id(), 2*time.Minute)
	newAudit(t, p.at, p.promises).by("--live-url", a.base).complete("two minutes later")
}

// The ingester runs on for hours. Its old row is no reason not to ask it.
func testCutOffForLong(t *testing.T) {
	p := newTrio(t)
	a := newStation(t, p.at, p.promises, "a", "--lane", "1").start()
	b := newStation(t, p.through, p.promises, "b", "--lane", "2").start()
	a.take()
	b.take()
	a.rest()
	b.rest()
	p.tables.set(cut)
	t.Logf("%d of 2 records acknowledged without the tables", b.offers(2))
	age(t, p.at, b.id(), 2*time.Hour)
	byA := newAudit(t, p.at, p.promises).by("--live-url", a.base)
	byA.complete("hours later")
}

// A new ingester cannot reach the tables, but all others can. No peer or reader knows
// of it, so it accepts no records.
func testStartCutOff(t *testing.T) {
	p := newTrio(t)
	a := newStation(t, p.at, p.promises, "a", "--lane", "1").start()
	a.take()
	a.rest()
	p.tables.set(cut)
	c := newStation(t, p.through, p.promises, "c", "--lane", "3")
	c.launch()
	if n := c.offers(3); n > 0 {
		t.Errorf("%d of 3 records acknowledged by an ingester that nobody knows of", n)
	}
	read := newAudit(t, p.at, p.promises)
	read.by("--live-url", a.base).complete("at once")
	t.Logf("not ready: %s", c.refuses())
	if n := c.offers(1); n > 0 {
		t.Error("it is not ready, and takes a record")
	}
	read.by("--live-url", a.base).complete("later")
	read.complete("later, nobody is asked")
	p.tables.set(joined)
	c.becomesReady()
	c.take()
	read.by("--live-url", a.base).whole("joined")
}

// The reader asks an ingester that cannot reach the tables. That ingester does not
// know of a peer that has started since.
func TestCompleteUnknownIngester(t *testing.T) {
	t.Parallel()
	p := newTrio(t)
	a := newStation(t, p.through, p.promises, "a", "--lane", "1").start()
	a.take()
	a.rest()
	p.tables.set(cut)
	b := newStation(t, p.at, p.promises, "b", "--lane", "2").start()
	b.take()
	byA := newAudit(t, p.at, p.promises).by("--live-url", a.base)
	byA.complete("through the one that is cut off")
	newAudit(t, p.at, p.promises).by("--live-url", b.base).complete("through the other")
	b.kill()
	byA.complete("the other is killed")
	b.start()
	p.tables.set(joined)
	a.take()
	byA.whole("joined again")
}

// A reader that cannot read the tables has the URL of an ingester of another
// container.
func TestCompleteForeignURL(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"tables cut": func(t *testing.T) {
			testForeignURL(t, func(p *trio) { p.tables.set(cut) })
		},
		"tables silent": func(t *testing.T) {
			testForeignURL(t, func(p *trio) { p.tables.set(silent) })
		},
		"tables refused": func(t *testing.T) {
			refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("x-ms-error-code", "AuthorizationFailure")
				http.Error(w, "forbidden", http.StatusForbidden)
			}))
			t.Cleanup(refusing.Close)
			testForeignURL(t, func(p *trio) {
				p.through.env = slices.Clone(p.through.env)
				p.through.env[0] = strings.Replace(p.through.env[0], p.tables.listener.Addr().String(), strings.TrimPrefix(refusing.URL, "http://"), 1)
			})
		},
	})
}

func testForeignURL(t *testing.T, away func(*trio)) {
	p := newTrio(t)
	own := newStation(t, p.at, p.promises, "own").start()
	other, _ := azureStore(t)
	theirs := &promises{}
	foreign := newStation(t, other, theirs, "foreign").start()
	own.take()
	own.rest()
	own.take()
	foreign.take()
	newAudit(t, p.at, p.promises).by("--live-url", own.base).whole("the own ingester, with tables")
	newAudit(t, other, theirs).by("--live-url", foreign.base).whole("the other ingester, of its store")
	away(p)
	read := newAudit(t, p.through, p.promises)
	var reading sync.WaitGroup // each waits for the tables
	reading.Go(func() { read.by("--live-url", foreign.base).warns("another container's ingester") })
	reading.Go(func() { read.by("--live-url", own.base).complete("the own ingester") })
	reading.Wait()
}

// Without a URL, a read of a remote store asks the ingesters at the addresses in their rows. One
// that holds records and cannot be reached makes it incomplete, even if the service is in no blob.
// A reader that wants blobs alone gets a note on the records in no blob, even with -q.
func TestCompleteByRows(t *testing.T) {
	t.Parallel()
	at, _ := azureStore(t)
	p := &promises{}
	a := newStation(t, at, p, "a").start()
	b := newStation(t, at, p, "b", "--advertise", "http://127.0.0.1:9").start()
	reads := [][]string{{"web"}, {"web", "--count"}, {"hist", "web"}, {"web", "-n", "100"}, {"tail", "web"}, {"ls"}, {"fields", "web"}}
	all := func(when string, code int, says string, more ...string) {
		t.Helper()
		for _, args := range reads {
			args = slices.Concat(args, more)
			_, errs, got := answered(t, at, args...)
			if got != code || !strings.Contains(errs, says) {
				t.Errorf("%s: %v exits %d, want %d and %q: %s", when, args, got, code, says, errs)
			}
		}
	}
	a.takeAt(time.Now().Add(-48 * time.Hour))
	all("in no blob", 0, "")
	newAudit(t, at, p).whole("the ingester is asked by its row")
	a.rest()
	b.takeAt(time.Now().Add(-47 * time.Hour))
	all("out of reach", 3, "could not be asked", "-q")
	all("out of reach, named", 3, "could not be asked: no ingester can be reached at http://127.0.0.1:9")
	reads = reads[:len(reads)-1] // fields of no record
	all("blobs alone", 0, "in no blob yet", "--live", "off", "-q")
	env := at.env
	at.env = append(slices.Clone(env), "BLOBTAIL_LIVE=off")
	all("blobs alone, by the environment", 0, "in no blob yet", "-q")
	at.env = env
	newAudit(t, at, p).by("--live-url", b.base).whole("the one that is out of reach is named")
}
