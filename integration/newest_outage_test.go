package integration_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage/azure"
	"blobtail/tailindex"
)

// The table store is away for a minute (less in the daily run). Ingestion is not
// affected, and reads that ask an ingester are complete. A tail that has only the
// tables reports from which time on it is stale. Once the tables are back, they have
// every record.
func TestTablesAway(t *testing.T) {
	t.Parallel()
	direct, _ := azureStore(t)
	through, _, tables := laid(t, direct)
	h := newHouse(t, through, 2, "--flush-age", "2s", "--flush-min", "1KiB")
	began := time.Now().Add(-time.Minute)
	load := &load{t: t, h: h, pause: 50 * time.Millisecond, stop: make(chan struct{})}
	if _, long := torture(t); long {
		load.pause = 20 * time.Millisecond
	}
	load.run()
	// No reader has asked so far: an ingester has to know its peers without being
	// asked.
	time.Sleep(6 * time.Second)
	before := load.take()

	pace := measurePace()
	lasts := 6 * time.Second // the reads meanwhile take longer
	if _, long := torture(t); long {
		lasts = time.Minute
	}
	tables.set(cut)
	since := time.Now()
	time.Sleep(lasts / 3)
	load.expectBoth("while the tables refuse", through, since)
	tables.set(silent)
	time.Sleep(lasts / 3)
	load.expectBoth("while the tables are silent", through, since)
	time.Sleep(time.Until(since.Add(lasts)))
	during := load.take()
	tables.set(joined)

	t.Logf("posts took p50 %v, p99 %v before, p50 %v, p99 %v while the tables were away for %v",
		before.p(0.5), before.p(0.99), during.p(0.5), during.p(0.99), time.Since(since).Round(time.Second))
	// The host is busy with other tests; a request that waits for a table waits for
	// seconds.
	if limit := pace.end(2*before.p(0.99) + 300*time.Millisecond); during.p(0.99) > limit {
		t.Errorf("ingestion is slower while the tables are away: more than %v", limit)
	}
	time.Sleep(time.Second)
	close(load.stop)
	load.running.Wait()
	load.expectRead("after", 0)
	reader := tailReader(t, direct)
	testkit.Until(t, "the rows tell of every record", func() bool {
		told, shown := 0, 0
		rows, err := reader.Written(t.Context(), "web", false, began)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Count != r.Omitted+len(r.Entries) {
				t.Fatalf("row %s: %d records, %d omitted, %d there", r.Key, r.Count, r.Omitted, len(r.Entries))
			}
			told += r.Count
			shown += len(r.Entries)
		}
		if told > load.sent {
			t.Fatalf("the rows tell of %d records, and %d were sent", told, load.sent)
		}
		return told == load.sent && shown > 0
	})
	testkit.Until(t, "tail is as before", func() bool { // a busy emulator is slow at first
		out, errs, code := logquery(t, direct, "tail", "web", "-n", "5")
		return code == 0 && !strings.Contains(errs, "stale") && strings.Count(string(out), "\n") == 5
	})
}

// load constantly sends a little to each ingester, and notes the time each request
// takes.
type load struct {
	t       *testing.T
	h       *house
	pause   time.Duration // before each request
	stop    chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	sent  int // acknowledged records
	times durations
}

type durations []time.Duration

// p returns the greatest time within the fastest share of the requests.
func (d durations) p(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(share*float64(len(d))))].Round(100 * time.Microsecond)
}

func (l *load) run() {
	for k := range 4 {
		l.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				case <-time.After(l.pause):
				}
				var body []byte
				at := time.Now()
				for i := range 20 {
					body = appendRecord(body, at.UnixNano()+int64(i), fmt.Sprintf("l%d-%d-%d", k, n, i), "something is done")
				}
				code, a, _, err := l.h.p(k%len(l.h.ps)).post("/ingest/web", body)
				if err != nil || code != http.StatusOK || a.Accepted != 20 {
					l.t.Errorf("POST: %d %+v, %v", code, a, err)
					return
				}
				l.mu.Lock()
				l.sent += 20
				l.times = append(l.times, time.Since(at))
				l.mu.Unlock()
			}
		})
	}
}

// take returns the times since the last take.
func (l *load) take() (d durations) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, l.times = l.times, nil
	return d
}

func (l *load) acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// expectBoth reads with and without live records at once, while the tables are away.
func (l *load) expectBoth(when string, at place, since time.Time) {
	l.t.Helper()
	var reading sync.WaitGroup
	reading.Go(func() { l.expectRead(when, 3) })
	reading.Go(func() { l.expectStale(at, since) })
	reading.Wait()
}

// expectRead reads with live records: all are there. While the tables are away the
// reader cannot know that, and the code is another.
func (l *load) expectRead(when string, want int) {
	l.t.Helper()
	least := l.acked()
	out, errs, code := l.read(want == 0, l.h.read, "web")
	if n := strings.Count(string(out), "\n"); code != want || n < least {
		l.t.Errorf("%s: read exits %d with %d records, want %d and at least %d: %s", when, code, n, want, least, errs)
	}
}

// read runs logquery. While the tables are away, exit code 3 is expected for any reason, and
// only a read that failed is repeated on a machine that is too slow for it.
func (l *load) read(whole bool, at place, args ...string) (out []byte, errs string, code int) {
	l.t.Helper()
	testkit.Until(l.t, "logquery has its answers in time", func() bool {
		out, errs, code = logquery(l.t, at, args...)
		return !tooSlow(errs, code) || code == 3 && !whole
	})
	return out, errs, code
}

var staleNote = regexp.MustCompile(`the tail is stale from (\S+) on`)

// expectStale asks for the tail without live records. The tail shows the records in
// blobs and reports the time from which on records may be missing.
func (l *load) expectStale(at place, since time.Time) {
	l.t.Helper()
	out, errs, code := l.read(false, at, "tail", "web", "-n", "5")
	m := staleNote.FindStringSubmatch(errs)
	if code != 3 || m == nil || strings.Count(string(out), "\n") != 5 {
		l.t.Errorf("tail exits %d with %d lines, want 3, 5 and a word on how stale it is: %s", code, strings.Count(string(out), "\n"), errs)
		return
	}
	from, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil || from.After(time.Now()) || from.Before(since.Add(-time.Minute)) { // rows may be late on a busy machine
		l.t.Errorf("%q: want a time shortly before or after %v", m[0], since)
	}
}

// tailReader reads the rows of a place of Azurite directly.
func tailReader(t testing.TB, at place) *tailindex.Reader {
	t.Helper()
	store, err := azure.Open(strings.TrimPrefix(at.store, "azure:"), azure.Options{Getenv: shared.Azurite(t).Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return tailindex.NewReader(store, tailindex.Options{Store: spec(t, at).Name()})
}
