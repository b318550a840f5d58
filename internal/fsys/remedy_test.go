//go:build linux

package fsys_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"blobtail/internal/fsys"
)

// The remedy names the file, its owner and the command. The errors are real ones.
func TestRemedy(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else for a while")
	}
	dir := t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(closed, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock: the thread ends with this
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
		}
		for path, blamed := range map[string]string{
			filepath.Join(dir, "new"):              dir,
			filepath.Join(closed, "file"):          closed,
			filepath.Join(closed, "missing", "x"):  closed,
			filepath.Join(dir, "missing", "deep"):  "",
			filepath.Join(closed, "new", "deeper"): closed,
		} {
			_, err := fsys.OS().OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
			got := fsys.Remedy(fmt.Errorf("open: %w", err), "/")
			want := blamed + " has the mode 07" // this process is still root
			if blamed == "" {
				want = ""
			}
			if err == nil || !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s: %v; %q, want %q", path, err, got, want)
			}
		}
	}()
	<-done
	if err := os.Chown(closed, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	got := fsys.Remedy(&os.LinkError{Op: "link", Old: "a", New: closed + "/b", Err: syscall.EACCES}, "")
	if !strings.HasPrefix(got, closed+" belongs to user nobody and this process runs as root; run it as nobody, or: chown -R root "+closed) {
		t.Errorf("another user's: %q", got)
	}
	if name, other := fsys.Owner(closed + "/missing/too"); name != "nobody" || !other {
		t.Errorf("Owner = %q, %v", name, other)
	}
}

// Errors that name no file are about the directory.
func TestRemedyOfDisks(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("write: %w", syscall.ENOSPC):                       "there is no room for /store",
		&os.PathError{Op: "open", Path: "/s/x", Err: syscall.EROFS}:   "/s/x is on a file system that is mounted read-only",
		errors.New("anything else"):                                   "",
		&os.PathError{Op: "open", Path: "/s/x", Err: syscall.ENOENT}:  "",
		&os.PathError{Op: "write", Path: "/s/x", Err: syscall.EDQUOT}: "there is no room for /s/x",
	} {
		if got := fsys.Remedy(err, "/store"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
