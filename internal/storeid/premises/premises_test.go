package premises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
)

// cutStore cannot be reached while down is set.
type cutStore struct {
	storage.BlobStore
	down bool
	hang chan struct{} // a Get sends to it and then waits for the end of its context
}

var errCut = errors.New("the cable is cut")

func (s *cutStore) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if s.hang != nil {
		s.hang <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.down {
		return nil, errCut
	}
	return s.BlobStore.Get(ctx, key, off, n)
}

// log is the directory of a log with a number of unflushed records.
type log struct {
	t         *testing.T
	dir       string
	near      bool // its store is a directory
	unflushed int
	left      []storeid.Binding // the stores that it left
}

func (l *log) open(store storage.BlobStore, spec string) (*premises.Premises, error) {
	return premises.Open(l.t.Context(), premises.Options{
		FS: fsys.OS(), Dir: l.dir, Blobs: store, Spec: spec, Remote: !l.near,
		Unflushed: func(context.Context) (int, error) { return l.unflushed, nil },
		Leave:     func(was storeid.Binding) error { l.left = append(l.left, was); return nil },
	})
}

func (l *log) mustOpen(store storage.BlobStore, spec string) *premises.Premises {
	l.t.Helper()
	p, err := l.open(store, spec)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// A log that is started with another name of a store accepts nothing before that store
// was seen to be its own: a mistake in the name must not show when it is too late.
func TestRenamedStore(t *testing.T) {
	store, l := &cutStore{BlobStore: mem.New(mem.Options{})}, &log{t: t, dir: t.TempDir()}
	if err := l.mustOpen(store, "azure:logs").Storing(); err != nil {
		t.Errorf("a new log and a new store: %v", err)
	}

	store.down = true
	p := l.mustOpen(store, "azure:logs")
	if err := p.Ready(); err != nil {
		t.Errorf("its own store, which is down: %v", err)
	}
	if err := p.Storing(); !errors.Is(err, errCut) {
		t.Errorf("a store that was not reached since the start: %v", err)
	}
	p = l.mustOpen(store, "azure:losg")
	if err := p.Ready(); !errors.Is(err, errCut) || !strings.Contains(err.Error(), "belongs to the store azure:logs") {
		t.Errorf("another name, not reached: %v", err)
	}

	store.down = false
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Ready(), p.Storing()); err != nil {
		t.Errorf("another name of the same store: %v", err)
	}
	store.down = true
	if err := l.mustOpen(store, "azure:losg").Ready(); err != nil {
		t.Errorf("the new name is not kept: %v", err)
	}
}

// A log goes over to another store when it is empty, and not before. A store without
// its id is refused.
func TestOtherStore(t *testing.T) {
	first, second, l := mem.New(mem.Options{}), mem.New(mem.Options{}), &log{t: t, dir: t.TempDir()}
	id := l.mustOpen(first, "azure:first").ID()
	if lost := (*premises.WrongStoreError)(nil); !errors.As(open(l, second, "azure:second"), &lost) || lost.ID != "" {
		t.Error("a store without an id is taken for the log's")
	}
	if _, err := storeid.Ensure(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	l.unflushed = 3
	if err, other := open(l, second, "azure:second"), (*premises.WrongStoreError)(nil); !errors.As(err, &other) || other.ID == "" || !strings.Contains(err.Error(), "3 records in the log are in no blob yet") {
		t.Errorf("a log with records of another store: %v", err)
	}
	l.unflushed = 0
	p := l.mustOpen(second, "azure:second")
	if len(l.left) != 1 || l.left[0] != (storeid.Binding{ID: id, Spec: "azure:first"}) || p.ID() == id || p.ID() == "" {
		t.Errorf("it left %v for %s", l.left, p.ID())
	}
}

func open(l *log, store storage.BlobStore, spec string) error {
	_, err := l.open(store, spec)
	return err
}

// The end of the process breaks a check off. That says nothing of the store, so the
// ingester can still announce that it has ended.
func TestCheckAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := &cutStore{BlobStore: mem.New(mem.Options{})}, &log{t: t, dir: t.TempDir(), near: true}
		p := l.mustOpen(store, "dir:logs")
		store.hang = make(chan struct{})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		<-store.hang
		end()
		<-ended
		if err := errors.Join(p.Ready(), p.Storing()); err != nil {
			t.Error(err)
		}
	})
}

// numbered refuses each request with the next number of a request.
type numbered struct {
	storage.BlobStore
	n int
}

func (s *numbered) Get(context.Context, string, int64, int64) (io.ReadCloser, error) {
	s.n++
	return nil, fmt.Errorf("%w: 403 (request %d)", storage.ErrUnauthorized, s.n)
}

// A refusal is logged once, although each answer has another number.
func TestRefusalLoggedOnce(t *testing.T) {
	var said bytes.Buffer
	p, err := premises.Open(t.Context(), premises.Options{
		FS: fsys.OS(), Dir: t.TempDir(), Blobs: &numbered{}, Spec: "azure:logs", Remote: true, Log: zerolog.New(&said),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.Check(t.Context()); !errors.Is(err, storage.ErrUnauthorized) {
			t.Errorf("Check: %v", err)
		}
	}
	if n := strings.Count(said.String(), "nothing is stored until it is known which store this is"); n != 1 {
		t.Errorf("logged %d times: %s", n, said.String())
	}
}

// No log may belong to a copy, until it is promoted.
func TestCopyOfAStore(t *testing.T) {
	store, l := mem.New(mem.Options{}), &log{t: t, dir: t.TempDir(), near: true}
	if _, err := storeid.EnsureCopy(t.Context(), store, strings.Repeat("0", 32), nil, true); err != nil {
		t.Fatal(err)
	}
	p, err := l.open(store, "dir:copy")
	if p != nil || !errors.As(err, new(*storeid.CopyError)) || !strings.Contains(err.Error(), "retention promote") {
		t.Errorf("a copy: %v", err)
	}
	if err := storeid.Promote(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	p = l.mustOpen(store, "dir:copy")
	if err := errors.Join(p.Ready(), p.Storing()); err != nil || len(p.ID()) != 32 {
		t.Errorf("a promoted one: %v, id %q", err, p.ID())
	}
}
