package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blobtail/internal/fsys"
)

const (
	ballastName = "ballast"
	ballastNote = 8 // length of what is left when it is given up

	// ballastStep is how much the ballast grows at once. A sync of the log may
	// have to wait for what the disk is given to write meanwhile.
	ballastStep = 8 << 20

	// ballastPause is how long to wait after a step that failed.
	ballastPause = time.Minute
)

// ballast is a file that takes up room on the disk, to be given up when the disk
// is full: what must be appended so that segments can go finds its place then.
type ballast struct {
	path string
	want int64
	// spent: it was given up, and there is not enough of it again. The room that
	// it left is for AppendReserved only.
	spent atomic.Bool

	mu     sync.Mutex
	size   int64
	given  int64     // how much was given up
	gone   time.Time // when, if this process did it
	after  time.Time // no step before
	closed bool
}

// AppendReserved is Append for what must find its place on a full disk, because
// it lets other records go: where Append fails with ENOSPC, the ballast is given
// up and the record is tried again.
//
// While the ballast is gone Append fails with ENOSPC, so that nothing else takes
// the room. [Log.Check] makes the ballast anew when the disk has room again.
func (l *Log) AppendReserved(typ byte, payload ...[]byte) (Pos, error) {
	return l.append(typ, payload, true)
}

var errSpent = fmt.Errorf("the disk was full, and what was reserved is used: %w", syscall.ENOSPC)

// reserved calls do, once more when the disk is full and there is ballast to give
// up.
func (l *Log) reserved(do func() error) error {
	err := do()
	if errors.Is(err, syscall.ENOSPC) && l.Err() == nil && l.giveUp() {
		err = do()
	}
	return err
}

// giveUp gives the ballast up; false when there is none. The file stays with its
// former length in it: that tells the next process whom the room is for.
func (l *Log) giveUp() bool {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 {
		return false
	}
	f, err := l.fs.OpenFile(b.path, os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		// In place, so that it takes no room. If it fails, random bytes stand for a
		// length beyond all measure.
		_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(b.size)), 0)
		err = f.Truncate(ballastNote)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Error().Err(err).Msg("the disk is full, and the ballast of the log cannot be given up")
		return false
	}
	l.log.Warn().Int64("bytes", b.size).Msg("the disk is full: the log gives its ballast up")
	b.given, b.size = b.size, 0
	b.gone = time.Now()
	b.spent.Store(true)
	// Some file systems free blocks only when it is durable that they are free.
	return f == nil || l.syncFile(f) == nil
}

// openBallast takes over what an earlier process left, whole or not, unless it is
// more than is wanted now. A file with no more than a length in it was given up,
// or power went before the rest of it was on the disk.
func (l *Log) openBallast() {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := l.fs.Stat(b.path)
	if err != nil {
		return
	}
	if b.size = info.Size(); b.size <= b.want && b.want > 0 {
		if b.size <= ballastNote {
			b.size, b.given = 0, l.readGiven()
			b.spent.Store(true)
		}
		return
	}
	b.size = 0
	if err := l.fs.Remove(b.path); err != nil {
		l.log.Warn().Err(err).Msg("the ballast of the log cannot be removed")
	}
}

// readGiven reads how much was given up; 0 when nobody knows.
func (l *Log) readGiven() int64 {
	f, err := l.fs.OpenFile(l.ballast.path, os.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	b := make([]byte, ballastNote)
	if n, _ := f.ReadAt(b, 0); n < len(b) {
		return 0
	}
	return int64(min(binary.LittleEndian.Uint64(b), uint64(l.ballast.want)))
}

// growBallast makes the ballast by steps, when there is room. It must never take
// the room that it is there to keep: so it leaves at least as much as it has, and
// where nobody knows how much there is, it goes back after a step that failed, and
// waits before it tries again, as it does after it was given up. What is written
// is not synced: ballast that a power cut takes is made again.
func (l *Log) growBallast() {
	b := &l.ballast
	if b.want == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.size = 0
	if info, err := l.fs.Stat(b.path); err == nil && info.Size() > ballastNote {
		b.size = info.Size()
	}
	// Slivers are not worth a write each second; the last one is.
	if step := l.ballastRoom(); step > 0 && step >= min(b.want/64, b.want-b.size) {
		if err := l.stepBallast(step); err != nil {
			b.after = time.Now().Add(ballastPause)
			l.log.Warn().Err(err).Int64("bytes", b.size).Int64("want", b.want).Msg("the ballast of the log cannot be made; it is tried again in a minute")
		}
	}
	if b.size >= b.want/16 && b.spent.CompareAndSwap(true, false) {
		l.log.Info().Int64("bytes", b.size).Msg("the disk has room again: the log takes records")
	}
}

// ballastRoom returns by how much the ballast can grow now. What was given up does
// not come back out of the room that it left.
func (l *Log) ballastRoom() int64 {
	b := &l.ballast
	step := min(ballastStep, b.want-b.size)
	free, err := int64(0), errors.ErrUnsupported
	if m, ok := l.fs.(fsys.Measurer); ok {
		free, err = m.Free(l.dir)
	}
	switch {
	case time.Now().Before(b.after):
		return 0
	case err != nil && b.spent.Load() && time.Since(b.gone) < ballastPause:
		return 0
	case err != nil:
		return step
	case b.spent.Load() && free < b.given+b.given/2:
		return 0
	}
	return min(step, (free-b.size)/2)
}

// stepBallast adds n bytes. They are random because zeros would take no room on a
// file system that compresses.
func (l *Log) stepBallast(n int64) (err error) {
	b := &l.ballast
	f, err := l.fs.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	noise := make([]byte, min(n, 1<<20))
	_, _ = rand.Read(noise)
	for end := b.size + n; b.size < end; {
		m := min(int64(len(noise)), end-b.size)
		if _, err := f.WriteAt(noise[:m], b.size); err != nil {
			return errors.Join(err, l.stepBack(f, end-n))
		}
		b.size += m
	}
	return nil
}

// stepBack cuts the ballast to size. Of one that never was nothing is left, for
// an empty file has a meaning; one that was given up stays empty.
func (l *Log) stepBack(f fsys.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	l.ballast.size = size
	if size == 0 && !l.ballast.spent.Load() {
		return l.fs.Remove(l.ballast.path)
	}
	return nil
}

func (l *Log) closeBallast() {
	l.ballast.mu.Lock()
	defer l.ballast.mu.Unlock()
	l.ballast.closed = true
}

func newBallast(dir string, o Options) ballast {
	want := o.Reserve
	if want == 0 {
		want = o.SegmentSize
	}
	return ballast{path: filepath.Join(dir, ballastName), want: max(want, 0)}
}
