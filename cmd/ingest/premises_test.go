package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"blobtail/config"
	"blobtail/internal/fsys"
	"blobtail/internal/openstore"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storeid"
)

// cutStore cannot be reached while down is set.
type cutStore struct {
	storage.BlobStore
	down bool
}

var errCut = errors.New("the cable is cut")

func (s *cutStore) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if s.down {
		return nil, errCut
	}
	return s.BlobStore.Get(ctx, key, off, n)
}

// A log that is started with another name of a store takes nothing before that store
// was seen to be its own: a mistake in the name must not show when it is too late.
func TestRenamedStore(t *testing.T) {
	store := &cutStore{BlobStore: mem.New(mem.Options{})}
	id, err := storeid.Ensure(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	var c config.Config
	c.Ingest.WAL = t.TempDir()
	if err := (storeid.Binding{ID: id, Spec: "azure:logs"}).Save(fsys.OS(), c.WALDir()); err != nil {
		t.Fatal(err)
	}
	open := func(spec string) *premises {
		t.Helper()
		var err error
		if c.Store, err = openstore.Parse(spec); err != nil {
			t.Fatal(err)
		}
		p, err := openPremises(t.Context(), c, store, nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	store.down = true
	if err := open("azure:logs").ready(); err != nil {
		t.Errorf("its own store, which is down: %v", err)
	}
	p := open("azure:losg")
	if err := p.ready(); !errors.Is(err, errCut) || !strings.Contains(err.Error(), "belongs to the store azure:logs") {
		t.Errorf("another name, not reached: %v", err)
	}
	if _, err := (gate{premises: p}).Accept(t.Context(), nil); !errors.Is(err, record.ErrUnheld) {
		t.Errorf("a request to another name: %v", err)
	}

	store.down = false
	if err := p.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.ready(); err != nil {
		t.Errorf("another name of the same store: %v", err)
	}
	store.down = true
	if err := open("azure:losg").ready(); err != nil {
		t.Errorf("the new name is not kept: %v", err)
	}
}
