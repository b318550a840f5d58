package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// A read names a dead ingester for every range: records may arrive seconds or weeks
// later than their times.
func TestCompleteRanges(t *testing.T) {
	t.Parallel()
	variants := map[string]func(t *testing.T){}
	for store, open := range map[string]func(t *testing.T) place{
		"dir":   func(t *testing.T) place { at, _ := dirStore(t); return at },
		"azure": func(t *testing.T) place { at, _ := azureStore(t); return at },
	} {
		variants[store+", killed"] = func(t *testing.T) { testRanges(t, open(t), func(s *station) { s.kill() }) }
		variants[store+", hangs"] = func(t *testing.T) { testRanges(t, open(t), (*station).freeze) }
	}
	beside(t, variants)
}

func testRanges(t *testing.T, at place, end func(*station)) {
	late := time.Now().Add(-21 * 24 * time.Hour).Truncate(time.Second)
	// The records of each range are separate promises: a read of one range must show
	// no records of the other.
	old, fresh := &promises{}, &promises{}
	a := newStation(t, at, old, "a", "--lane", "1").start()
	b := newStation(t, at, old, "b", "--lane", "2").start()
	// These are sent more than a second after their time, by the store's clock too,
	// which Azure reports in whole seconds. They are also sent before all others.
	a.promises, b.promises = fresh, fresh
	came := time.Now()
	time.Sleep(2500 * time.Millisecond)
	for i := range 4 {
		for _, s := range []*station{a, b} {
			s.takeAt(came.Add(time.Duration(i) * 100 * time.Millisecond))
		}
	}
	a.promises, b.promises = old, old
	a.takeAt(late.Add(time.Hour))
	b.takeAt(late.Add(2 * time.Hour))
	if !b.flushes() {
		t.Fatal("b does not flush")
	}
	time.Sleep(time.Second)
	end(a)
	ranges := []struct {
		audit
		name string
	}{
		{newAudit(t, at, old).by("--from", rfc(late), "--to", rfc(late.Add(24*time.Hour))), "weeks ago"},
		{newAudit(t, at, fresh).by("--from", rfc(late.Add(48*time.Hour)), "--to", rfc(came.Add(time.Second))), "before the first arrival"},
		{newAudit(t, at, fresh).by("--from", rfc(late.Add(48*time.Hour))), "until now"},
	}
	look := func(when string, forms []form, flags ...string) {
		t.Helper()
		for _, r := range ranges {
			r.only(forms...).by(flags...).names(when+", "+r.name, a.id())
		}
	}
	url := []string{"--live-url", b.base}
	some, every := []form{asRead, asCount}, []form{asRead, asCount, asHist, asNewest}
	if _, long := torture(t); long {
		some = every
	}
	look("at once", every, url...)
	fallsSilent(t, at, a.id())
	look("after a minute", some, url...)
	look("after a minute", some)
	if code, _ := b.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	look("nobody runs", some)
	age(t, at, a.id(), 48*time.Hour)
	look("days later", every)
}

func rfc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// An ingester that rested is killed right after its first answer. Reads name it at
// once, and later.
func TestCompleteKilledAfterRest(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"dir": func(t *testing.T) {
			at, _ := dirStore(t)
			testKilledAfterRest(t, at)
		},
		"azure": func(t *testing.T) {
			at, _ := azureStore(t)
			testKilledAfterRest(t, at)
		},
	})
}

func testKilledAfterRest(t *testing.T, at place) {
	p := &promises{}
	a := newStation(t, at, p, "a", "--lane", "1").start()
	b := newStation(t, at, p, "b", "--lane", "2").start()
	a.take()
	b.take()
	a.rest()
	b.rest()
	read := newAudit(t, at, p)
	byA := read.by("--live-url", a.base)
	b.take()
	b.kill()
	byA.names("at once", b.id())
	fallsSilent(t, at, b.id())
	byA.names("after a minute", b.id())
	read.names("after a minute, whoever is asked", b.id())
	b.start()
	byA.whole("started again")
}

// An operator gives up ingesters with lost logs, one by its id and many by their
// silence. Reads still name the remaining ones.
func TestCompleteForget(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		p := &promises{}
		a := newStation(t, at, p, "a", "--lane", "1").start()
		a.take()
		a.rest()
		type lost struct{ id, record string }
		var all []lost
		for i, ago := range []time.Duration{2 * time.Minute, 2 * time.Hour, 25 * time.Hour} {
			s := newStation(t, at, p, fmt.Sprintf("lost%d", i), "--lane", strconv.Itoa(2+i)).start()
			record := s.take()
			s.kill()
			all = append(all, lost{s.id(), record})
			age(t, at, s.id(), ago)
		}
		byA := newAudit(t, at, p).by("--live-url", a.base)
		for _, l := range all {
			byA.names("three are dead", l.id)
		}
		forgets(t, at, all[0].id, all[0].id)
		p.giveUp(all[0].record)
		for name, v := range byA.complete("one is forgotten") {
			if strings.Contains(v.errs, all[0].id) {
				t.Errorf("%s still names %s: %s", name, all[0].id, v.errs)
			}
		}
		byA.names("one is forgotten", all[1].id)
		forgets(t, at, all[2].id, "--silent", "24h")
		p.giveUp(all[2].record)
		byA.names("two are forgotten", all[1].id)
		forgets(t, at, "", "--silent", "24h") // no ingester is silent for that long
		byA.names("none is forgotten again", all[1].id)
		forgets(t, at, all[1].id, all[1].id)
		p.giveUp(all[1].record)
		byA.whole("all are forgotten")
	})
}

// The age of the oldest unflushed record keeps growing over a kill and a start.
func TestOldestUnflushedOverRestart(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		s := newStation(t, at, &promises{}, "a").start()
		pause := 3 * time.Second // twice this is more than the metric may lag
		if _, long := torture(t); long {
			pause = 5 * time.Second
		}
		s.take()
		acked := time.Now()
		time.Sleep(pause)
		s.kill()
		time.Sleep(pause)
		s.start()
		// The metric lags a little, but never by as much as the age before the start.
		testkit.Until(t, "the metric tells the record's age", func() bool {
			return s.gauge("blobtail_oldest_unflushed_seconds") >= time.Since(acked).Seconds()-4
		})
		testkit.Until(t, "the list of ingesters tells the record's age", func() bool {
			all := ingesters(t, at)
			return len(all) == 1 && all[0].Unflushed >= time.Since(acked).Seconds()-4
		})
		if got := s.gauge("blobtail_oldest_unflushed_seconds"); got > time.Since(acked).Seconds()+60 {
			t.Errorf("a record of %v ago is said to be %v s old", time.Since(acked), got)
		}
	})
}

// gauge reads a metric at the admin listener; -1: the metric is missing.
func (s *station) gauge(name string) float64 {
	s.t.Helper()
	resp, err := http.Get(s.admin + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}
