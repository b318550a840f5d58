package complete_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"blobtail/buffer"
	"blobtail/heartbeat"
	"blobtail/internal/fsys"
	"blobtail/internal/fsys/simdisk"
	"blobtail/storeid"
	"blobtail/wal"
)

const (
	dir = "/var/wal"
	// leaseFile is the file of heartbeat's notes.
	leaseFile = dir + "/lease"
)

// premises is what the type of this name in cmd/ingest sees to for a remote store:
// a log belongs to one store, and nothing is announced or stored before the store
// was seen to be that one.
type premises struct {
	in    *ingester
	fs    fsys.FS
	store *store

	mu    sync.Mutex
	bound string // id of the store; "": none yet
	err   error  // why the store is not the one, or not known to be
	other bool   // it is known to be another one
}

var (
	errUnseen = errors.New("the store was not reached yet")
	errOther  = errors.New("the log belongs to another store")
	errHolds  = errors.New("the log belongs to another store, and has records that are in no blob")
)

// openPremises reads which store the log belongs to, and compares. The error is for
// the end of the start.
func openPremises(in *ingester, fsy fsys.FS, s *store, log *wal.Log) (*premises, error) {
	p := &premises{in: in, fs: fsy, store: s, err: errUnseen}
	binding, err := storeid.LoadBinding(fsy, dir)
	if err != nil {
		return nil, err
	}
	p.bound = binding.ID
	if p.look(); !p.other {
		return p, nil
	}
	left, err := buffer.Unflushed(context.Background(), log)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		return nil, errHolds
	}
	return p, p.goOver()
}

// goOver has a log that is empty belong to another store. What it was known by in
// the first one is void here.
func (p *premises) goOver() error {
	if err := p.fs.Remove(leaseFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.fs.SyncDir(dir); err != nil {
		return err
	}
	p.in.keep(heartbeat.Identity{})
	return p.bind()
}

func (p *premises) bind() error {
	if err := (storeid.Binding{ID: p.store.id, Spec: p.store.container}).Save(p.fs, dir); err != nil {
		return err
	}
	p.store.made.Store(true)
	p.bound, p.err, p.other = p.store.id, nil, false
	return nil
}

// look compares the store with the one that the log belongs to. It takes no time,
// and a store in bad weather is not reached.
func (p *premises) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	reached := p.in.blobs.fate(p.in.w.fate("premises "+p.in.host)) == fair
	switch {
	case !reached || p.err == nil:
	case p.bound == "":
		p.err = p.bind()
	case p.bound == p.store.id:
		p.err = nil
	default:
		p.err, p.other = errOther, true
	}
}

// run looks until the store is known.
func (p *premises) run(ctx context.Context) {
	for {
		p.mu.Lock()
		known := p.err == nil || p.other
		p.mu.Unlock()
		if known || !pause(ctx, time.Second) {
			return
		}
		p.look()
	}
}

// taking says why nothing may be taken, storing why nothing may be stored or
// announced. Records are taken for the store that the log belongs to, also while it
// is away; a start with another name must see first that this is the same store.
func (p *premises) taking() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.other || p.err != nil && p.bound != p.store.id {
		return p.err
	}
	return nil
}

func (p *premises) storing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *premises) storeID() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound, p.err
}

func (p *premises) id() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound
}

// noted is what the notes of heartbeat on the disk say: the id of the ingester, and
// whom it knew to hold records when it listed the rows last.
func (in *ingester) noted() (id string, others []string) {
	var notes struct {
		ID     string
		Others []string
	}
	text, err := fsys.ReadFile(in.disk, leaseFile)
	if err == nil {
		err = json.Unmarshal(text, &notes)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		in.w.trouble("read the notes of %s: %v", in.host, err)
	}
	return notes.ID, notes.Others
}

// host is the disk of an ingester as a host shows it: directories have inodes.
type host struct {
	*simdisk.Disk
	inode uint64
}

// Stat implements [fsys.FS].
func (h host) Stat(name string) (fs.FileInfo, error) {
	info, err := h.Disk.Stat(name)
	if err != nil {
		return nil, err
	}
	return withInode{info, h.inode}, nil
}

// SameFile implements [fsys.FS].
func (h host) SameFile(a, b fs.FileInfo) bool {
	plain := func(i fs.FileInfo) fs.FileInfo {
		if with, ok := i.(withInode); ok {
			return with.FileInfo
		}
		return i
	}
	return h.Disk.SameFile(plain(a), plain(b))
}

type withInode struct {
	os.FileInfo
	inode uint64
}

func (i withInode) Sys() any { return &syscall.Stat_t{Ino: i.inode} }
