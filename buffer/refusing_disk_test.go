package buffer_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/storage/fsys"
)

// refusingDisk is a disk with plenty of room, which refuses some writes and syncs.
type refusingDisk struct {
	fsys.FS
	mu           sync.Mutex
	write, fsync func(bytes int) error // nil: none is refused
}

func (d *refusingDisk) Free(string) (int64, error) { return 1 << 40, nil }

// refuse sets what is refused.
func (d *refusingDisk) refuse(write, fsync func(bytes int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write, d.fsync = write, fsync
}

func (d *refusingDisk) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	return refusingFile{f, d}, err
}

type refusingFile struct {
	fsys.File
	d *refusingDisk
}

func (f refusingFile) asks(which *func(int) error, bytes int) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if *which == nil {
		return nil
	}
	return (*which)(bytes)
}

func (f refusingFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.asks(&f.d.write, len(p)); err != nil {
		return 0, &fs.PathError{Op: "write", Path: "x", Err: err}
	}
	return f.File.WriteAt(p, off)
}

func (f refusingFile) Sync() error {
	if err := f.asks(&f.d.fsync, 0); err != nil {
		return &fs.PathError{Op: "sync", Path: "x", Err: err}
	}
	return f.File.Sync()
}

// large is a request that the log writes at once, as bodies of 1,000 records are.
func large(n byte, service string) *record.Request {
	return request(n, line{service, at(1), strings.Repeat("x", 100<<10)})
}

// A full quota is a full disk, though the disk says that it has room: requests are refused as that
// one's, all records are flushed, and requests are taken once there is room.
func TestFullQuota(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk, sink := &refusingDisk{FS: fsys.OS()}, &memSink{}
		p := startOn(t, disk, dir, sink, buffer.Options{MaxAge: time.Hour}, true)
		defer p.stop()
		p.accept(large(1, "web"))
		p.accept(request(2, line{"db", at(1), "x"}))
		disk.refuse(func(bytes int) error {
			if bytes > 50<<10 {
				return syscall.EDQUOT
			}
			return nil
		}, nil)
		if _, err := p.buf.Accept(t.Context(), large(3, "web")); !errors.Is(err, record.ErrFull) || !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("accept over the quota: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(sink.lines("web")) != 1 || len(sink.lines("db")) != 1 {
			t.Errorf("stored: %d batches", len(sink.all()))
		}
		if size := p.log.Size(); size > 300 {
			t.Errorf("the log still has %d bytes", size)
		}
		disk.refuse(nil, nil)
		p.accept(large(3, "web"))
		p.accept(request(4, line{"db", at(1), "y"}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(sink.all()); n != 2 {
			t.Errorf("%d batches are stored: there is room, and nothing was due", n)
		}
	})
}

// A disk that fails one write refuses one request: the sender may send it again, and the log goes
// on. A disk that fails a sync ends the log.
func TestDiskFails(t *testing.T) {
	fails := func(int) error { return syscall.EIO }
	t.Run("write", func(t *testing.T) {
		disk, sink := &refusingDisk{FS: fsys.OS()}, &memSink{}
		p := startOn(t, disk, t.TempDir(), sink, buffer.Options{}, true)
		disk.refuse(fails, nil)
		if _, err := p.buf.Accept(t.Context(), large(1, "web")); !errors.Is(err, record.ErrUnheld) || !errors.Is(err, syscall.EIO) {
			t.Errorf("accept on a disk that fails to write: %v", err)
		}
		disk.refuse(nil, nil)
		p.accept(large(1, "web"))
		p.flush()
		if n := len(sink.lines("web")); n != 1 {
			t.Errorf("%d lines are stored", n)
		}
	})
	t.Run("sync", func(t *testing.T) {
		disk := &refusingDisk{FS: fsys.OS()}
		log, err := wal.Open(t.TempDir(), wal.Options{FS: disk, Reserve: -1})
		if err != nil {
			t.Fatal(err)
		}
		buf := buffer.New(log, &memSink{}, buffer.Options{})
		done := make(chan error, 1)
		go func() { done <- buf.Run(context.Background()) }()
		receipt, err := buf.Accept(t.Context(), large(1, "web"))
		if err != nil {
			t.Fatal(err)
		}
		disk.refuse(nil, fails)
		if err := receipt.Wait(t.Context(), false); !errors.Is(err, wal.ErrFailed) {
			t.Errorf("wait: %v", err)
		}
		disk.refuse(nil, nil)
		if _, err := buf.Accept(t.Context(), large(2, "web")); !errors.Is(err, wal.ErrFailed) ||
			errors.Is(err, record.ErrFull) || errors.Is(err, record.ErrUnheld) {
			t.Errorf("accept after a failed sync: %v", err)
		}
		if err := <-done; !errors.Is(err, wal.ErrFailed) {
			t.Errorf("Run: %v", err)
		}
		_ = log.Close()
	})
}
