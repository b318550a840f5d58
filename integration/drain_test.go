package integration_test

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// A drained ingester accepts no more records and has none left, even if clients keep
// sending. The next ingester on its disk has no records to store.
func TestDrain(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	ledger, wal := &check.Ledger{}, t.TempDir()
	p := start(t, at, wal, config(t, small))
	var target atomic.Pointer[ingester]
	target.Store(p)
	stop := make(chan struct{})
	done := make(chan struct{})
	c := newClients(1, ledger, &target, 1)[0]
	go func() {
		defer close(done)
		c.run(stop)
	}()
	testkit.Until(t, "records are taken", func() bool { return p.metric("blobtail_buffer_records_total") > 100 })
	out, err := drainCommand(p, "--timeout", "30s")
	if err != nil || !strings.Contains(out, "the log is empty") {
		t.Fatalf("drain: %v: %s", err, out)
	}
	if code, text := p.readyz(t); code != http.StatusServiceUnavailable || !strings.Contains(text, "drained") {
		t.Errorf("readyz of a drained ingester: %d %s", code, text)
	}
	if code, _, _, err := p.post("/ingest/web", []byte("more")); err != nil || code != http.StatusServiceUnavailable {
		t.Errorf("a drained ingester answers %d, %v", code, err)
	}
	// Readers ask it for live records until it ends.
	resp, err := http.Get(p.listen + "/live/web")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(text) != "end 0 0 0\n" {
		t.Errorf("live records of a drained ingester: %q, %v", text, err)
	}
	close(stop)
	<-done
	if age := p.metric("blobtail_oldest_unflushed_seconds"); age != 0 {
		t.Errorf("something is left since %v s", age)
	}
	if out, err := drainCommand(p); err != nil {
		t.Errorf("a second time: %v: %s", err, out)
	}
	verifyLedger(t, at, ledger)
	if code, took := p.stop(); code != 0 || took > p.allowed(5*time.Second) {
		t.Errorf("SIGTERM: exit code %d after %v", code, took)
	}
	if out, err := drainCommand(p); err == nil || !strings.Contains(out, "no ingester answers") {
		t.Errorf("nobody there: %v: %s", err, out)
	}
}

// A reader that asks the wrong listener for records gets the right address in the
// error.
func TestDrainWrongListener(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	out, err := drainCommand(p, "--admin", strings.TrimPrefix(p.listen, "http://"))
	if err == nil || !strings.Contains(out, "does not know /drain; --admin is the admin listener") {
		t.Errorf("%v: %s", err, out)
	}
}

func drainCommand(p *ingester, flags ...string) (string, error) {
	cmd := exec.Command(p.Cmd.Path, append([]string{"drain", "--admin", strings.TrimPrefix(p.admin, "http://")}, flags...)...)
	cmd.Env = testkit.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
