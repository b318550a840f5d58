package fsys_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"blobtail/storage/fsys"
)

func openTree(t *testing.T, name string) *fsys.Tree {
	t.Helper()
	tree, err := fsys.OpenTree(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// create makes a file of one byte, or fails if the name exists.
func create(f fsys.FS, name string) error {
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("x"), 0)
	return errors.Join(err, file.Sync(), file.Close())
}

// perform does all operations of a file system, and logs the results.
func perform(t *testing.T, f fsys.FS, root string) (log []string) {
	at := func(name string) string { return filepath.Join(root, name) }
	note := func(what string, err error) {
		code := syscall.Errno(0)
		errors.As(err, &code)
		var pe *fs.PathError
		if errors.As(err, &pe) {
			what += " (" + pe.Op + " " + strings.TrimPrefix(pe.Path, root) + ")"
		}
		log = append(log, fmt.Sprintf("%s: %v %d", what, err == nil, code))
	}
	note("mkdir", f.Mkdir(at("d"), 0o750))
	note("mkdir again", f.Mkdir(at("d"), 0o750))
	note("mkdir below nothing", f.Mkdir(at("no/d"), 0o750))
	note("create", create(f, at("d/1")))
	note("create again", create(f, at("d/1")))
	note("create below nothing", create(f, at("no/1")))
	note("create below a file", create(f, at("d/1/1")))
	note("link", f.Link(at("d/1"), at("d/2")))
	note("link to what is there", f.Link(at("d/1"), at("d/2")))
	note("link of nothing", f.Link(at("d/3"), at("d/4")))
	note("rename", f.Rename(at("d/2"), at("d/5")))
	note("rename of nothing", f.Rename(at("d/2"), at("d/6")))
	note("remove a full directory", f.Remove(at("d")))
	note("remove a file", f.Remove(at("d/5")))
	note("remove nothing", f.Remove(at("d/5")))
	note("remove below a file", f.Remove(at("d/1/1")))
	note("mkdir", f.Mkdir(at("empty"), 0o700))
	note("remove an empty directory", f.Remove(at("empty")))
	note("sync", f.SyncDir(at("d")))
	note("sync the root", f.SyncDir(root))
	note("sync nothing", f.SyncDir(at("no")))
	for _, name := range []string{"d", "d/1", "in", "out", "dangling", "no", "d/1/1"} {
		fi, err := f.Stat(at(name))
		note("stat "+name, err)
		if err == nil {
			real, err := os.Stat(at(name))
			if err != nil {
				t.Fatal(err)
			}
			if fi.Name() != real.Name() || fi.Mode() != real.Mode() || !fi.ModTime().Equal(real.ModTime()) || fi.IsDir() != real.IsDir() || fi.Size() != real.Size() {
				t.Errorf("Stat(%s) = %s, want %s", name, fs.FormatFileInfo(fi), fs.FormatFileInfo(real))
			}
		}
	}
	for _, name := range []string{"", "d", "out", "no", "d/1"} {
		list, err := f.ReadDir(at(name))
		note("list "+name, err)
		for _, e := range list {
			fi, err := e.Info()
			if err != nil {
				t.Error(err)
				continue
			}
			log = append(log, fmt.Sprintf("%s %v %v %v %d", e.Name(), e.Type(), e.IsDir(), fi.Mode(), fi.Size()))
		}
	}
	_, err := f.OpenFile(at("d/1"), os.O_WRONLY|syscall.O_DIRECTORY, 0)
	note("a file as a directory", err)
	l, err := f.Lock(at("d"))
	note("lock", err)
	_, err = f.Lock(at("d"))
	note("lock again", err)
	if l == nil || !errors.Is(err, fsys.ErrLocked) || l.Close() != nil {
		t.Errorf("Lock: %v", err)
	}
	return log
}

// host is the file system of package os.
type host struct{ fsys.FS }

func (host) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (host) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (host) Link(from, to string) error                 { return os.Link(from, to) }
func (host) Rename(from, to string) error               { return os.Rename(from, to) }
func (host) Remove(name string) error                   { return os.Remove(name) }
func (host) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (host) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

// A tree and the file system of names give the same results and errors as package os, for
// every operation.
func TestTreeIsAsTheHost(t *testing.T) {
	var logs [3][]string
	for i := range logs {
		root := t.TempDir()
		elsewhere := t.TempDir() // a part of the store on another disk
		if err := os.WriteFile(filepath.Join(elsewhere, "x"), []byte("moved"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(root, "real"), 0o711); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, to := range map[string]string{"in": "real", "out": elsewhere, "dangling": "/nonexistent"} {
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		fsystem := []fsys.FS{host{fsys.OS()}, fsys.OS(), openTree(t, root)}[i]
		for _, line := range perform(t, fsystem, root) {
			if !strings.HasPrefix(line, "dangling L") && !strings.HasPrefix(line, "out L") { // their sizes differ
				logs[i] = append(logs[i], line)
			}
		}
	}
	for n, log := range logs[1:] {
		for i := range max(len(logs[0]), len(log)) {
			if i >= len(logs[0]) || i >= len(log) || logs[0][i] != log[i] {
				t.Fatalf("%d, line %d: by package os\n%s\nhere\n%s", n, i, strings.Join(logs[0], "\n"), strings.Join(log, "\n"))
			}
		}
	}
	if len(logs[0]) < 40 {
		t.Errorf("only %d lines", len(logs[0]))
	}
}

// More entries than one system call returns.
func TestTreeManyEntries(t *testing.T) {
	root := t.TempDir()
	tree := openTree(t, root)
	var want []string
	for i := range 1500 {
		name := fmt.Sprintf("%04d-%s", i, strings.Repeat("x", i%200))
		if err := create(tree, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	list, err := tree.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

// Names are those of the host, with any spelling of the root; others are refused.
func TestTreeNames(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if err := os.MkdirAll("a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		root    string
		inside  []string
		outside []string
	}{
		{root, []string{root, root + "/a", root + "/a/b"}, []string{"a", root + "x", root + "/../x", "/", filepath.Dir(root)}},
		{root + "/", []string{root, root + "/a"}, []string{"a"}},
		{".", []string{".", "a", "a/b"}, []string{"..", "../x", root, "/"}},
		{"./a", []string{"a", "a/b"}, []string{"b", ".", "a/../..", "./a/b"}},
		{"/", []string{"/", root, root + "/a"}, []string{"a", "."}},
	} {
		tree := openTree(t, c.root)
		for _, name := range c.inside {
			if _, err := tree.Stat(name); err != nil {
				t.Errorf("root %s: %v", c.root, err)
			}
		}
		for _, name := range c.outside {
			if _, err := tree.Stat(name); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("root %s, %s: %v", c.root, name, err)
			}
		}
	}
}

// A tree stays with its directory, and reports whether the name does.
func TestTreeMoved(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	tree := openTree(t, root)
	is := func(want string) {
		t.Helper()
		if got := tree.Moved(); (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("Moved: %v, want %q", got, want)
		}
	}
	is("")
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	is("no such file")
	if err := create(tree, filepath.Join(root, "1")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root+".away", "1")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is("another directory")
	if err := errors.Join(os.Remove(root), os.Symlink(root+".away", root)); err != nil {
		t.Fatal(err)
	}
	is("") // it leads there again
	if err := os.RemoveAll(root + ".away"); err != nil {
		t.Fatal(err)
	}
	is("no such file")
	for name, err := range map[string]error{
		"create": create(tree, filepath.Join(root, "1")),
		"stat":   func() error { _, err := tree.Stat(root); return err }(),
		"list":   func() error { _, err := tree.ReadDir(root); return err }(),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s in a directory that was removed: %v", name, err)
		}
	}
}

// Close during other calls: each call is done in the directory or fails. It never reaches
// another directory that got the number of its descriptor.
func TestTreeClose(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for range 50 {
		tree := openTree(t, root)
		var wg sync.WaitGroup
		for w := range 3 {
			wg.Go(func() {
				for i := range 20 {
					name := filepath.Join(root, fmt.Sprint("f", w, i))
					if err := create(tree, name); err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, fs.ErrExist) {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
			for range 20 {
				d, err := os.Open(other)
				if err != nil {
					t.Error(err)
					continue
				}
				d.Close()
			}
		})
		wg.Wait()
		if _, err := tree.Stat(root); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Stat after Close: %v", err)
		}
		if tree.Moved() == nil {
			t.Error("a closed tree is where it was")
		}
		if err := tree.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
	if list, err := os.ReadDir(other); err != nil || len(list) > 0 {
		t.Errorf("another directory holds %v, %v", list, err)
	}
}
