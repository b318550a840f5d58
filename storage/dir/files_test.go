package dir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys"
	"blobtail/storage/storagetest"
)

func TestOpenAbsent(t *testing.T) {
	root := filepath.Join(t.TempDir(), "nothing")
	if _, err := dir.Open(root, dir.Options{}); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Open: %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(root); err == nil {
		t.Error("Open for reading made the root")
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x", 0o600)
	if _, err := dir.Open(file, dir.Options{}); err == nil {
		t.Error("a file is opened as a store")
	}
}

// A missing root (a disk that is not mounted) is not made again, nor taken for an empty
// store.
func TestRootGone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root)
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "a/b", nil, storage.Attrs{}); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("Create: %v, want ErrNotExist", err)
	}
	for _, err := range s.List(t.Context(), "a/", "") {
		if !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("List: %v, want ErrNotExist", err)
		}
	}
}

// zstd reads an object's file as it is, and prints the body.
func TestReadableByZstd(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	body := w.EncodeAll([]byte("a line\n"), nil)
	storagetest.Put(t, s, "web/1.log", body, storage.Attrs{Metadata: map[string]string{"a": "b"}})
	file, err := os.ReadFile(filepath.Join(root, "web/1.log"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.DecodeAll(file, nil); err != nil || string(got) != "a line\n" {
		t.Errorf("zstd reads %q, %v", got, err)
	}
}

// Any cut or change at the end of an object is an error, and never a shorter body. List
// still returns the other objects. A read of the whole object returns the bytes that
// are left, and the error.
func TestDamaged(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	attrs := storage.Attrs{ContentType: "a/b", Metadata: map[string]string{"batch": "x"}}
	for _, key := range []string{"web/1", "web/2", "web/3"} {
		storagetest.Put(t, s, key, bytes.Repeat([]byte("b"), 500), attrs)
	}
	path := filepath.Join(root, "web/2")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, file []byte, mode os.FileMode) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(file), mode)
		if _, err := s.Stat(t.Context(), "web/2"); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: Stat: %v", what, err)
		}
		if _, err := s.Get(t.Context(), "web/2", 0, 10); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: Get: %v", what, err)
		}
		for _, off := range []int{0, 100, len(file), len(file) + 10} {
			r, err := s.Get(t.Context(), "web/2", int64(off), -1)
			if err != nil {
				t.Fatalf("%s: Get of all: %v", what, err)
			}
			got, err := io.ReadAll(r)
			r.Close()
			if !errors.Is(err, storage.ErrDamaged) || !bytes.Equal(got, file[min(off, len(file)):]) {
				t.Errorf("%s: Get of all from %d: %d bytes of %d, %v", what, off, len(got), len(file), err)
			}
		}
		n := 0
		for b, err := range s.List(t.Context(), "", "") {
			if n++; err != nil || (b.Metadata == nil) != (b.Key == "web/2") {
				t.Errorf("%s: List gives %+v, %v", what, b, err)
			}
		}
		if n != 3 {
			t.Errorf("%s: List gives %d objects", what, n)
		}
	}
	for n := range whole {
		check("cut", whole[:n], 0o440)
		if n >= 500+8 { // also where a copy did not keep the mode
			check("cut, writable", whole[:n], 0o644)
		}
	}
	for n := 500; n < len(whole); n++ {
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		check("flipped", changed, 0o440)
	}
	check("appended", append(bytes.Clone(whole), 0), 0o440)
	check("a byte gone", slices.Delete(bytes.Clone(whole), 100, 101), 0o440)
}

// A dangling symbolic link hides objects that were moved to another disk. Lists report
// it instead of being short.
func TestDanglingLink(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	write(t, filepath.Join(root, "app"), "hello", 0o644)
	if err := os.Symlink(filepath.Join(t.TempDir(), "disk"), filepath.Join(root, "web")); err != nil {
		t.Fatal(err)
	}
	dangles := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "the symbolic link web leads nowhere: is its disk mounted?")
	}
	var listed, dirs error
	for _, err := range s.List(t.Context(), "", "") {
		listed = err
	}
	for _, err := range s.Dirs(t.Context(), "") {
		dirs = err
	}
	for _, prefix := range []string{"web/", "web/2026/11/22/"} {
		for _, err := range s.List(t.Context(), prefix, "") {
			if !dangles(err) {
				t.Errorf("List of %s gives %v", prefix, err)
			}
			dirs = errors.Join(dirs, err)
		}
	}
	if !dangles(listed) || strings.Count(dirs.Error(), "leads nowhere") != 3 {
		t.Errorf("List gives %v, Dirs and the lists below %v", listed, dirs)
	}
}

