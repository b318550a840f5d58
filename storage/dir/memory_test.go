package dir_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// settled is a time after which the stamp of a file shows the next change: the clock of a file system
// goes by steps, and is no virtual one.
const settled = 3100 * time.Millisecond

// A store that remembers what it has read sees each change at once: other processes make and delete
// objects, damage them, and move a part of the store behind a link.
func TestRemembered(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	other := open(t, root)
	create := func(key, body string) {
		t.Helper()
		storagetest.Put(t, other, key, []byte(body), storage.Attrs{Metadata: map[string]string{"n": body}})
	}
	for _, key := range []string{"web/10/1.log", "web/10/2.log", "web/11/1.log", "web/12/1.log", "orders/10/1.log"} {
		create(key, key)
	}
	s, err := dir.Open(root, dir.Options{Remember: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all := func(s *dir.Store) (text string) {
		for _, prefix := range []string{"web/", "orders/", "new/"} {
			for b, err := range s.List(t.Context(), prefix, "") {
				text += fmt.Sprintln(b, err)
			}
		}
		for name, err := range s.Dirs(t.Context(), "") {
			text += fmt.Sprintln(name, err)
		}
		for name, err := range s.Dirs(t.Context(), "web/") {
			text += fmt.Sprintln(name, err)
		}
		return text
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "web", "10", "1.log")
	aside := filepath.Join(t.TempDir(), "aside")
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"old enough to be kept", func() { time.Sleep(settled) }},
		{"nothing again", func() {}},
		{"a further object", func() { create("web/10/3.log", "3") }},
		{"a further directory", func() { create("web/13/1.log", "13") }},
		{"a further service", func() { create("new/10/1.log", "1") }},
		{"a deleted object", func() { must(os.Remove(filepath.Join(root, "web", "10", "2.log"))) }},
		{"a damaged object", func() {
			info, err := os.Stat(file)
			must(err)
			must(os.Chmod(file, 0o600))
			must(os.Truncate(file, info.Size()-1))
			must(os.Chmod(file, info.Mode()))
			must(os.Chtimes(file, info.ModTime(), info.ModTime()))
		}},
		{"a moved directory", func() { must(os.Rename(filepath.Join(root, "web", "11"), aside)) }},
		{"a link to it", func() { must(os.Symlink(aside, filepath.Join(root, "web", "11"))) }},
		{"an object behind the link", func() { must(os.WriteFile(filepath.Join(aside, "2.log"), []byte("x"), 0o600)) }},
		{"a link to nothing", func() { must(os.Rename(aside, aside+"2")) }},
		{"no link", func() { must(os.Remove(filepath.Join(root, "web", "11"))) }},
		{"an emptied service", func() { must(os.Remove(filepath.Join(root, "new", "10", "1.log"))) }},
		{"a directory in place of the first object", func() {
			must(os.Remove(file))
			must(os.Mkdir(file, 0o700))
		}},
		{"a deleted service", func() { must(os.RemoveAll(filepath.Join(root, "orders"))) }},
	} {
		step.do()
		for range 2 {
			if got, want := all(s), all(other); got != want {
				t.Errorf("after %s:\n%s\nwant\n%s", step.name, got, want)
			}
		}
	}
}

// A name that is no key stays one when the object is known that another spelling of its path leads to.
func TestRememberedKeys(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s, err := dir.Open(root, dir.Options{Remember: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Put(t, s, "web/1.log", []byte("x"))
	time.Sleep(settled)
	for range 2 {
		if _, err := s.Stat(t.Context(), "web/1.log"); err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"web//1.log", "web/1.log/", "/web/1.log", "web/./1.log", "web/../web/1.log"} {
		if b, err := s.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s is %v, %v", key, b, err)
		}
	}
}

// While a directory is read, its link is made to lead elsewhere. What was read there is not taken for the
// contents of the first one when the link leads back.
func TestRememberedElsewhere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	other := open(t, root)
	for _, key := range []string{"first/1.log", "first/2.log", "second/1.log"} {
		storagetest.Put(t, other, key, []byte(key), storage.Attrs{Metadata: map[string]string{"of": key}})
	}
	link, next := filepath.Join(root, "web"), filepath.Join(root, ".next")
	lead := func(to string) {
		if err := errors.Join(os.Symlink(to, next), os.Rename(next, link)); err != nil {
			t.Error(err)
		}
	}
	lead("first")
	time.Sleep(settled)
	list := func(s *dir.Store) (text string) {
		for b, err := range s.List(t.Context(), "web/", "") {
			text += fmt.Sprintln(b.Key, b.Metadata["of"], err)
		}
		return text
	}
	want := list(other)
	for range testkit.Share(4000, 500) {
		s, err := dir.Open(root, dir.Options{Remember: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var turn sync.WaitGroup
		turn.Go(func() {
			for until := time.Now().Add(time.Duration(rand.IntN(150)) * time.Microsecond); time.Now().Before(until); {
			}
			lead("second")
		})
		list(s)
		turn.Wait()
		lead("first")
		if got := list(s); got != want {
			t.Fatalf("the directory has\n%s\nwant\n%s", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
