package integration_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blobtail/internal/dev/testkit"
)

// A dead ingester announced an address that an ingester of another store now uses.
func TestCompleteForeignAddress(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := &promises{}
	a := newStation(t, at, p, "a").start()
	for range 3 {
		a.take()
	}
	testkit.Until(t, "the row tells of the records", func() bool {
		all := ingesters(t, at)
		return len(all) == 1 && all[0].Unflushed > 0
	})
	a.kill()
	other, _ := dirStore(t)
	theirs := &promises{}
	b := newStation(t, other, theirs, "b")
	b.base = a.base
	b.start().take()
	read := newAudit(t, at, p)
	read.warns("another store's ingester has the address")
	read.by("--live-url", b.base).warns("another store's ingester is named")
	testFollowsNoOther(t, at, p)
	newAudit(t, other, theirs).whole("the other store")
	b.kill()
	a.start()
	read.whole("started again")
}

// testFollowsNoOther follows a store for some seconds and wants no record of another
// store.
func testFollowsNoOther(t *testing.T, at place, p *promises) {
	t.Helper()
	var foreign atomic.Pointer[string]
	f := follow(t, at, func(line []byte, _ time.Time) {
		if _, ids := shownLines(t, line); len(ids) == 1 {
			for id := range ids {
				if !p.known(id) {
					foreign.Store(&id)
				}
			}
		}
	}, "tail", "-f", "web")
	testkit.Until(t, "tail -f says something", func() bool { return foreign.Load() != nil || f.Log() != "" })
	select { // records of another store would appear at once
	case <-f.Exited:
	case <-time.After(3 * time.Second):
	}
	if id := foreign.Load(); id != nil {
		t.Errorf("WRONG COMPLETE: tail -f shows %s, which is not of this store", *id)
	}
}

// Two ingesters of two stores have the same loopback address, each in its own network
// as in a container. The reader is in the network of the wrong one.
func TestCompleteForeignNetwork(t *testing.T) {
	t.Parallel()
	enter := []string{"unshare", "-n", "sh", "-c", `ip link set lo up && exec "$@"`, "sh"}
	if out, err := exec.Command(enter[0], append(enter[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no network of its own can be made here, which takes root, unshare and ip: %v: %s", err, out)
	}
	at, _ := dirStore(t)
	p := &promises{}
	a := newStation(t, at, p, "a")
	a.by = enter
	a.ingester = launchBy(t, a.by, at, a.wal, "--listen", strings.TrimPrefix(a.base, "http://"), "--advertise", a.base)
	if err := a.waitReady(); err != nil {
		t.Fatal(err)
	}
	a.client = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialIn(a.Cmd.Process.Pid)}}
	other, _ := dirStore(t)
	b := newStation(t, other, &promises{}, "b")
	b.base = a.base
	b.start().take()
	for range 3 {
		a.take()
	}
	newAudit(t, at, p).warns("another store's ingester is at the address")
	b.kill()
	newAudit(t, at, p).warns("nobody is at the address")
}

// dialIn dials in the network of a process.
func dialIn(pid int) func(ctx context.Context, network, address string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		done := make(chan dialed, 1)
		go func() {
			runtime.LockOSThread() // for ever: the thread ends with this function
			f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net"))
			if err == nil {
				err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
				f.Close()
			}
			if err != nil {
				done <- dialed{nil, err}
				return
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			done <- dialed{conn, err}
		}()
		d := <-done
		return d.conn, d.err
	}
}

// A log that holds records of one store is used with another store. The ingester
// refuses that, and reads find the records in their own store.
func TestCompleteLogOfAnotherStore(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"dir": func(t *testing.T) {
			one, _ := dirStore(t)
			two, _ := dirStore(t)
			testLogOfAnotherStore(t, one, two)
		},
		"azure": func(t *testing.T) {
			one, _ := azureStore(t)
			two, _ := azureStore(t)
			testLogOfAnotherStore(t, one, two)
		},
	})
}

func testLogOfAnotherStore(t *testing.T, one, two place) {
	p := &promises{}
	a := newStation(t, one, p, "a", "--lane", "1").start()
	y := newStation(t, one, p, "y", "--lane", "2").start()
	y.take()
	a.take()
	a.kill()
	a.at = two
	a.launch()
	reason := ""
	if !a.Gone() {
		reason = a.refuses()
	} else if code := a.Cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	_, name, _ := strings.Cut(one.store, ":")
	if !strings.Contains(reason, name) && !strings.Contains(a.Log(), name) {
		t.Errorf("neither %q nor its log names the store %s that the log belongs to", reason, name)
	}
	byY := newAudit(t, one, p).by("--live-url", y.base)
	byY.complete("started on another store")
	if strings.HasPrefix(one.store, "dir:") { // with any other store, the reader asks no ingester
		newAudit(t, one, p).complete("started on another store")
	}
	_ = a.flushes() // it has no records that it may flush
	byY.complete("flushed to another store")
	a.kill()
	byY.complete("ended on another store")
	if out, _, _ := logquery(t, two, "*"); strings.Contains(string(out), "a-") {
		t.Errorf("the other store has it: %s", out)
	}
	a.at = one
	a.start()
	byY.whole("started on its own store")
	if !a.flushes() {
		t.Error("it does not flush")
	}
	a.kill()
	out, errs, _ := logquery(t, one, "web", "--live", "off")
	if !strings.Contains(string(out), "a-") {
		t.Errorf("its record is in no blob of its store: %s%s", out, errs)
	}
}
