package integration_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// newShipping is an ingester that acknowledges what it has shipped to the store.
func newShipping(t testing.TB, at place, p *promises, name string, flags ...string) *station {
	t.Helper()
	return newStation(t, at, p, name, append([]string{"--ack", "shipped"}, flags...)...)
}

// loses kills an ingester and removes its disk. It returns its id.
func loses(t testing.TB, s *station) (id string) {
	t.Helper()
	id = s.id()
	s.kill()
	if err := os.RemoveAll(s.wal); err != nil {
		t.Fatal(err)
	}
	return id
}

// adopts has an ingester adopt another.
func adopts(t testing.TB, by *station, id string) {
	t.Helper()
	if out, code := tryAdopt(by, id); code != 0 || !strings.Contains(out, "ingester "+id+" is adopted") {
		t.Errorf("ingest adopt %s exits %d and says %q", id, code, out)
	}
}

func tryAdopt(by *station, id string) (out string, code int) {
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), "adopt", id, "--admin", strings.TrimPrefix(by.admin, "http://"))
	said, _ := cmd.CombinedOutput() // its error is the code
	return string(said), cmd.ProcessState.ExitCode()
}

// The disk of an ingester is lost. Another one adopts what it had shipped, of several services and
// times, and dies with its disk too.
func TestShippedDiskLost(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		p := &promises{}
		a := newShipping(t, at, p, "a", "--lane", "1").start()
		b := newShipping(t, at, p, "b", "--lane", "2").start()
		c := newShipping(t, at, p, "c", "--lane", "3").start()
		read := newAudit(t, at, p)
		for range 3 {
			a.take()
			b.take()
		}
		read.whole("all run")
		gone := loses(t, a)
		read.names("a is gone", gone)
		if out, code := tryAdopt(b, gone); code != 1 || !strings.Contains(out, "announced itself") {
			t.Errorf("an ingester that was seen just now: exit code %d, %q", code, out)
		}
		fallsSilent(t, at, gone)
		adopts(t, b, gone)
		if out, code := tryAdopt(c, gone); code != 1 || !strings.Contains(out, "ingester "+b.id()+" has adopted it") {
			t.Errorf("one that is adopted already: exit code %d, %q", code, out)
		}
		read.whole("a is adopted")
		b.take()
		gone = loses(t, b)
		read.names("b is gone", gone)
		fallsSilent(t, at, gone)
		adopts(t, c, gone)
		read.whole("b is adopted")
		if !c.flushes() {
			t.Error("c does not flush")
		}
		read.whole("all is in blobs")
	})
}

// An ingester hangs, is adopted, and wakes. It acknowledges nothing, ends, and goes on after a start.
// Then the disk of a dead one that was adopted comes back.
func TestShippedWakes(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		p := &promises{}
		a := newShipping(t, at, p, "a", "--lane", "1").start()
		b := newShipping(t, at, p, "b", "--lane", "2").start()
		read := newAudit(t, at, p)
		a.take()
		id := a.id()
		a.freeze()
		fallsSilent(t, at, id)
		adopts(t, b, id)
		read.whole("a hangs and is adopted")
		a.Signal(syscall.SIGCONT)
		if code, _ := a.offer(); code == http.StatusOK {
			t.Error("an ingester that was adopted acknowledges records as shipped")
		}
		<-a.Exited
		if code := a.Cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(a.Log(), "ingester "+b.id()+" has adopted") {
			t.Errorf("an adopted ingester ends with code %d, and its log does not name the adopter: %s", code, a.Log())
		}
		read.complete("a has ended")
		a.start()
		a.take()
		read.whole("a goes on")
		a.kill()
		fallsSilent(t, at, id)
		adopts(t, b, id)
		read.whole("a is dead and adopted")
		a.start()
		a.take()
		read.whole("the disk of a is back")
	})
}
