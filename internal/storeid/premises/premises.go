// Package premises makes sure that the log of an ingester and its store belong
// together, and that neither is replaced by another while the ingester runs.
//
// [Open] compares them at the start, and [Premises.Run] again and again. Nothing is
// stored or announced before the store was seen to be the one that the log belongs to
// ([Premises.Storing]), and no record is accepted once it is known to be another one
// ([Premises.Ready]).
package premises

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/storage"
	"blobtail/storage/fsys"
)

// Options say which log and which store. All but Log must be given.
type Options struct {
	FS    fsys.FS
	Dir   string // of the log
	Blobs storage.BlobStore
	Spec  string // of the store, as the operator wrote it
	// Remote says that a network is between the ingester and the store: an error may
	// mean that the store is out of reach for a while.
	Remote bool
	// Unflushed counts the records of the log that are in no blob.
	Unflushed func(context.Context) (int, error)
	// Leave removes the ids by which readers of the log's first store know it. Open
	// calls it when the log is empty and goes over to another store. was is the first.
	Leave func(was storeid.Binding) error
	Log   zerolog.Logger
}

// Premises knows whether a log and a store belong together. Its methods may be called
// concurrently.
type Premises struct {
	o Options

	mu    sync.Mutex
	bound storeid.Binding // zero: the log belongs to no store yet
	sure  bool            // the store was seen to be the one that the log belongs to
	err   error           // the reason why it is not, or is not known to be

	failed error // of the last attempt to store a batch; nil: it succeeded, or there was none
	since  time.Time
}

const (
	// checkEvery is the pause between two checks of a directory, or of a remote store
	// that was not reached yet. farCheckEvery is that of a remote store that was
	// reached.
	checkEvery    = time.Second
	farCheckEvery = time.Minute
	// checkWait bounds one check.
	checkWait = 3 * time.Second
	// firstcheckWait bounds the time that a store which is down adds to a start.
	firstcheckWait = time.Second
)

