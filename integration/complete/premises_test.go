package complete_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/internal/lease"
	"blobtail/internal/storeid"
	"blobtail/internal/storeid/premises"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
)

const (
	dir = "/var/wal"
	// leaseFile is the file of lease's notes.
	leaseFile = dir + "/lease"
)

// refusedStore is the error of a request that the premises refuse.
type refusedStore struct{ error }

// openPremises opens the premises of cmd/ingest on a disk of the simulation.
func openPremises(in *ingester, fsy fsys.FS, s *store, log *wal.Log) (*premises.Premises, error) {
	return premises.Open(context.Background(), premises.Options{
		FS: fsy, Dir: dir, Blobs: checked{s.blobs, in}, Spec: s.container, Remote: true,
		Unflushed: func(ctx context.Context) (int, error) { return buffer.Unflushed(ctx, log) },
		Leave: func(storeid.Binding) error {
			in.w.mu.Lock()
			in.id = ""
			in.w.mu.Unlock()
			_, err := lease.Discard(fsy, dir)
			return err
		},
	})
}

// checked are the blobs of a store as the premises of an ingester reach them. A check
// takes no time, and a store in bad weather is out of reach.
type checked struct {
	storage.BlobStore
	in *ingester
}

func (c checked) reach() error {
	if c.in.blobs.fate(c.in.w.fate("premises "+c.in.host)) != fair {
		return errAway
	}
	return nil
}

// Get implements [storage.BlobStore].
func (c checked) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := c.reach(); err != nil {
		return nil, err
	}
	return c.BlobStore.Get(ctx, key, off, n)
}

// Create implements [storage.BlobStore].
func (c checked) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	if err := c.reach(); err != nil {
		return err
	}
	return c.BlobStore.Create(ctx, key, body, attrs)
}

// noted returns the contents of lease's notes on the disk: the ingester's id, and
// the ingesters it knew to hold records when it last listed the rows.
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

// host presents an ingester's disk as a host does: directories have inodes.
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
