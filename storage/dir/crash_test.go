package dir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/storagetest"
)

// recorder records the operations that change the disk or make it durable, with paths
// below the root and temporary names shortened.
type recorder struct {
	fsys.FS
	root string

	mu  sync.Mutex
	ops []string
}

func (r *recorder) note(op, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rel, _ := filepath.Rel(r.root, name)
	if strings.HasPrefix(filepath.Base(rel), ".tmp-") {
		rel = filepath.Join(filepath.Dir(rel), "tmp")
	}
	r.ops = append(r.ops, op+" "+rel)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := r.ops
	r.ops = nil
	return ops
}

func (r *recorder) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	f, err := r.FS.OpenFile(name, flag, perm)
	return recordedFile{f, r, name}, err
}

func (r *recorder) Mkdir(name string, perm fs.FileMode) error {
	err := r.FS.Mkdir(name, perm)
	if err == nil {
		r.note("mkdir", name)
	}
	return err
}

func (r *recorder) Link(from, to string) error {
	err := r.FS.Link(from, to)
	if err == nil {
		r.note("link", to)
	}
	return err
}

func (r *recorder) Remove(name string) error {
	err := r.FS.Remove(name)
	if err == nil {
		r.note("remove", name)
	}
	return err
}

func (r *recorder) SyncDir(name string) error {
	r.note("syncdir", name)
	return r.FS.SyncDir(name)
}

type recordedFile struct {
	fsys.File
	r    *recorder
	name string
}

func (f recordedFile) WriteAt(p []byte, off int64) (int, error) {
	f.r.note("write", f.name)
	return f.File.WriteAt(p, off)
}

func (f recordedFile) Sync() error {
	f.r.note("sync", f.name)
	return f.File.Sync()
}

// The disk operations of Create and Delete before they return, in their order.
func TestOrder(t *testing.T) {
	r := &recorder{FS: fsys.OS(), root: t.TempDir()}
	s, err := dir.Open(r.root, dir.Options{FS: r})
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, r.root) // another process
	create := func(s *dir.Store, key string) func() error {
		return func() error { return s.Create(t.Context(), key, []byte("x"), storage.Attrs{}) }
	}
	del := func(s *dir.Store, keys ...string) func() error {
		return func() error { return s.Delete(t.Context(), storagetest.Keys(keys...)...) }
	}
	write := func(dir string) string {
		return fmt.Sprintf("write %s/tmp, write %s/tmp, sync %s/tmp, link %s/1, remove %s/tmp, syncdir %s", dir, dir, dir, dir, dir, dir)
	}
	for _, step := range []struct {
		what string
		do   func() error
		err  error
		want string
	}{
		{"in a new directory", create(s, "a/b/1"), nil, "mkdir a, mkdir a/b, " + write("a/b") + ", syncdir a, syncdir ."},
		{"beside it", create(s, "a/b/2"), nil, strings.ReplaceAll(write("a/b"), "b/1", "b/2") + ", syncdir a, syncdir ."},
		// Its writer may not have synced it yet.
		{"taken", create(s, "a/b/1"), storage.ErrExist, "syncdir a/b, syncdir a, syncdir ."},
		{"a sibling", create(s, "a/c/1"), nil, "mkdir a/c, " + write("a/c") + ", syncdir a, syncdir ."},
		{"another makes a directory", create(other, "a/d/1"), nil, ""},
		{"taken, in that one", create(s, "a/d/1"), storage.ErrExist, "syncdir a/d, syncdir a, syncdir ."},
		{"delete, and the directory with it", del(s, "a/c/1"), nil, "remove a/c/1, remove a/c, syncdir a"},
		{"make it again", create(s, "a/c/1"), nil, "mkdir a/c, " + write("a/c") + ", syncdir a, syncdir ."},
		{"another deletes it", del(other, "a/c/1"), nil, ""},
		{"another makes it again", create(other, "a/c/2"), nil, ""},
		{"use what was made again", create(s, "a/c/1"), nil, write("a/c") + ", syncdir a, syncdir ."},
		{"delete everything", del(s, "a/b/1", "a/b/2", "a/c/1", "a/c/2", "a/d/1"), nil, "*"},
		{"start again", create(s, "a/b/1"), nil, "mkdir a, mkdir a/b, " + write("a/b") + ", syncdir a, syncdir ."},
	} {
		r.take()
		if err := step.do(); !errors.Is(err, step.err) {
			t.Fatalf("%s: %v, want %v", step.what, err, step.err)
		}
		if got := strings.Join(r.take(), ", "); got != step.want && step.want != "*" {
			t.Errorf("%s:\n got %s\nwant %s", step.what, got, step.want)
		}
	}
}

