package dir_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys"
	"blobtail/storage/storagetest"
)

// removing calls during before each removal of the file of that name.
type removing struct {
	fsys.FS
	name   string
	during func()
}

func (r *removing) Remove(name string) error {
	if filepath.Base(name) == r.name {
		r.during()
	}
	return r.FS.Remove(name)
}

// Between the check of an object and its removal no other Delete runs, or the name
// could pass to another object there. Objects are created all the while.
func TestDeletersWait(t *testing.T) {
	root := t.TempDir()
	other := open(t, root) // another process
	storagetest.Put(t, other, "web/1", []byte("old"))
	listed, err := other.Stat(t.Context(), "web/1")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	fs := &removing{FS: fsys.OS(), name: "1", during: func() {
		calls++
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		for _, b := range []storage.Blob{listed, {Key: "web/1"}} {
			if err := other.Delete(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another Delete: %v, want DeadlineExceeded", err)
			}
		}
		if err := other.Create(t.Context(), "web/2", nil, storage.Attrs{}); err != nil {
			t.Errorf("Create meanwhile: %v", err)
		}
	}}
	s, err := dir.Open(root, dir.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), listed); err != nil || calls != 1 {
		t.Errorf("Delete: %v after %d removals", err, calls)
	}
	if err := other.Delete(t.Context(), storage.Blob{Key: "web/2"}); err != nil {
		t.Errorf("the lock is kept: %v", err)
	}
}
