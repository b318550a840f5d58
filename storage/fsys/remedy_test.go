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

	"blobtail/storage/fsys"
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
			got := fsys.Place{Dir: dir}.Remedy(fmt.Errorf("open: %w", err))
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
	if name, other := fsys.Owner(closed + "/missing/too"); name != "nobody" || !other {
		t.Errorf("Owner = %q, %v", name, other)
	}
}

// The remedy names the directory of the process alone: nothing that is above it is given
// away, and nothing in it that may be of others. A reader is not told to own anything.
func TestRemedyOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	parent := t.TempDir()
	at := func(name string) string { return filepath.Join(parent, name) }
	for _, dir := range []string{at("store"), at("empty"), at("mine"), parent} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		if dir != at("mine") {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, file := range []string{at("store/file"), at("mine/file")} {
		if err := os.WriteFile(file, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	// A directory that another user has made in an own one, as root does in the store of an ingester.
	if err := errors.Join(os.Mkdir(at("mine/theirs"), 0o700), os.Chown(at("mine/theirs"), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	got := fsys.Place{Dir: at("mine")}.Remedy(&os.PathError{Op: "open", Path: at("mine/theirs"), Err: syscall.EACCES})
	if want := at("mine/theirs") + " belongs to user nobody and " + at("mine") + " to root, as after a command that ran as the wrong user; give it back, as root: chown -R root " + at("mine/theirs"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, c := range map[string]struct {
		place fsys.Place
		path  string
		want  string
	}{
		"of another": {fsys.Place{Dir: at("store")}, at("store/new"),
			at("store") + " belongs to user nobody and this process runs as root; run it as nobody, or choose a directory that is its own"},
		"empty": {fsys.Place{Dir: at("empty")}, at("empty/new"),
			at("empty") + " belongs to user nobody and this process runs as root; run it as nobody, or: chown root " + at("empty")},
		"missing": {fsys.Place{Dir: at("new/store")}, at("new"),
			at("new/store") + " is missing, and user root may not make it in " + parent + "; make it as root: install -d -m 0700 -o root " + at("new/store") + "; or choose another directory"},
		"behind a closed one": {fsys.Place{Dir: at("store")}, parent,
			parent + " belongs to user nobody, has the mode 0700, and does not let user root through to " + at("store") + "; run it as nobody, or choose another directory"},
		"a reader": {fsys.Place{Dir: at("store"), Reads: true}, at("store/new"),
			at("store") + " belongs to user nobody and this process runs as root; to read " + at("store") + " it needs the right to read all files there, and to own none: run it as nobody, or read through a logquery serve that nobody runs (--server)"},
		"an own file": {fsys.Place{Dir: at("mine")}, at("mine/file"), at("mine/file") + " has the mode 0400; run: chmod u+rw " + at("mine/file")},
		"an own file, to read": {fsys.Place{Dir: at("mine"), Reads: true}, at("mine/file"),
			at("mine/file") + " has the mode 0400, which allows it; perhaps a security module or the unit of a service forbids it"},
		"the root": {fsys.Place{Dir: "/"}, "/new", "/ has the mode 07"},
	} {
		got := c.place.Remedy(&os.LinkError{Op: "link", Old: "a", New: c.path, Err: syscall.EACCES})
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "-R") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
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
		if got := (fsys.Place{Dir: "/store"}).Remedy(err); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
