package integration_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// raise drops all days of a service that end before keep ago.
func raise(t testing.TB, root, service string, keep time.Duration) horizon.Day {
	t.Helper()
	store, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	first := horizon.DayOf(time.Now().Add(-keep))
	if err := horizon.Publish(t.Context(), store, service, first); err != nil {
		t.Fatal(err)
	}
	return first
}

// dated returns a record with the given time.
func dated(at time.Time, msg string) string {
	return fmt.Sprintf(`{"ts":"%s","msg":"%s"}`+"\n", at.UTC().Format(time.RFC3339Nano), msg)
}

// holding returns the files below a directory that contain a text.
func holding(t testing.TB, root, text string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, []byte(text)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

const month = 30 * 24 * time.Hour

// Records of dropped days are answered as expired and are kept nowhere: not in the
// log, not in the tables, not in the store.
func TestExpired(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	first := raise(t, root, "web", month)
	wal := t.TempDir()
	p := start(t, at, wal) // it knows the dropped days by the time it is ready
	now := time.Now()
	body := dated(first.Start().Add(-time.Nanosecond), "secret of the day before") +
		dated(first.Start(), "first") + dated(now, "now")
	for range 2 { // sent again, it is a copy of the kept records
		if a := p.mustPost("/ingest/web", []byte(body)); a.Accepted != 2 || a.Expired != 1 {
			t.Errorf("%+v", a)
		}
	}
	if a := p.mustPost("/ingest/web", []byte(dated(now.Add(-2*month), "secret, alone")), "Ack", "stored"); a.Accepted != 0 || a.Expired != 1 {
		t.Errorf("%+v", a)
	}
	if a := p.mustPost("/ingest/db", []byte(dated(now.Add(-2*month), "of another service"))); a.Accepted != 1 || a.Expired != 0 {
		t.Errorf("%+v", a)
	}
	if n := p.metric("blobtail_records_expired_total"); n != 2 { // a repeat is not counted again
		t.Errorf("%v records are counted", n)
	}
	p.mustFlush()
	if n := count(t, at, "web"); n != 2 {
		t.Errorf("%d records of web", n)
	}
	if n := count(t, at, "db"); n != 1 {
		t.Errorf("%d records of db", n)
	}
	if code, _ := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, where := range []string{root, wal} {
		if found := holding(t, where, "secret"); len(found) > 0 {
			t.Errorf("kept in %q", found)
		}
	}
}

// A batch is cut, and then its day is dropped. The batch is not stored afterwards,
// through kills and starts. The ingester counts it as expired, and the log deletes
// it.
func TestBacklogExpires(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal)
	mend := breakDir(t, root, "web")
	old, now := time.Now().Add(-2*month), time.Now()
	if a := p.mustPost("/ingest/web", []byte(dated(old, "old")+dated(old, "old too")+dated(now, "now"))); a.Accepted != 3 {
		t.Errorf("%+v", a)
	}
	if code, f, err := p.flush("?timeout=1s"); err != nil || code != http.StatusGatewayTimeout || f.RecordsLeft != 3 {
		t.Fatalf("flush: %d %+v, %v", code, f, err)
	}
	p.kill()
	first := raise(t, root, "web", month)
	p = start(t, at, wal) // the store still refuses the service
	testkit.Until(t, "the old batch is done with", func() bool { return p.metric("blobtail_batches_expired_total") == 1 })
	p.kill()
	mend()
	p = start(t, at, wal)
	p.mustFlush()
	if n := p.metric("blobtail_batches_expired_total"); n != 0 {
		t.Errorf("%v batches expire a second time", n)
	}
	if got := string(query(t, at, "web")); !strings.Contains(got, "now") || strings.Count(got, "\n") != 1 {
		t.Errorf("stored: %q", got)
	}
	before := filepath.Join(root, "web", old.UTC().Format("2006/01/02"))
	if _, err := os.Stat(before); err == nil {
		t.Errorf("there is something in %s, which is before %s", before, first)
	}
}

// While the ingester cannot read the dropped days, it stores no blobs. It accepts
// records, and they wait in the log.
func TestHorizonsAway(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	var blobs atomic.Int64
	watched := func(lists fault) mode {
		return func(r *http.Request) fault {
			if putsBlob(r) {
				blobs.Add(1)
			}
			if prefix := r.URL.Query().Get("prefix"); strings.HasPrefix(prefix, "_horizon/") || strings.HasPrefix(prefix, "_dropped/") {
				return lists
			}
			return none
		}
	}
	px.set(watched(forbid))
	p := start(t, through, t.TempDir())
	p.mustPost("/ingest/web", []byte(dated(time.Now(), "waits")))
	if code, f, err := p.flush("?timeout=3s"); err != nil || code != http.StatusGatewayTimeout || f.RecordsLeft != 1 {
		t.Errorf("flush: %d %+v, %v; want 504", code, f, err)
	}
	testkit.Until(t, "the failure is counted", func() bool { return p.metric("blobtail_buffer_store_failures_total") > 0 })
	if n := blobs.Load(); n > 0 {
		t.Errorf("%d creates of blobs", n)
	}
	if !strings.Contains(p.Log(), "cannot see which days have been dropped") {
		t.Error("our own log does not say why")
	}
	px.set(watched(none))
	p.mustFlush()
	if n := count(t, direct, "web"); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A message is acknowledged even if its records have expired.
func TestExpiredNATS(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	raise(t, root, "web", month)
	server, js := newStream(t)
	p := start(t, at, t.TempDir(), "--nats", server.URL)
	old := dated(time.Now().Add(-2*month), "old")
	for _, body := range []string{old, old + dated(time.Now(), "both"), dated(time.Now(), "new")} {
		if _, err := js.Publish(t.Context(), "logs.web", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "all messages are taken", func() bool {
		return p.metric(`blobtail_nats_records_total{result="accepted"}`) == 2 && p.metric("blobtail_records_expired_total") == 2
	})
	empty(t, js, p)
	if n := count(t, at, "web"); n != 2 {
		t.Errorf("%d records", n)
	}
}

// A running ingester learns of a raised horizon within a minute. It does not store
// waiting records below the horizon, and it answers new ones as expired. No restart
// is needed.
func TestHorizonRises(t *testing.T) {
	longOnly(t, "it takes a minute; horizon TestWatchHides has it in virtual time")
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, t.TempDir())
	mend := breakDir(t, root, "web")
	old := dated(time.Now().Add(-2*month), "old")
	if a := p.mustPost("/ingest/web", []byte(old)); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	if code, _, err := p.flush("?timeout=1s"); err != nil || code != http.StatusGatewayTimeout {
		t.Fatalf("flush: %d, %v", code, err)
	}
	raise(t, root, "web", month)
	begun := time.Now()
	testkit.Until(t, "the batch expires", func() bool { return p.metric("blobtail_batches_expired_total") > 0 })
	t.Logf("known after %s", time.Since(begun).Round(time.Second))
	if a := p.mustPost("/ingest/web", []byte(old)); a.Accepted != 1 || !a.Duplicate {
		t.Errorf("a repeat gets another answer than the first: %+v", a)
	}
	if a := p.mustPost("/ingest/web", []byte(dated(time.Now().Add(-2*month), "older"))); a.Expired != 1 {
		t.Errorf("%+v", a)
	}
	mend()
	p.mustFlush()
	if _, err := os.Stat(filepath.Join(root, "web")); err == nil {
		t.Error("something of web is stored")
	}
}