// Open reads which store the log belongs to, and checks the store once. With an error
// the log must not be used with this store: a [*WrongStoreError], a [*storeid.CopyError], or a
// binding that cannot be read. A store that is out of reach is none.
func Open(ctx context.Context, o Options) (*Premises, error) {
	bound, err := storeid.LoadBinding(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	p := &Premises{o: o, bound: bound}
	checking, cancel := context.WithTimeout(ctx, firstcheckWait)
	err = p.Check(checking)
	cancel()
	var wrong *WrongStoreError
	switch {
	case errors.As(err, new(*storeid.CopyError)):
		return nil, err
	case !errors.As(err, &wrong):
		return p, nil
	case wrong.ID == "":
		return nil, err
	}
	// Another store. With nothing left to store the log may go over to it.
	left, uerr := o.Unflushed(ctx)
	if uerr != nil {
		return nil, errors.Join(err, uerr)
	}
	if left > 0 {
		return nil, fmt.Errorf("%w; %s in the log %s in no blob yet: start with the store of the log, or use another --wal",
			err, units.Count(left, "record"), units.Word(left, "is", "are"))
	}
	if err := errors.Join(o.Leave(bound), p.bind(wrong.ID)); err != nil {
		return nil, err
	}
	return p, p.note(nil)
}

// WrongStoreError is the error of a log that belongs to another store than this, or to a store
// that is not in its place.
type WrongStoreError struct {
	ID        string // of this store; "": there is no store in its place
	bound     storeid.Binding
	dir, spec string
}

// Error implements error.
func (e *WrongStoreError) Error() string {
	belongs := fmt.Sprintf("the log %s belongs to the store %s (id %s), and %s ", e.dir, e.bound.Spec, e.bound.ID, e.spec)
	if e.ID != "" {
		return belongs + "is another one (id " + e.ID + ")"
	}
	return belongs + fmt.Sprintf("has no object %s: is its disk mounted, was it removed? "+
		"If this is that store, put the object back with the content {\"format\":1,\"id\":%q}; to begin a new store with this log, remove %s/%s",
		storeid.Key, e.bound.ID, strings.TrimRight(e.dir, "/"), storeid.BindingFile)
}

// Check compares the store with the one that the log belongs to. A log that belongs to
// none yet is bound to it.
func (p *Premises) Check(ctx context.Context) error {
	return p.note(p.compare(ctx))
}

// inPlace checks the directory of a store that is one.
func (p *Premises) inPlace() error {
	if place, ok := p.o.Blobs.(interface{ Check() error }); ok {
		return place.Check()
	}
	return nil
}

func (p *Premises) compare(ctx context.Context) error {
	if err := p.inPlace(); err != nil {
		return err
	}
	p.mu.Lock()
	bound := p.bound
	p.mu.Unlock()
	id, err := storeid.Read(ctx, p.o.Blobs)
	if err == nil && id == "" && bound.ID == "" {
		id, err = storeid.Ensure(ctx, p.o.Blobs)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read which store this is: %w", err)
	case id != "" && bound.ID == "", id == bound.ID && bound.Spec != p.o.Spec:
		return p.bind(id) // a new log, or the same store under another name
	case id != bound.ID:
		return &WrongStoreError{id, bound, p.o.Dir, p.o.Spec}
	}
	return nil
}

// bind makes the log belong to a store.
func (p *Premises) bind(id string) error {
	b := storeid.Binding{ID: id, Spec: p.o.Spec}
	if err := b.Save(p.o.FS, p.o.Dir); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = b
	return nil
}

// note keeps and returns the result of a check. It logs an error once, and its end.
func (p *Premises) note(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.err
	p.err, p.sure = err, p.sure || err == nil
	switch {
	case err == nil && was == nil, err != nil && was != nil && storage.Gist(err) == storage.Gist(was):
	case err == nil:
		p.o.Log.Info().Str("store", p.o.Spec).Str("id", p.bound.ID).Msg("the store is the one that the log belongs to")
	case p.refusal() != nil:
		p.o.Log.Error().Err(err).Msg("nothing is accepted or stored")
	default:
		p.o.Log.Warn().Err(err).Msg("nothing is stored until it is known which store this is")
	}
	return err
}

// refusal is the reason why no record may be accepted, nil if there is none. p.mu is
// held.
func (p *Premises) refusal() error {
	// A remote store, or a directory that is not there at all, may come back.
	passing := p.o.Remote || errors.Is(p.err, storage.ErrNotExist)
	switch {
	case p.err == nil:
		return nil
	case p.foreign(), p.sure && !passing:
		return p.err
	case !p.sure && p.bound.ID != "" && p.bound.Spec != p.o.Spec:
		// With a mistake in the new name the ingester would accept records that readers of
		// the first store do not know of.
		return fmt.Errorf("the log %s belongs to the store %s, and whether %s is that store is not known until it is reached: %w", p.o.Dir, p.bound.Spec, p.o.Spec, p.err)
	}
	return nil
}

// foreign reports whether the store is not the one that the log belongs to, or is a copy. p.mu
// is held.
func (p *Premises) foreign() bool {
	return errors.As(p.err, new(*WrongStoreError)) || errors.As(p.err, new(*storeid.CopyError))
}

// Run checks again and again until ctx ends.
func (p *Premises) Run(ctx context.Context) {
	for {
		pause := checkEvery
		p.mu.Lock()
		if p.o.Remote && p.sure && p.err == nil {
			pause = farCheckEvery
		}
		p.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		checking, cancel := context.WithTimeout(ctx, checkWait)
		if err := p.compare(checking); ctx.Err() == nil { // a cancelled check says nothing
			_ = p.note(err)
		}
		cancel()
	}
}

// Ready is the reason why no record may be accepted, nil if there is none.
func (p *Premises) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal()
}

// Storing is the reason why nothing may be stored or announced, nil if there is none.
// It checks a directory first: nothing must go to a place that was replaced.
func (p *Premises) Storing() error {
	if err := p.inPlace(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sure && p.o.Remote && !p.foreign() {
		return nil // a put fails, or arrives in that store
	}
	return p.err
}

// Stored notes the result of an attempt to store a batch, for Stalled.
func (p *Premises) Stored(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.failed == nil {
		p.since = time.Now()
	}
	p.failed = err
}

// stuck is the time without a stored batch after which an ingester is not ready.
const stuck = 20 * time.Second

// Stalled is the error of storing that has lasted for 20 s or more, nil if there is
// none.
func (p *Premises) Stalled() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil || time.Since(p.since) < stuck {
		return nil
	}
	return fmt.Errorf("nothing could be stored for %s: %w", time.Since(p.since).Round(time.Second), p.failed)
}

// StoreID is the id of the store, for announcements; an error while Storing has one.
func (p *Premises) StoreID() (string, error) {
	if err := p.Storing(); err != nil {
		return "", err
	}
	return p.ID(), nil
}

// ID is the id of the store that the log belongs to, "" while it belongs to none.
func (p *Premises) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound.ID
}

// Tables are tables of the store that refuse writes while Storing has an error: those
// of a directory go by its name.
func (p *Premises) Tables(all storage.TableStore) storage.TableStore { return ownTables{all, p} }

type ownTables struct {
	storage.TableStore
	premises *Premises
}

func (t ownTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if err := t.premises.Storing(); err != nil {
		return err
	}
	return t.TableStore.Upsert(ctx, table, partition, rows)
}

func (t ownTables) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if err := t.premises.Storing(); err != nil {
		return "", err
	}
	return t.TableStore.Swap(ctx, table, partition, row)
}
