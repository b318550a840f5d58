// Package trial finds out whether a store takes the writes of an ingester, before a
// record depends on that.
//
// [Blobs] and [Tables] try it once. A [Trial] tries the blobs at the start of an ingester,
// again and again until it works. A store that cannot be reached says nothing about its
// rights, so that an outage does not make an ingester unready.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage"
)

// Blobs tries to create, read and list objects. It leaves no object.
func Blobs(ctx context.Context, blobs storage.BlobStore) error {
	if trier, ok := blobs.(storage.Trier); ok {
		if err := trier.TryCreate(ctx); err != nil {
			return err
		}
	}
	const missing = "_check" // the store needs no object for a test of rights
	r, err := blobs.Get(ctx, missing, 0, 1)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	for _, err := range blobs.List(ctx, missing, "") {
		return err
	}
	return nil
}

// Table is the table that [Tables] writes to. No other part reads it. It stays, because
// ingesters need no right to delete.
const Table = "blobtailcheck"

// Tables tries each kind of write that an ingester sends, and to read. It writes the same row
// each time.
func Tables(ctx context.Context, tables storage.TableStore) error {
	const key = "check"
	row := storage.Row{Key: key, Props: map[string]any{"is": "a test of blobtail"}}
	if err := tables.Upsert(ctx, Table, key, []storage.Row{row}); err != nil {
		return err
	}
	for there, err := range tables.Scan(ctx, Table, key, "", "", 1) {
		if err != nil {
			return err
		}
		row.Version = there.Version
	}
	if row.Version == "" {
		return errors.New("the row that was just written is not there")
	}
	// One write replaces the row of the version that was read, another one makes a row: the
	// rights are two. The second finds the row, and so do both if another check runs.
	for _, version := range []string{row.Version, ""} {
		row.Version = version
		if _, err := tables.Swap(ctx, Table, key, row); err != nil && !errors.Is(err, storage.ErrChanged) {
			return err
		}
	}
	return nil
}

// Options name the store. All but Remote and Log must be given.
type Options struct {
	Blobs storage.BlobStore
	// Remote says that a network is between the ingester and the store.
	Remote bool
	// Storing is the reason why nothing may be sent to the store, nil if there is none.
	Storing func() error
	// Explained adds the remedy to an error of the store.
	Explained func(error) error
	// Every is the pause between two tries; 0: 5 s.
	Every time.Duration
	Log   zerolog.Logger
}

// wait bounds one try.
const wait = 20 * time.Second

// Trial knows whether a store takes objects. Its methods may be called concurrently.
type Trial struct {
	o     Options
	first chan struct{}

	mu  sync.Mutex
	err error // why the store takes nothing; nil while that is not known
}

// New returns a trial. It starts nothing and sends nothing.
func New(o Options) *Trial {
	o.Every = cmp.Or(o.Every, 5*time.Second)
	return &Trial{o: o, first: make(chan struct{})}
}

// First is closed after the first try of Run.
func (t *Trial) First() <-chan struct{} { return t.first }

// Err is the reason why the store takes no objects, with its fix; nil if it takes them, or
// cannot be reached.
func (t *Trial) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Run tries until the store takes an object, or ctx ends. It is called once.
func (t *Trial) Run(ctx context.Context) {
	done := t.try(ctx)
	close(t.first)
	for !done {
		select {
		case <-time.After(t.o.Every):
		case <-ctx.Done():
			return
		}
		done = t.try(ctx)
	}
}

// try tries once, and reports whether the store took the object.
func (t *Trial) try(ctx context.Context) (done bool) {
	err := t.o.Storing()
	if err == nil {
		trying, cancel := context.WithTimeout(ctx, wait)
		err = Blobs(trying, t.o.Blobs)
		cancel()
	}
	if err != nil && ctx.Err() != nil {
		return false // a cancelled try says nothing
	}
	t.note(err)
	return err == nil
}

// note keeps the result of a try. It logs an error once, and its end.
func (t *Trial) note(err error) {
	if err != nil && !t.refused(err) {
		return // the last result stands
	}
	if err != nil {
		err = fmt.Errorf("the store takes nothing: %w", t.o.Explained(err))
	}
	t.mu.Lock()
	was := t.err
	t.err = err
	t.mu.Unlock()
	switch {
	case err == nil && was != nil:
		t.o.Log.Info().Msg("the store takes objects now")
	case err != nil && (was == nil || storage.Gist(err) != storage.Gist(was)):
		t.o.Log.Error().Err(err).Msg("not ready: nothing can be stored; what was accepted waits in the log, and the store is tried again every " + t.o.Every.String())
	}
}

// refused reports whether an error is the answer of a store, and not the lack of one. A
// directory always answers.
func (t *Trial) refused(err error) bool {
	return !t.o.Remote || errors.Is(err, storage.ErrUnauthorized) || errors.Is(err, storage.ErrNotExist)
}