// Open makes the root durable too, with everything above it. An existing directory may
// come from a process that was killed before it was durable.
func TestOrderOfRoot(t *testing.T) {
	r := &recorder{FS: fsys.OS(), root: t.TempDir()}
	for _, want := range [][]string{
		{"syncdir ..", "mkdir x", "syncdir .", "mkdir x/y", "syncdir x"},
		{"syncdir x"},
	} {
		if _, err := dir.Open(filepath.Join(r.root, "x", "y"), dir.Options{FS: r, Create: true}); err != nil {
			t.Fatal(err)
		}
		if got := r.take(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// After a failed fsync of a directory nothing created there is called durable, though
// the next fsync would succeed.
func TestDirSyncFails(t *testing.T) {
	d := simdisk.New(1)
	s, err := dir.Open("/store", dir.Options{FS: d, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	d.SetFault(func(op simdisk.Op) error {
		if op.Kind == "syncdir" && op.Path == "/store/a" {
			return errors.New("I/O error")
		}
		return nil
	})
	create := func(key string) error { return s.Create(t.Context(), key, nil, storage.Attrs{}) }
	if err := create("a/1"); err == nil {
		t.Error("Create succeeds without the fsync")
	}
	d.SetFault(nil)
	for _, key := range []string{"a/1", "a/2"} {
		if err := create(key); err == nil || errors.Is(err, storage.ErrExist) {
			t.Errorf("Create %s: %v", key, err)
		}
	}
	if err := create("b/1"); err != nil {
		t.Errorf("Create elsewhere: %v", err)
	}
}

// A power cut at any moment loses no object that Create answered with nil or ErrExist.
// It leaves no partial object under a key.
func TestPowerCut(t *testing.T) {
	for seed := range testkit.Share(300, 50) {
		d := simdisk.New(uint64(seed))
		cut := 5 + seed*7%400
		d.SetFault(func(op simdisk.Op) error {
			if op.N > cut {
				return simdisk.ErrKilled
			}
			return nil
		})
		answered := map[string]bool{}
		// Two processes that contest each name, and delete some.
		var mu sync.Mutex
		var wg sync.WaitGroup
		for p := range 2 {
			s, err := dir.Open("/store", dir.Options{FS: d, Create: true})
			if err != nil {
				break
			}
			wg.Go(func() {
				for i := range 8 {
					key := fmt.Sprintf("web/%d/%d", i/3, i)
					err := s.Create(context.Background(), key, bodyOf(key), storage.Attrs{Metadata: map[string]string{"batch": "x"}})
					if err == nil || errors.Is(err, storage.ErrExist) {
						mu.Lock()
						answered[key] = true
						mu.Unlock()
					}
					if p == 0 { // directories come and go
						s.Create(context.Background(), "web/2/gone", nil, storage.Attrs{})
						s.Delete(context.Background(), storage.Blob{Key: "web/2/gone"})
					}
				}
			})
		}
		wg.Wait()
		checkAfterCut(t, seed, d.PowerCut(), answered)
	}
}

func checkAfterCut(t *testing.T, seed int, d *simdisk.Disk, answered map[string]bool) {
	t.Helper()
	s, err := dir.Open("/store", dir.Options{FS: d, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		delete(answered, b.Key)
		if b.Key == "web/2/gone" {
			continue
		}
		if err := readWhole(s, b); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if len(answered) > 0 {
		t.Errorf("seed %d: %v were answered for and are gone", seed, answered)
	}
}

// readWhole makes sure that a blob has its body and its attributes.
func readWhole(s *dir.Store, b storage.Blob) error {
	r, err := s.Get(context.Background(), b.Key, 0, -1)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(body, bodyOf(b.Key)) || b.Metadata["batch"] != "x" {
		return fmt.Errorf("%s has %d bytes, %v, attributes %v", b.Key, len(body), err, b.Attrs)
	}
	return nil
}

func bodyOf(key string) []byte { return bytes.Repeat([]byte(key), 300) }
