package integration_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// breakDir makes a dir store refuse all requests for some services, as a bad disk
// would. Their directories turn into files, each in one step, since an ingester that
// tries again would recreate them. The returned function repairs the store.
func breakDir(t testing.TB, root string, services ...string) (mend func()) {
	t.Helper()
	swap := func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}
	for _, s := range services {
		path, aside := filepath.Join(root, s), filepath.Join(root, "."+s)
		if err := os.WriteFile(aside, []byte("no directory"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := swap(aside, path); errors.Is(err, unix.ENOENT) {
			err = os.Rename(aside, path) // nothing was stored for it yet
			if err != nil {
				err = swap(aside, path) // the directory has appeared meanwhile
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		for _, s := range services {
			path, aside := filepath.Join(root, s), filepath.Join(root, "."+s)
			err := swap(aside, path)
			if errors.Is(err, unix.ENOENT) {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sendFor lets clients send for a while, and not as much as they can.
func sendFor(p *ingester, ledger *check.Ledger, seed uint64, d time.Duration) {
	var target atomic.Pointer[ingester]
	target.Store(p)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range newClients(3, ledger, &target, seed) {
		c.name += string(rune('A' + seed))
		c.pause = 2 * time.Millisecond
		wg.Go(func() { c.run(stop) })
	}
	time.Sleep(d)
	close(stop)
	wg.Wait()
}

// outage runs an ingester before, during and after a failure of its store. Records
// are acknowledged all the time, /flush reports the remaining ones, and in the end
// all are there once.
func outage(t *testing.T, through, direct place, fail func() (mend func())) *ingester {
	ledger := &check.Ledger{}
	p := start(t, through, t.TempDir(), config(t, small))
	sendFor(p, ledger, 1, 200*time.Millisecond)
	p.mustFlush()

	mend := fail()
	sendFor(p, ledger, 2, 1500*time.Millisecond)
	code, f, err := p.flush("?timeout=1s")
	if err != nil || code != http.StatusGatewayTimeout || f.Flushed || f.BatchesLeft == 0 || f.RecordsLeft == 0 {
		t.Errorf("flush with the store down: %d %+v, %v; want 504 with what is left", code, f, err)
	}
	if code, _, err := p.flush("?timeout=0s"); err != nil || code != http.StatusGatewayTimeout {
		t.Errorf("flush with no time at all: %d, %v; want 504", code, err)
	}
	resp, err := http.Get(p.admin + "/readyz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("readyz with the store down: %v, %v; the log still takes records", resp, err)
	}
	// The driver retries by itself. The failure must reach the code that drives
	// batches.
	testkit.Until(t, "a batch has failed", func() bool { return p.metric("blobtail_buffer_store_failures_total") > 0 })
	mend()
	sendFor(p, ledger, 3, 100*time.Millisecond)
	p.mustFlush()
	rep := verifyLedger(t, direct, ledger)
	if rep.Unknown != 0 || rep.Found != rep.Acked {
		t.Errorf("%v: a store that is down must not keep records from being acknowledged", rep)
	}
	if n := p.metric("blobtail_blob_written_total"); int(n) != countBlobs(t, direct) {
		t.Errorf("%v blobs written, %d are there", n, countBlobs(t, direct))
	}
	return p
}

func TestOutageDir(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"services": func(t *testing.T) {
			at, root := dirStore(t)
			outage(t, at, at, func() func() { return breakDir(t, root, "web", "api", "db") })
		},
		// As when the disk is not mounted: the ingester must not make a new root.
		"root": func(t *testing.T) {
			at, root := dirStore(t)
			outage(t, at, at, func() func() {
				if err := os.Rename(root, root+".away"); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := os.Rename(root+".away", root); err != nil {
						t.Fatal(err)
					}
				}
			})
		},
	})
}

func TestOutageAzure(t *testing.T) {
	t.Parallel()
	both := map[string]func(t *testing.T){}
	for name, m := range map[string]mode{
		"refused": all(refuse),
		"lost": func(r *http.Request) fault {
			if puts(r) {
				return lose
			}
			return refuse
		},
	} {
		both[name] = func(t *testing.T) {
			through, direct, px := proxied(t)
			outage(t, through, direct, func() func() {
				px.set(m)
				return func() { px.set(healthy) }
			})
			if px.done() == 0 {
				t.Error("the proxy had nothing to do")
			}
		}
	}
	beside(t, both)
}

// Every answer to a PUT is lost, but no request is. The ingester must recognise each
// blob as its own, and each blob must be there once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	ledger := &check.Ledger{}
	p := start(t, through, t.TempDir(), config(t, small))
	seen := sync.Map{}
	px.set(func(r *http.Request) fault {
		if _, again := seen.LoadOrStore(r.URL.Path, true); putsBlob(r) && !again {
			return lose
		}
		return none
	})
	sendFor(p, ledger, 1, 300*time.Millisecond)
	p.mustFlush()
	verifyLedger(t, direct, ledger)
	blobs := countBlobs(t, direct)
	if n := p.metric("blobtail_blob_written_total"); int(n) != blobs || int64(blobs) != px.count[lose].Load() {
		t.Errorf("%v blobs written, %d there, %d answers lost", n, blobs, px.count[lose].Load())
	}
	if n := p.metric("blobtail_blob_foreign_total"); n != 0 {
		t.Errorf("%v of our own blobs were taken for another's", n)
	}
}

// An ingester starts with records in its log while the store is away. It must still
// accept records, and stop. The next start stores the accepted records.
func TestStartWithoutStore(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	ledger, wal := &check.Ledger{}, t.TempDir()
	easy := leaveHolding(t, through, wal, ledger)
	px.set(all(hang))
	p := startApart(t, through, wal, config(t, small), "--grace", "1s")
	if easy.late(p.startup, 4*time.Second) {
		t.Errorf("ready after %v; the store is no condition", p.startup)
	}
	sendFor(p, ledger, 1, 300*time.Millisecond)
	if code, took := p.stop(); code != 0 || easy.late(took, 3*time.Second) {
		t.Errorf("SIGTERM with a store that hangs: exit code %d after %v", code, took)
	}
	if !strings.Contains(p.Log(), "stays in the log") {
		t.Error("the ingester does not say that it leaves something in the log")
	}
	p = startApart(t, through, wal, config(t, small))
	px.set(healthy)
	p.mustFlush()
	p.announced()
	if rep := verifyLedger(t, direct, ledger); rep.Unknown != 0 || rep.Found != rep.Acked {
		t.Error(rep)
	}
}

// leaveHolding makes an ingester accept records into a log and kills it with them.
func leaveHolding(t *testing.T, at place, wal string, ledger *check.Ledger) *ingester {
	t.Helper()
	p := start(t, at, wal)
	sendFor(p, ledger, 2, 100*time.Millisecond)
	p.kill()
	return p
}
