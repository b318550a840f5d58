package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// producer sends records of a fixed size at a fixed rate, each body once.
type producer struct {
	p       *ingester
	ledger  *check.Ledger
	name    string
	sent    int   // records
	bytes   int64 // of acknowledged bodies
	refused int   // bodies answered 429
	after   string
}

// body makes the next body, of 40 records of about 8 KiB.
func (s *producer) body() (data []byte, ids []string) {
	base := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC).UnixNano()
	pad := bytes.Repeat([]byte("0123456789abcdef"), 500)
	for range 40 {
		s.sent++
		id := fmt.Sprintf("%s-%d", s.name, s.sent)
		at := base + int64(s.sent)*1e6 + 1
		data = record.AppendTime(append(data, `{"time":"`...), at)
		data = fmt.Appendf(data, `","msg":"%s is one","pad":"%s"}`+"\n", id, pad)
		ids = append(ids, id)
		s.ledger.Sent(id, s.name, at)
	}
	return data, ids
}

// one sends a body and returns the status.
func (s *producer) one() int {
	s.p.t.Helper()
	data, ids := s.body()
	code, a, header, err := s.p.post("/ingest/"+s.name, data)
	switch {
	case err == nil && code == http.StatusOK && a.Accepted == len(ids):
		s.ledger.Acked(ids...)
		s.bytes += int64(len(data))
	case err == nil && code == http.StatusTooManyRequests:
		s.ledger.Rejected(ids...)
		s.refused++
		s.after = header.Get("Retry-After")
	default:
		s.p.t.Errorf("POST: %d %+v, %v", code, a, err)
	}
	return code
}

// run sends at a rate in bytes a second until stop is closed or an unexpected answer
// arrives.
func (s *producer) run(rate int64, stop <-chan struct{}) {
	begun, from := time.Now(), s.bytes
	for {
		select {
		case <-stop:
			return
		default:
		}
		if code := s.one(); code != http.StatusOK && code != http.StatusTooManyRequests {
			return
		}
		due := begun.Add(time.Duration(float64(s.bytes-from) / float64(rate) * 1e9))
		time.Sleep(time.Until(due))
	}
}

// capacity measures how many bytes a second the ingester accepts and stores on this
// machine under its present load.
func (s *producer) capacity() int64 {
	s.p.t.Helper()
	begun, from := time.Now(), s.bytes
	for time.Since(begun) < time.Second {
		s.one()
	}
	s.p.mustFlush()
	return int64(float64(s.bytes-from) / time.Since(begun).Seconds())
}

// A long store outage costs disk space, but no memory and no record. When the store
// is back, the backlog is stored at least twice as fast as it arrived, while more
// records arrive. The arrival rate is at most a quarter of the ingester's capacity.
func TestLongOutage(t *testing.T) {
	const tries = 3 // the machine may be slower at the end than at the start
	for try := 1; ; try++ {
		away, took := longOutage(t)
		if took <= away {
			return
		}
		if try == tries {
			t.Fatalf("not caught up after %v, as long as the store was away, and not %d times before", took, tries-1)
		}
		t.Logf("again, since it took %v to catch up", took)
	}
}

func longOutage(t *testing.T) (away, took time.Duration) {
	lasts := lasting(t, 12*time.Second)
	through, direct, px := proxied(t)
	conf := config(t, "flush: {size: 8MiB, age: 1s, max-age: 2s}\nlog: {segment: 16MiB, soft: 64MiB}\n")
	p := start(t, through, t.TempDir(), conf)
	s := &producer{p: p, ledger: &check.Ledger{}, name: "web"}
	// Longer outages use a lower rate, because the test reads all records back at the
	// end.
	rate := min(12<<20, int64(3<<30/lasts.Seconds()), s.capacity()/4)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.run(rate, stop)
	}()
	time.Sleep(1500 * time.Millisecond) // the store is healthy
	g := watch(p)
	px.set(all(refuse))
	begun, taken := time.Now(), p.metric("blobtail_buffer_records_total")
	time.Sleep(lasts)
	g.end()
	size := p.metric("blobtail_log_bytes")
	taken = (p.metric("blobtail_buffer_records_total") - taken) * 8000 // bytes each
	px.set(healthy)
	away = time.Since(begun)
	mended := time.Now()
	testkit.Until(t, "it has caught up", func() bool { return p.metric("blobtail_oldest_unflushed_seconds") < 3 })
	took = time.Since(mended)
	close(stop)
	<-done
	p.mustFlush()
	t.Logf("away for %v; the log grew to %.0f MB; caught up in %v, which is %.1f times as fast as it came",
		away, size/1e6, took, 1+away.Seconds()/took.Seconds())
	slack := 24.0 * (1 << 20) // a third of the bytes that come in between
	if _, long := torture(t); long {
		slack = 64 << 20
	}
	g.check(t, slack)
	if s.refused > 0 {
		t.Errorf("%d requests were refused without need", s.refused)
	}
	if size < 0.8*taken {
		t.Errorf("the log has %.0f MB, and %.0f MB were taken", size/1e6, taken/1e6)
	}
	verifyLedger(t, direct, s.ledger)
	return away, took
}

// A log that has reached its limit accepts no more records and tells senders when to
// retry. It accepts records again by itself once it has room.
func TestWatermark(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, t.TempDir(), config(t, "flush: {size: 256KiB, age: 300ms, max-age: 1s}\nlog: {segment: 1MiB, soft: 4MiB, max: 16MiB}\n"))
	s := &producer{p: p, ledger: &check.Ledger{}, name: "web"}
	for round := range 2 {
		mend := breakDir(t, root, "web")
		for s.one() == http.StatusOK {
		}
		if n, err := strconv.Atoi(s.after); err != nil || n < 1 {
			t.Errorf("Retry-After: %q", s.after)
		}
		if size := p.metric("blobtail_log_bytes"); size < 15<<20 || size > 20<<20 {
			t.Errorf("refused with %v bytes in the log, whose limit is 16 MiB", size)
		}
		mend()
		begun := time.Now()
		testkit.Until(t, "it takes records again", func() bool { return s.one() == http.StatusOK })
		t.Logf("round %d: takes records again %v after the store is back", round, time.Since(begun).Round(time.Millisecond))
	}
	p.mustFlush()
	if rep := verifyLedger(t, at, s.ledger); rep.Unknown > 0 || rep.Found != rep.Acked {
		t.Error(rep)
	}
}
