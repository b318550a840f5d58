package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/internal/openstore"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// The output and the exit code of a read, with and without access to live records.
func TestLiveCodes(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		h := newHouse(t, at, 3)
		for i := range 3 {
			post := func(n int) {
				h.p(i).mustPost("/ingest/web", appendRecord(nil, time.Now().UnixNano(), fmt.Sprintf("r%d-%d", i, n), "x"))
			}
			post(0)
			h.p(i).mustFlush()
			post(1)
		}
		l := &liveCodes{t: t, at: h.read}
		l.expect("all are there", 0, 6, "")
		l.expect("off", 0, 3, "no ingester is asked", "--live", "off")
		l.expect("only", 0, 3, "", "--live", "only")
		l.expect("bad flag", 2, 0, "auto, off or only", "--live", "of")
		// No ingester holds records that are so late.
		l.expect("nobody there, an hour ago", 1, 0, "none holds records of this range that are in no blob: no ingester can be reached at http://127.0.0.1:9", "--live-url", "http://127.0.0.1:9", "--to", "now-1h")
		l.expect("nobody there, five minutes ago", 3, 0, "no ingester can be reached at http://127.0.0.1:9", "--live-url", "http://127.0.0.1:9", "--to", "now-5m")
		l.at = place{store: at.store, env: append(slices.Clone(h.at.env), "BLOBTAIL_LIVE=http://127.0.0.1:9")}
		l.expect("nobody there", 3, -1, "no ingester can be reached at http://127.0.0.1:9")
		l.expect("nobody there, only", 3, 0, "no ingester can be reached", "--live", "only")
		l.at = at
		l.expect("not configured", 0, 6, "") // the addresses in the rows are asked
		l.expect("not configured, only", 0, 3, "", "--live", "only")
		l.at = h.read

		// An ingester that has ended with all records in blobs is not reported
		// missing.
		h.p(1).mustFlush()
		if code := h.p(1).leave(func() *ingester { return start(t, at, h.dirs[1], h.flags[1]...) }); code != 0 {
			t.Errorf("exit code %d", code)
		}
		l.expect("one stopped", 0, 6, "")
		// A killed one is reported, even if it had no records.
		id := l.id(2)
		h.p(2).kill()
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		l.expect("one killed", 3, -1, "ingester "+id+" on "+host)
		l.expect("one killed, only", 3, -1, "ingester "+id+" on "+host, "--live", "only")
		l.expect("one killed, off", 0, 4, "no ingester is asked", "--live", "off")
	})
}

// A reader rejects an ingester that writes to another store. Otherwise its answers
// would be assumed complete.
func TestLiveOfAnotherStore(t *testing.T) {
	t.Parallel()
	mostlyDir(t, func(t *testing.T, at place) {
		h := newHouse(t, at, 1)
		other, _ := dirStore(t)
		elsewhere := newHouse(t, other, 1)
		for _, p := range []*ingester{h.p(0), elsewhere.p(0)} {
			p.mustPost("/ingest/web", appendRecord(nil, time.Now().UnixNano(), p.listen, "x"))
		}
		l := &liveCodes{t: t, at: at}
		url := elsewhere.p(0).listen
		l.expect("another store's", 3, -1, "has never written to "+at.store, "--live-url", url)
		l.expect("another store's, only", 3, 0, "has never written to", "--live-url", url, "--live", "only")
		l.at = h.read
		l.expect("its own", 0, 1, "")
	})
}

// liveCodes reads in many ways.
type liveCodes struct {
	t  *testing.T
	at place
}

// expect reads and wants a code, a number of lines (-1: any), and a note.
func (l *liveCodes) expect(what string, code, lines int, note string, flags ...string) {
	l.t.Helper()
	out, errs, got := answered(l.t, l.at, append([]string{"web"}, flags...)...)
	if n := strings.Count(string(out), "\n"); got != code || lines >= 0 && n != lines {
		l.t.Errorf("%s: exit code %d and %d lines, want %d and %d: %s", what, got, n, code, lines, errs)
	}
	_, rest, _ := strings.Cut(errs, "\n") // the first line names the range
	if note == "" && rest != "" || code == 2 && !strings.Contains(errs, note) || code != 2 && !strings.Contains(rest, note) {
		l.t.Errorf("%s: the notes are %q, want %q", what, errs, note)
	}
}

// id returns the id of an ingester, by its lane.
func (l *liveCodes) id(i int) string {
	l.t.Helper()
	for _, a := range ingesters(l.t, l.at) {
		if a.Lane == i+1 {
			return a.ID
		}
	}
	l.t.Fatalf("no ingester has lane %d", i+1)
	return ""
}

// An ingester that has announced nothing for a minute is asked. It is reported
// missing only if it had unflushed records.
func TestSilentPeers(t *testing.T) {
	t.Parallel()
	mostlyDir(t, func(t *testing.T, at place) {
		h := newHouse(t, at, 1)
		h.p(0).mustPost("/ingest/web", []byte(two))
		l := &liveCodes{t: t, at: h.read}
		announce(t, at, "0badcafe", 2*time.Minute, time.Time{})
		l.expect("one silent with nothing", 0, 2, "")
		left := time.Now().Add(-3 * time.Minute)
		announce(t, at, "deadbeef", 2*time.Minute, left)
		l.expect("one silent with something", 3, 2, "deadbeef")
		out, errs, code := logquery(t, h.read, "web", "--to", "now-1d")
		// Its records may have any times: their arrival time does not limit them.
		if code != 3 || strings.Count(string(out), "\n") != 2 || !strings.Contains(errs, "deadbeef") {
			t.Errorf("a read of what is older than all it has exits %d: %s", code, errs)
		}
		// The same holds if no ingester is running.
		h.p(0).mustFlush()
		h.p(0).stop()
		l.at = at
		l.expect("silence all around", 3, 2, "deadbeef")
	})
}

// announce writes the row of an ingester that was last heard of some time ago.
func announce(t testing.TB, at place, id string, ago time.Duration, oldest time.Time) {
	t.Helper()
	tables, end := tablesOf(t, at)
	defer end()
	a, err := lease.New(tables, lease.Options{
		ID: id, Lane: 50, Store: spec(t, at).Name(),
		Address: "http://127.0.0.1:9", Host: "gone-" + id, Version: "test",
		Oldest: func() (time.Time, bool) { return oldest, !oldest.IsZero() },
		Now:    func() time.Time { return time.Now().Add(-ago) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	go a.Run(ctx)
	<-a.First()
	stop()
}

// tablesOf opens the tables of a place.
func tablesOf(t testing.TB, at place) (storage.TableStore, func() error) {
	t.Helper()
	if name, ok := strings.CutPrefix(at.store, "azure:"); ok {
		s, err := azure.Open(name, azure.Options{Getenv: shared.Azurite(t).Getenv})
		if err != nil {
			t.Fatal(err)
		}
		return s, func() error { return nil }
	}
	s, err := openstore.Open(t.Context(), spec(t, at), false)
	if err != nil {
		t.Fatal(err)
	}
	return s.Tables, s.Close
}

// spec parses the store of a place.
func spec(t testing.TB, at place) openstore.Spec {
	t.Helper()
	s, err := openstore.Parse(at.store)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