// Files from other programs are objects without attributes. Files with names that begin with a dot
// are no objects.
func TestForeign(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, f := range []string{"web/note.txt", "web/empty", ".wal/1", "web/.tmp-1/x", "web/.hidden"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		content := "hello"
		if f == "web/empty" {
			content = ""
		}
		write(t, filepath.Join(root, f), content, 0o644)
	}
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "x"), "moved", 0o644)
	for from, to := range map[string]string{elsewhere: "linked", root: "loop"} {
		if err := os.Symlink(from, filepath.Join(root, "z"+to)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, b := range storagetest.Objects(t, s, "") {
		if len(b.Key) < 20 {
			got = append(got, b.Key)
		}
		if b.Key == "web/note.txt" && b.Size != 5 {
			t.Errorf("%+v", b)
		}
	}
	want := []string{"web/empty", "web/note.txt", "zlinked/x", "zloop/web/empty", "zloop/web/note.txt", "zloop/zlinked/x"}
	if !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
	r, err := s.Get(t.Context(), "web/note.txt", 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != "ell" {
		t.Errorf("Get = %q, %v", b, err)
	}
	// The link to a directory stays, although the directory is emptied.
	if err := s.Delete(t.Context(), storage.Blob{Key: "zlinked/x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "zlinked")); err != nil {
		t.Error(err)
	}
}

// Leftovers of crashes are deleted with the directory, once they are old.
func TestStaleTemporaryFiles(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, key := range []string{"old/1", "new/1"} {
		storagetest.Put(t, s, key, nil)
		write(t, filepath.Join(root, filepath.Dir(key), ".tmp-X"), "x", 0o440)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(root, "old/.tmp-X"), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), storagetest.Keys("old/1", "new/1")...); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "old")); err == nil {
		t.Error("the directory with an old temporary file stays")
	}
	if _, err := os.Stat(filepath.Join(root, "new/.tmp-X")); err != nil {
		t.Error("a new temporary file, somebody's at work, is gone")
	}
}

// Sweep deletes temporary files below a directory, also behind a link, and harms no Create.
func TestSweep(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	s := open(t, root)
	storagetest.Put(t, s, "web/2026/1", nil)
	storagetest.Put(t, s, "api/2026/1", nil)
	if err := os.Symlink(elsewhere, filepath.Join(root, "web/2025")); err != nil {
		t.Fatal(err)
	}
	all := []string{filepath.Join(root, "web/2026/.tmp-X"), filepath.Join(elsewhere, ".tmp-X"), filepath.Join(root, "api/2026/.tmp-X")}
	for _, path := range all {
		write(t, path, "x", 0o440)
	}
	done := make(chan error)
	go func() {
		for i := range 30 {
			if err := s.Create(t.Context(), fmt.Sprintf("web/2026/%d", i+2), []byte("body"), storage.Attrs{}); err != nil {
				done <- err
			}
		}
		close(done)
	}()
	for range 50 { // a Create begins again more often
		if err := s.Sweep(t.Context(), "web/"); err != nil {
			t.Error(err)
		}
	}
	for err := range done {
		t.Error(err)
	}
	for i, path := range all {
		if _, err := os.Stat(path); (err == nil) != (i == 2) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := len(storagetest.KeysOf(t, s, "web/")); n != 31 {
		t.Errorf("%d objects, want 31", n)
	}
	if err := s.Sweep(t.Context(), "nothing/"); err != nil {
		t.Error(err)
	}
}

// FuzzFile reads any file as an object, at once and by ranges.
func FuzzFile(f *testing.F) {
	root := f.TempDir()
	s := open(f, root)
	storagetest.Put(f, s, "seed", []byte("body"), storage.Attrs{Metadata: map[string]string{"a": "b"}})
	whole, err := os.ReadFile(filepath.Join(root, "seed"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{})
	f.Add([]byte("btO1"))
	path := filepath.Join(root, "x")
	f.Fuzz(func(t *testing.T, file []byte) {
		write(t, path, string(file), 0o644)
		b, err := s.Stat(t.Context(), "x")
		if err != nil {
			if !errors.Is(err, storage.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if body := storagetest.Body(t, s, "x"); int64(len(body)) != b.Size || !bytes.HasPrefix(file, body) {
			t.Fatalf("%d bytes of %d", len(body), b.Size)
		}
	})
}

func write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// closedTo is a file system whose files of one name may not be opened, as by their mode for a user who
// is not root.
type closedTo struct {
	fsys.FS
	name string
}

func (c closedTo) OpenFile(name string, flag int, perm os.FileMode) (fsys.File, error) {
	if filepath.Base(name) == c.name {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrPermission}
	}
	return c.FS.OpenFile(name, flag, perm)
}

// A file that may not be read is listed, and is called unreadable, with a remedy: it may be whole. Reads
// go on without it, as without a damaged one.
func TestUnreadable(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for _, key := range []string{"a/1", "a/2"} {
		storagetest.Put(t, s, key, []byte("body"))
	}
	if err := os.Chmod(filepath.Join(root, "a", "2"), 0); err != nil {
		t.Fatal(err)
	}
	s, err := dir.Open(root, dir.Options{FS: closedTo{fsys.OS(), "2"}})
	if err != nil {
		t.Fatal(err)
	}
	keys := storagetest.KeysOf(t, s, "")
	if !slices.Equal(keys, []string{"a/1", "a/2"}) {
		t.Error(keys)
	}
	_, err = s.Stat(t.Context(), "a/2")
	_, gerr := s.Get(t.Context(), "a/2", 0, -1)
	for _, err := range []error{err, gerr} {
		if !errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrUnauthorized) {
			t.Errorf("%v is of another kind", err)
		}
		for _, part := range []string{"a/2", "unreadable: ", "permission denied", "; ", "has the mode 0000; run: chmod u+r"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v lacks %q", err, part)
			}
		}
		if strings.Contains(err.Error(), "damaged") {
			t.Error(err)
		}
	}
}
