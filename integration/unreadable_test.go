package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
)

// A read may not open the file of one blob. It prints the records of all others, and exits 3. So
// does verify.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	at := place{store: "dir:" + filepath.Join(t.TempDir(), "store")}
	in := start(t, at, t.TempDir())
	var body strings.Builder
	for i := range 3 {
		fmt.Fprintf(&body, `{"ts":%q,"msg":"record %d"}`+"\n", time.Date(2026, 11, 10, i, 0, 0, 0, time.UTC).Format(time.RFC3339), i)
	}
	in.mustPost("/ingest/web", []byte(body.String()))
	in.stop() // its tables change no more while their modes are set
	root := strings.TrimPrefix(at.store, "dir:")
	if err := os.Chmod(filepath.Join(root, "web/2026/11/10/0100/000001.log"), 0); err != nil {
		t.Fatal(err)
	}
	// Modes do not bind root, so the reader is another user.
	read := func(args ...string) (string, string, int) {
		cmd := exec.Command(filepath.Join(shared.bin, "logquery"), append([]string{"--store", at.store, "-u", "-q"}, args...)...)
		cmd.Env = append(testkit.Environ(), at.env...)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			openTo(t, root)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	for _, args := range [][]string{{"web", "-o", "raw", "--live", "off"}, {"web", "-o", "raw", "-n", "3", "--live", "off"}} {
		out, errs, code := read(args...)
		if code != cli.Incomplete || out != "record 0\nrecord 2\n" || !strings.Contains(errs, "web/2026/11/10/0100/000001.log") || !strings.Contains(errs, "permission denied") {
			t.Errorf("%v: exit %d, %q, %s", args, code, out, errs)
		}
	}
	_, errs, code := read("verify", "web")
	if code != cli.Incomplete || !strings.Contains(errs, "0100/000001.log: ") || !strings.Contains(errs, "permission denied") {
		t.Errorf("verify: exit %d, %s", code, errs)
	}
}

// openTo lets every user search the directories of a path and below it, and run the
// commands of the test.
func openTo(t *testing.T, path string) {
	t.Helper()
	allow := func(path string, bits fs.FileMode) {
		fi, err := os.Stat(path)
		if err == nil {
			err = os.Chmod(path, fi.Mode().Perm()|bits)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{path, shared.bin} {
		for dir := filepath.Dir(of); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			allow(dir, 0o011)
		}
	}
	allow(shared.bin, 0o055)
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			allow(path, 0o055)
		} else if err == nil && !strings.Contains(path, "0100") {
			allow(path, 0o044)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
