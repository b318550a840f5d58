package wal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage/fsys"
)

// Pos is the place of a payload byte in the log: the number of the segment and the offset
// in its file. Positions are in the order of the log. None is ever used twice, and zero
// is never a position.
type Pos uint64

func makePos(n uint32, off int64) Pos { return Pos(n)<<32 | Pos(off) }

// Segment returns the number of the segment.
func (p Pos) Segment() uint32 { return uint32(p >> 32) }

// Offset returns the offset in the segment's file.
func (p Pos) Offset() uint32 { return uint32(p) }

// MaxPayload is the length of the longest payload that Append accepts.
const MaxPayload = 1 << 30

const (
	defaultSegmentSize = 64 << 20
	maxSegmentSize     = 1 << 31 // with one record of MaxPayload on top, offsets still fit 32 bits
	openFiles          = 64      // segments that are kept open for reading
)

// Options are the settings of a log; the zero value works.
type Options struct {
	// SegmentSize is the size at which a segment is rolled; 0 means 64 MiB, and 2 GiB is
	// the most. A segment accepts at least one record, of any length.
	SegmentSize int64
	// Reserve is the size of the ballast in bytes; 0 means SegmentSize, and less means
	// none. [Log.AppendReserved] and the next Open remove the ballast when the disk is
	// full. Open and [Log.Check] make it. Size does not count it.
	Reserve int64
	// FS is the file system of the log; nil means the host's.
	FS fsys.FS
	// Log receives messages about torn tails, a full disk and quarantined segments. The
	// zero value is silent.
	Log zerolog.Logger
}

// Callers distinguish these errors.
var (
	// ErrFailed is in every error after a failed fsync, or after the log's directory was
	// removed or replaced. Records that were not synced by then may be lost. The process
	// must end and open the log again.
	ErrFailed = errors.New("the log has failed for good")
	// ErrClosed is returned after Close was called.
	ErrClosed = errors.New("the log is closed")
	// ErrActive is returned by RemoveFront when only the active segment is left.
	ErrActive = errors.New("the active segment cannot be removed")
)

// Segment describes one file of the log.
type Segment struct {
	Number  uint32
	Created time.Time
	Random  [16]byte // drawn when the segment was made; zero if the header is unreadable
	Size    int64    // bytes on disk
}

// Log is an open log. All methods may be called concurrently from any goroutine.
//
// Its locks are taken in this order: removing, appending, held.mu, newest.mu, ballast.mu,
// fsync, mu; commit.mu is never held while another is taken. No slow call happens under mu. A
// deferred call releases a lock around code that may panic.
type Log struct {
	dir         string
	fs          fsys.FS
	log         zerolog.Logger
	segmentSize int64
	lock        fsys.File
	home        *file
	files       *files
	found       []*segment // segments that Open found: Replay reads these
	foundEnd    Pos
	lacking     hole // missing segments behind them

	appending sync.Mutex // guards w and everything that extends the log
	w         writer
	fsync     sync.Mutex // one fsync at a time: see syncFile
	removing  sync.Mutex // one RemoveFront at a time
	held      held

	mu      sync.Mutex
	segs    []*segment // ascending; the last is the active one
	sealed  int64      // bytes in all segments but the active one
	end     Pos        // end of the last complete record
	written Pos        // everything before it is in its file
	active  *file      // nil once closed; changes only with appending held too

	commit  commit
	ballast ballast
	newest  newest

	failed  chan struct{} // closed by fail
	failure atomic.Pointer[error]
}

// segment is one file of the log. Only the active segment's Size changes, and Log.end
// holds that until the segment is full.
type segment struct {
	Segment
	readable bool  // its header is readable
	badCopy  int64 // offset of the header copy with a wrong checksum, or -1
	lacking  hole  // missing segments before it
	prev     uint32
	lost     uint32 // number of the newest missing segment at its creation, or 0
}

// Segment describes segment n; it returns false if the log has no such segment.
func (l *Log) Segment(n uint32) (Segment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, ok := slices.BinarySearchFunc(l.segs, n, func(s *segment, n uint32) int { return cmp.Compare(s.Number, n) })
	if !ok {
		return Segment{}, false
	}
	info := l.segs[i].Segment
	if i == len(l.segs)-1 {
		info.Size = int64(l.end.Offset())
	}
	return info, true
}

// Front returns the number of the oldest segment.
func (l *Log) Front() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segs[0].Number
}

// Active returns the number of the segment that receives appends.
func (l *Log) Active() uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end.Segment()
}

// Found returns the end of the log at Open, zero for an empty log. A record that the
// caller knows to be durable lies before it, or the log lost it.
func (l *Log) Found() Pos { return l.foundEnd }

// Durable returns the position before which the log is durable. It is cheap.
func (l *Log) Durable() Pos {
	l.commit.mu.Lock()
	defer l.commit.mu.Unlock()
	return l.commit.durable
}

// Size returns the bytes on disk of all segments. It does not count quarantine and
// ballast.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sealed + int64(l.end.Offset())
}

// Failed is closed when the log has failed for good; Err then returns the reason.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err returns the error that the log failed with, or nil while it works.
func (l *Log) Err() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the log with err. The first error counts.
func (l *Log) fail(err error) error {
	err = fmt.Errorf("wal: %w: %w", ErrFailed, err)
	if l.failure.CompareAndSwap(nil, &err) {
		close(l.failed)
	}
	return l.Err()
}

// syncFile makes a file durable, or fails the log. Only one call runs at a time, and its
// failure is recorded before the next begins. The kernel reports a failed write to only
// one of two fsyncs of a descriptor, and the other must not read its nil as durability.
func (l *Log) syncFile(f fsys.File) error {
	return l.flush(f.Sync)
}

func (l *Log) syncDir(dir string) error {
	return l.flush(func() error { return l.fs.SyncDir(dir) })
}

func (l *Log) flush(sync func() error) error {
	l.fsync.Lock()
	defer l.fsync.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if err := sync(); err != nil {
		return l.fail(err)
	}
	return nil
}

// RemoveFront deletes the oldest segment and returns when the deletion is durable. So a
// power cut always leaves the files from some segment on. A read in progress still
// completes; later ones get fs.ErrNotExist.
func (l *Log) RemoveFront() error {
	l.removing.Lock()
	defer l.removing.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	front, last, closed := l.segs[0], len(l.segs) == 1, l.active == nil
	l.mu.Unlock()
	if closed {
		return fmt.Errorf("wal: remove the oldest segment: %w", ErrClosed)
	}
	if last {
		return fmt.Errorf("wal: remove segment %d: %w", front.Number, ErrActive)
	}
	if err := l.unlink(front.Number); err != nil {
		return fmt.Errorf("wal: remove segment %d: %w", front.Number, err)
	}
	l.mu.Lock()
	l.segs = l.segs[1:]
	l.sealed -= front.Size
	l.mu.Unlock()
	return l.syncDir(l.dir)
}

// Close makes all records durable and releases the directory. A second
// call does nothing.
func (l *Log) Close() error {
	l.removing.Lock()
	defer l.removing.Unlock()
	l.appending.Lock()
	defer l.appending.Unlock()
	if l.active == nil {
		return nil
	}
	l.ballast.mu.Lock()
	l.ballast.want = 0 // no growth while another process may have the lock
	l.ballast.mu.Unlock()
	err := l.syncAll()
	l.mu.Lock()
	active := l.active
	l.active = nil
	l.mu.Unlock()
	l.files.close()
	return errors.Join(err, l.files.release(active), l.home.Close(), l.lock.Close())
}
