package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// hollowDisk mounts a disk that accepts writes and cannot keep them once backing is
// full: they end in the page cache, and fsync fails.
func hollowDisk(t testing.TB) (dir, backing string) {
	t.Helper()
	backing = smallDisk(t, "24m")
	image := filepath.Join(backing, "image")
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Skipf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("truncate", "-s", "64M", image)
	run("mkfs.ext4", "-q", "-O", "^has_journal", image)
	loop := run("losetup", "--find", "--show", image)
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", loop).Run() })
	dir = t.TempDir()
	if err := syscall.Mount(loop, dir, "ext4", 0, ""); err != nil {
		t.Skipf("mount %s: %v", loop, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, backing
}

// A failed fsync ends the process. The kernel may mark the pages clean afterwards, so
// a second fsync that succeeds would prove nothing. Records acknowledged before are
// there at the next start, which trusts no cached page.
func TestFsyncFails(t *testing.T) {
	t.Parallel()
	dir, backing := hollowDisk(t)
	at, _ := dirStore(t)
	wal := filepath.Join(dir, "wal")
	// Nothing is flushed by age, so that all stays in the log.
	conf := config(t, "flush: {age: 1h, max-age: 1h}\nlog: {segment: 1MiB}\n")
	ledger := &check.Ledger{}
	p := start(t, at, wal, conf)
	sendFor(p, ledger, 1, 300*time.Millisecond)
	fill(t, filepath.Join(backing, "other"))
	n := uint64(1)
	testkit.Until(t, "the process ends since fsync fails", func() bool {
		n++
		sendFor(p, ledger, n, 300*time.Millisecond)
		return p.Gone()
	})
	if code := p.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.Log(), "sync") {
		t.Errorf("exit code %d: %s", code, p.Log())
	}
	t.Log(lastLine(p.Log()))
	if err := os.Remove(filepath.Join(backing, "other")); err != nil {
		t.Fatal(err)
	}
	p = start(t, at, wal, conf)
	p.mustFlush()
	verifyLedger(t, at, ledger)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
