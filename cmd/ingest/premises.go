package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/config"
	"blobtail/heartbeat"
	"blobtail/internal/fsys"
	"blobtail/internal/openstore"
	"blobtail/storage"
	"blobtail/storeid"
	"blobtail/wal"
)

// premises makes sure that the log and the store belong together, and that neither
// is replaced by another while the ingester runs. Nothing is stored or announced
// while that is not known, and nothing is taken once it is known to be otherwise.
type premises struct {
	blobs storage.BlobStore
	spec  openstore.Spec // of the store
	dir   string         // of the log
	log   zerolog.Logger

	mu    sync.Mutex
	bound storeid.Binding // zero: the log belongs to no store yet
	sure  bool            // the store was seen to be the one that the log belongs to
	err   error           // why it is not, or cannot be told
	said  string

	failed error // of the last attempt to store a batch; nil: it succeeded, or there was none
	since  time.Time
}

const (
	// lookEvery is the pause between two looks at a directory, and at a remote store
	// that was not reached yet; farLookEvery that at one that was.
	lookEvery    = time.Second
	farLookEvery = time.Minute
	// lookWait bounds one look.
	lookWait = 3 * time.Second
	// firstLookWait is what a store that is down may cost a start.
	firstLookWait = time.Second
)

// errUnseen says that the store was not reached since the start.
var errUnseen = errors.New("the store was not reached yet")

// openPremises reads which store the log belongs to, and looks at the store. An
// error is for the end of the start: the log must not be used with this store.
func openPremises(ctx context.Context, c config.Config, blobs storage.BlobStore, journal *wal.Log, log zerolog.Logger) (*premises, error) {
	p := &premises{blobs: blobs, spec: c.Store, dir: c.WALDir(), log: part(log, "premises"), err: errUnseen}
	var err error
	if p.bound, err = storeid.LoadBinding(fsys.OS(), p.dir); err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, firstLookWait)
	err = p.look(looking)
	cancel()
	var foreign *otherStoreError
	if !errors.As(err, &foreign) {
		var lost *lostStoreError
		if errors.As(err, &lost) {
			return nil, err
		}
		return p, nil
	}
	// Another store. With nothing left to store the log may go over to it.
	left, uerr := buffer.Unflushed(ctx, journal)
	if uerr != nil {
		return nil, errors.Join(err, uerr)
	}
	if left > 0 {
		return nil, fmt.Errorf("%w; %d records in the log are in no blob yet: start with the store that they belong to, or use another --wal", err, left)
	}
	me, _ := heartbeat.LoadIdentity(p.dir) // a fresh one where it cannot be read, which is of no use to anyone
	p.log.Warn().Str("was", p.bound.Spec).Str("id", p.bound.ID).Stringer("store", p.spec).
		Msg("the log is empty and goes over to another store, under a new id; if reads of the old store name ingester " + me.ID + ", run ingest forget " + me.ID + " there")
	if err := errors.Join(heartbeat.Discard(p.dir), p.bind(foreign.id)); err != nil {
		return nil, err
	}
	return p, nil
}

// otherStoreError says that the log belongs to another store than this.
type otherStoreError struct {
	bound    storeid.Binding
	dir      string
	spec, id string
}

func (e *otherStoreError) Error() string {
	return fmt.Sprintf("the log %s belongs to the store %s (id %s), and %s is another one (id %s)", e.dir, e.bound.Spec, e.bound.ID, e.spec, e.id)
}

// lostStoreError says that there is a place for the store, and no store in it.
type lostStoreError struct {
	bound     storeid.Binding
	dir, spec string
}

func (e *lostStoreError) Error() string {
	return fmt.Sprintf("the log %s belongs to the store %s (id %s), and %s has no object %s: is its disk mounted, was it removed? "+
		"If this is that store, put the object back with the content {\"format\":1,\"id\":%q}; to begin a new store with this log, remove %s/%s",
		e.dir, e.bound.Spec, e.bound.ID, e.spec, storeid.Key, e.bound.ID, strings.TrimRight(e.dir, "/"), storeid.BindingFile)
}

