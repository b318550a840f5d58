//go:build unix

package door_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/door"
)

// A service has no terminal, so SIGHUP is a reload to it, also if it has no file to read again.
func TestReloadOfNothing(t *testing.T) {
	const child = "BLOBTAIL_TEST_RELOAD"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("a reload ends the process: %v\n%s", err, out)
		}
		return
	}
	go door.Reload(t.Context(), func(err error) { t.Error(err) })
	time.Sleep(time.Second)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Second)
}
