package lease_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// A start with notes that say Holding accepts records at once while the tables are
// away, and reports that it is ready for 20 s.
func TestStartWithoutTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disk := newWard(t), logDisk(t)
		p := w.launch(disk)
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		disk = p.end(disk)
		w.away()
		w.counted()
		begun := time.Now()
		p = launch(t, w.tables(), identity{ID: "0badcafe"}, w.on(disk, logDir))
		if err := w.enter(p.Announcer); err != nil || time.Since(begun) != 0 {
			t.Errorf("Enter gives %v after %v", err, time.Since(begun))
		}
		time.Sleep(10 * time.Second)
		if err := p.Err(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // and no longer idle than the row says
		w.stored()
		time.Sleep(time.Hour)
		if p.Err() == nil {
			t.Error("it is ready")
		}
		w.setFault(nil)
		time.Sleep(11 * time.Second)
		if r := w.row(); r.ID != "0badcafe" || r.Process != p.Process() || r.State != lease.Idle {
			t.Errorf("the row says %+v", r)
		}
		disk = p.end(disk)
		w.away() // the notes do not say Holding now
		p = w.launch(disk)
		w.refused(p.Announcer, 0)
	})
}

// copyDir copies a directory of files.
func copyDir(t *testing.T, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// onHost runs an announcer on a directory of the host.
func onHost(w *ward, dir string, tables storage.TableStore) *peer {
	p := launch(w.t, tables, identity{ID: "0badcafe"}, w.on(nil, dir))
	w.t.Cleanup(func() { // before the directory goes
		p.kill()
		time.Sleep(10 * time.Second) // longer than any write may take
		synctest.Wait()
	})
	return p
}

// A copy of a log with notes that say Holding accepts nothing before its own row says
// Holding. The same holds for a copy that was started before without reaching the
// tables, and for a copy of a copy.
func TestCopyWithoutTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := newWard(t), t.TempDir()
		p := onHost(w, dir, w.tables())
		if err := w.enter(p.Announcer); err != nil {
			t.Fatal(err)
		}
		p.kill()
		time.Sleep(time.Minute)
		w.away()
		first := copyDir(t, dir)
		for _, d := range []string{first, first, copyDir(t, first), copyDir(t, dir)} {
			p := onHost(w, d, w.tables())
			<-p.First()
			w.refused(p.Announcer, 0)
			p.kill()
			time.Sleep(time.Minute)
		}
		// The original is where it was.
		p = onHost(w, dir, w.tables())
		if err := w.enter(p.Announcer); err != nil {
			t.Error(err)
		}
	})
}

// Of two ingesters on copies of one log at most one keeps the id. Neither accepts a
// record that its own row does not cover.
func TestTwoCopies(t *testing.T) {
	// before is the history of the log that is copied.
	for name, before := range map[string]func(w *ward, p *peer){
		"of one that runs":    func(*ward, *peer) {},
		"of one that is idle": func(w *ward, _ *peer) { w.stored(); time.Sleep(11 * time.Minute) },
		"of one that was killed": func(w *ward, p *peer) {
			p.kill()
			time.Sleep(2 * time.Minute)
		},
		"of one that stopped": func(w *ward, p *peer) {
			p.kill()
			w.stored()
			if err := p.Stop(w.t.Context(), true); err != nil {
				w.t.Error(err)
			}
		},
	} {
		for _, gap := range []time.Duration{0, 3 * time.Millisecond, 7 * time.Second} {
			t.Run(name+" "+gap.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { twoCopies(t, before, gap) })
			})
		}
	}
}

func twoCopies(t *testing.T, before func(*ward, *peer), gap time.Duration) {
	w, dir := newWard(t), t.TempDir()
	w.setFault(func(storagetest.Op, string) storagetest.Fault {
		return storagetest.Fault{Delay: 2 * time.Millisecond}
	})
	p := onHost(w, dir, w.tables())
	<-p.First()
	if err := w.enter(p.Announcer); err != nil {
		t.Fatal(err)
	}
	before(w, p)
	others := newWard(t) // another log by now, with the same tables
	others.store = w.store
	twin := copyDir(t, dir)
	a, running := p, !isClosed(p)
	if !running {
		a = onHost(w, dir, w.tables())
	}
	time.Sleep(gap)
	b := onHost(others, twin, w.tables())
	for n := range 40 {
		for i, x := range []*peer{a, b} {
			leave, err := x.Enter(t.Context(), math.MaxInt64)
			if err != nil {
				t.Error(err)
				continue
			}
			if id, stands := standsFor(t, w, x, []*peer{b, a}[i]); !stands {
				t.Errorf("at %v ingester %s takes a record, and its row does not stand for it", time.Since(epoch), id)
			}
			leave()
		}
		time.Sleep(time.Duration(n*n) * time.Millisecond)
	}
	time.Sleep(time.Minute)
	if a.ID() == b.ID() || a.ID() != "0badcafe" && b.ID() != "0badcafe" {
		t.Errorf("they go by %s and %s", a.ID(), b.ID())
	}
	if n := strings.Count(a.told()+b.told(), "was the log directory copied?"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// isClosed reports whether an announcer has ended.
func isClosed(p *peer) bool {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// standsFor reports whether a reader finds the records that an announcer accepts now
// only by asking it: its row says Holding, and is not the other one's.
func standsFor(t *testing.T, w *ward, p, other *peer) (id string, ok bool) {
	t.Helper()
	id = p.ID()
	rows, err := lease.List(t.Context(), w.store, "")
	if err != nil {
		t.Error(err)
	}
	for _, r := range rows {
		if r.ID == id {
			return id, r.State == lease.Holding && r.Process != other.Process()
		}
	}
	return id, false
}

// Notes that cannot be read are reported, and prove nothing: a row that says Holding is
// then another ingester's.
func TestNotesUnreadable(t *testing.T) {
	for _, text := range []string{"", "{", `{"format":2,"id":"0badcafe","state":"holding"}`, `{"format":1,"id":"../../x","state":"holding"}`, strings.Repeat(" ", 2<<20)} {
		synctest.Test(t, func(t *testing.T) {
			w, dir := newWard(t), t.TempDir()
			p := onHost(w, dir, w.tables())
			if err := w.enter(p.Announcer); err != nil {
				t.Fatal(err)
			}
			p.kill()
			synctest.Wait()
			if err := os.WriteFile(filepath.Join(dir, "lease"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := lease.Options{ID: "0badcafe"}
			w.on(nil, dir)(&o)
			a, err := lease.New(w.tables(), o)
			if err == nil || !strings.Contains(err.Error(), "lease holds something else") {
				t.Errorf("%.60q is read as notes: %v", text, err)
			}
			if err := w.enter(a); err != nil {
				t.Fatal(err)
			}
			rows, err := lease.List(t.Context(), w.store, "")
			if err != nil || len(rows) != 2 || a.ID() == "0badcafe" {
				t.Errorf("%.60q: it goes by %s beside %+v, %v", text, a.ID(), rows, err)
			}
		})
	}
}