// look compares the store with the one that the log belongs to. A log that belongs
// to none yet is bound to it.
func (p *premises) look(ctx context.Context) error {
	err := p.compare(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	if err == nil {
		p.sure = true
	}
	p.tell()
	return err
}

func (p *premises) compare(ctx context.Context) error {
	if place, ok := p.blobs.(interface{ Check() error }); ok {
		if err := place.Check(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	bound := p.bound
	p.mu.Unlock()
	id, err := storeid.Read(ctx, p.blobs)
	if err == nil && id == "" && bound.ID == "" {
		id, err = storeid.Ensure(ctx, p.blobs)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read which store this is: %w", err)
	case id == "":
		return &lostStoreError{bound, p.dir, p.spec.String()}
	case bound.ID == "":
		return p.bind(id)
	case id != bound.ID:
		return &otherStoreError{bound, p.dir, p.spec.String(), id}
	case bound.Spec != p.spec.String():
		return p.bind(id) // the same store under another name
	}
	return nil
}

// bind has the log belong to a store.
func (p *premises) bind(id string) error {
	b := storeid.Binding{ID: id, Spec: p.spec.String()}
	if err := b.Save(fsys.OS(), p.dir); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound, p.sure, p.err = b, true, nil
	return nil
}

// tell says once in our own log what is wrong, and that it is over. p.mu is held.
func (p *premises) tell() {
	text := ""
	if p.err != nil {
		text = p.err.Error()
	}
	if text == p.said {
		return
	}
	p.said = text
	switch {
	case text == "":
		p.log.Info().Stringer("store", p.spec).Str("id", p.bound.ID).Msg("the store is the one that the log belongs to")
	case p.definite(), p.renamed():
		p.log.Error().Err(p.err).Msg("nothing is taken or stored")
	default:
		p.log.Warn().Err(p.err).Msg("nothing is stored until the store is reached")
	}
}

// definite tells whether the store is known to be another one, or replaced, and not
// only out of reach. p.mu is held.
func (p *premises) definite() bool { return p.err != nil && (p.sure || p.foreign()) && !p.away() }

// away tells whether the store may only be out of reach for a while: a remote one,
// or a directory that is not there at all. p.mu is held.
func (p *premises) away() bool {
	return !p.foreign() && (p.spec.Remote() || errors.Is(p.err, storage.ErrNotExist))
}

// foreign tells whether the store is not the one that the log belongs to. p.mu is
// held.
func (p *premises) foreign() bool {
	return errors.As(p.err, new(*otherStoreError)) || errors.As(p.err, new(*lostStoreError))
}

// run looks again and again until ctx ends.
func (p *premises) run(ctx context.Context) {
	for {
		pause := lookEvery
		p.mu.Lock()
		if p.spec.Remote() && p.sure && p.err == nil {
			pause = farLookEvery
		}
		p.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		looking, cancel := context.WithTimeout(ctx, lookWait)
		_ = p.look(looking) // it is kept, and told
		cancel()
	}
}

// ready says why nothing may be taken.
func (p *premises) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.definite() {
		return p.err
	}
	if p.renamed() {
		return fmt.Errorf("the log %s belongs to the store %s, and whether %s is that store is not known until it is reached: %w", p.dir, p.bound.Spec, p.spec, p.err)
	}
	return nil
}

// renamed tells whether the store has another name than the one that the log belongs
// to, and was not reached since the start: a mistake in the name would have records
// taken that readers of the first store do not know of. p.mu is held.
func (p *premises) renamed() bool {
	return !p.sure && p.err != nil && p.bound.ID != "" && p.bound.Spec != p.spec.String()
}

// storing says why nothing may be stored. On a directory it looks first: nothing must
// go to a place that was replaced.
func (p *premises) storing() error {
	if place, ok := p.blobs.(interface{ Check() error }); ok {
		if err := place.Check(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sure && p.away() && p.spec.Remote() {
		return nil // what is put there fails, or gets there
	}
	return p.err
}

// stored notes how an attempt to store a batch went.
func (p *premises) stored(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.failed == nil {
		p.since = time.Now()
	}
	p.failed = err
}

// stuck is for how long nothing may have been stored before that is a reason not to
// be ready.
const stuck = 20 * time.Second

// stalled says why nothing could be stored for a while.
func (p *premises) stalled() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil || time.Since(p.since) < stuck {
		return nil
	}
	return fmt.Errorf("nothing could be stored for %s: %w", time.Since(p.since).Round(time.Second), p.failed)
}

// storeID is the id of the store for announcements, where it is sure.
func (p *premises) storeID() (string, error) {
	if err := p.storing(); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound.ID, nil
}

// id is that of the store that the log belongs to, "" while it belongs to none.
func (p *premises) id() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound.ID
}

// ownTables are tables that are written only while they are those of the store which
// the log belongs to: those of a directory go by its name.
type ownTables struct {
	storage.TableStore
	premises *premises
}

// Upsert implements [storage.TableStore].
func (t ownTables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if err := t.premises.storing(); err != nil {
		return err
	}
	return t.TableStore.Upsert(ctx, table, partition, rows)
}

// Swap implements [storage.TableStore].
func (t ownTables) Swap(ctx context.Context, table, partition string, row storage.Row) (string, error) {
	if err := t.premises.storing(); err != nil {
		return "", err
	}
	return t.TableStore.Swap(ctx, table, partition, row)
}
