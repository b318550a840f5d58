package dir_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// put creates an object with its key as the body.
func put(t *testing.T, s *dir.Store, key string) {
	t.Helper()
	storagetest.Put(t, s, key, []byte(key), storage.Attrs{Metadata: map[string]string{"batch": "x"}})
}

// holds checks that a store has exactly these objects, all whole.
func holds(t *testing.T, s *dir.Store, want ...string) {
	t.Helper()
	var got []string
	for _, b := range storagetest.Objects(t, s, "") {
		if body := storagetest.Body(t, s, b.Key); string(body) != b.Key || b.Metadata["batch"] != "x" {
			t.Errorf("%s holds %q", b.Key, body)
		}
		got = append(got, b.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
}

func moved(t *testing.T, s *dir.Store, path string) {
	t.Helper()
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Check: %v, want an error of %s", err, path)
	}
}

func unmoved(t *testing.T, s *dir.Store) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// The root is renamed and another directory put in its place. Reads, writes and deletes
// still go to the directory that was opened, and Check reports the move.
func TestRootReplaced(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := open(t, root)
	put(t, s, "web/1")
	unmoved(t, s)
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	moved(t, s, root)
	put(t, s, "web/2")
	other := open(t, root) // a new store has the path
	put(t, other, "web/9")
	unmoved(t, other)
	moved(t, s, root)
	put(t, s, "web/2026/3")
	put(t, s, "api/4")
	holds(t, s, "api/4", "web/1", "web/2", "web/2026/3")
	if err := s.Delete(t.Context(), storagetest.Keys("api/4", "web/1", "web/9")...); err != nil {
		t.Error(err)
	}
	holds(t, s, "web/2", "web/2026/3")
	holds(t, other, "web/9")
	if err := s.Create(t.Context(), "web/2", nil, storage.Attrs{}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("Create: %v, want ErrExist", err)
	}
	holds(t, open(t, root+".away"), "web/2", "web/2026/3")
	if _, err := os.Stat(filepath.Join(root+".away", "api")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory that was emptied is there: %v", err)
	}
	for b, err := range other.Dirs(t.Context(), "") {
		if err != nil || b != "web" {
			t.Errorf("Dirs gives %q, %v", b, err)
		}
	}
}

// After Close, an open reader can be read to its end, and all other calls fail.
func TestClose(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	put(t, s, "web/1")
	r, err := s.Get(t.Context(), "web/1", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if body, err := io.ReadAll(r); err != nil || string(body) != "web/1" {
		t.Errorf("read after Close: %q, %v", body, err)
	}
	_, statErr := s.Stat(t.Context(), "web/1")
	for op, err := range map[string]error{
		"Create": s.Create(t.Context(), "web/2", nil, storage.Attrs{}),
		"Stat":   statErr,
		"Delete": s.Delete(t.Context(), storage.Blob{Key: "web/1"}),
	} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s after Close: %v", op, err)
		}
	}
	for _, err := range s.List(t.Context(), "", "") {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("List after Close: %v", err)
		}
	}
	moved(t, s, root)
	holds(t, open(t, root), "web/1")
}

// TestUnmounted has a child process with mounts of its own do [testUnmounted].
func TestUnmounted(t *testing.T) {
	const child = "BLOBTAIL_TEST_MOUNTS"
	if os.Getenv(child) != "" {
		testUnmounted(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestUnmounted$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skip("no process with mounts of its own may be started here:", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("not permitted here:\n%s", out)
	case err != nil:
		t.Errorf("%v:\n%s", err, out)
	}
}

// testUnmounted removes the file system from the path of an open store, in the ways of
// an operator.
func testUnmounted(t *testing.T) {
	real, path := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), "mounted")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	mount := func(from, to, kind string, flags uintptr) {
		t.Helper()
		if err := unix.Mount(from, to, kind, flags, ""); err != nil {
			t.Skip("mount:", err)
		}
		t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
	}
	mount(real, path, "", unix.MS_BIND)
	s := open(t, path)
	put(t, s, "web/1")
	unmoved(t, s)
	if err := unix.Unmount(path, 0); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a mount of an open store goes: %v", err)
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		t.Skip("umount -l:", err)
	}
	moved(t, s, path)
	put(t, s, "web/2") // a new name in a directory
	put(t, s, "api/3") // and a new directory
	holds(t, s, "api/3", "web/1", "web/2")
	if list, err := os.ReadDir(path); err != nil || len(list) > 0 {
		t.Errorf("below the mount point there is %v, %v", list, err)
	}
	holds(t, open(t, real), "api/3", "web/1", "web/2")
	mount(real, path, "", unix.MS_BIND)
	unmoved(t, s) // the path leads there again
	mount("none", path, "tmpfs", 0)
	moved(t, s, path)
	if err := s.Delete(t.Context(), storage.Blob{Key: "web/1"}); err != nil {
		t.Error(err)
	}
	put(t, s, "web/4")
	holds(t, s, "api/3", "web/2", "web/4")
	holds(t, open(t, path))
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	unmoved(t, s)
	holds(t, open(t, path), "api/3", "web/2", "web/4")
}
