package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/internal/clockskew"
	"blobtail/internal/lease"
	"blobtail/internal/storeid/premises"
	"blobtail/internal/trial"
	"blobtail/reading/unflushed/live/peers"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// No record is accepted before the peers know the ingester that holds it, even with a
// given lane. If the store hangs, that delays records only until a limit.
func TestAnnouncedFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		auto  bool
		known int
	}{
		{"lane of its own", 300 * time.Millisecond, false, 1},
		{"lane to be found", 300 * time.Millisecond, true, 1},
		{"tables that hang", time.Hour, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := mem.New(mem.Options{})
				tables := storagetest.FaultyTables(store, func(op storagetest.Op, _ string) storagetest.Fault {
					if op == storagetest.Upsert || op == storagetest.Swap {
						return storagetest.Fault{Delay: c.takes}
					}
					return storagetest.Fault{}
				})
				announcer, err := lease.New(tables, lease.Options{Lane: 3, Auto: c.auto})
				if err != nil {
					t.Fatal(err)
				}
				belonging, err := premises.Open(t.Context(), premises.Options{FS: fsys.OS(), Dir: t.TempDir(), Blobs: store})
				if err != nil {
					t.Fatal(err)
				}
				p := &company{
					announcer: announcer,
					clock:     clockskew.New(nil, zerolog.Nop()),
					premises:  belonging,
					trial:     trial.New(trial.Options{Blobs: store, Storing: belonging.Storing, Explained: func(err error) error { return err }}),
				}
				list := func(ctx context.Context) ([]lease.Ingester, error) { return lease.List(ctx, store, "") }
				p.peers = peers.New(peers.Options{Self: announcer.ID, List: list, Now: time.Now})
				begun := time.Now()
				var group errgroup.Group
				p.run(t.Context(), &group)
				defer func() {
					p.quit()
					group.Wait()
				}()
				await(t.Context(), begun.Add(companyWait), announcer.First(), p.clock.First())
				if took := time.Since(begun); took > companyWait {
					t.Errorf("it waits for %s", took)
				}
				rows, err := list(t.Context())
				if errors.Is(err, storage.ErrNotExist) {
					err = nil // the first row could not be written
				}
				if err != nil || len(rows) != c.known {
					t.Errorf("%d ingesters are known, %v; want %d", len(rows), err, c.known)
				}
			})
		})
	}
}
