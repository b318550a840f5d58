package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blobtail/storage/fsys"
)

const (
	ballastName = "ballast"

	// ballastStep bounds the growth of the ballast per call of Check. A sync of the log
	// may have to wait until the disk has written these bytes.
	ballastStep = 8 << 20

	// ballastPause is the wait after a step that failed.
	ballastPause = time.Minute
)

// ballast is the file that keeps room for the records that allow segments to be deleted.
// Only its size is known: a start accepts the file of an earlier process unchanged. While
// the file is smaller than a sixteenth of want, only AppendReserved may use the free room.
type ballast struct {
	path  string
	spent atomic.Bool // the file is smaller than that

	mu    sync.Mutex
	want  int64 // 0: no ballast, or the log is closed
	size  int64
	given int64     // bytes that this process released last
	after time.Time // no step before this time
}

// AppendReserved is Append for a record that allows other records to be deleted. Such a
// record must find room on a full disk. So if Append fails with ENOSPC, the ballast is
// removed and the record is tried again.
//
// While there is no ballast, Append fails with ENOSPC, so that other records do not use
// up the room. [Log.Check] makes new ballast when the disk has room again.
func (l *Log) AppendReserved(typ byte, payload []byte) (Pos, error) {
	return l.append(typ, payload, true)
}

var errSpent = fmt.Errorf("the disk was full, and its last room is reserved for the log's own records: %w", syscall.ENOSPC)

// reserved calls do. If the disk is full and there was ballast to remove, it calls do
// again.
func (l *Log) reserved(do func() error) error {
	err := do()
	if fsys.IsFull(err) && l.Err() == nil && l.giveUp() {
		err = do()
	}
	return err
}

// giveUp removes the ballast; it returns false if there is none.
func (l *Log) giveUp() bool {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 {
		return false
	}
	if err := l.fs.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Error().Err(err).Msg("the disk is full, and the ballast of the log cannot be given up")
		return false
	}
	l.log.Warn().Int64("bytes", b.size).Msg("the disk is full: the log gives its ballast up")
	b.given, b.size = b.size, 0
	b.spent.Store(true)
	// Some file systems free blocks only when the removal is durable.
	return l.syncDir(l.dir) == nil
}

// openBallast adopts the file of an earlier process, complete or not, unless it is larger
// than wanted.
func (l *Log) openBallast() {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.measureBallast(); b.size > b.want {
		b.size = 0
		if err := l.fs.Remove(b.path); err != nil {
			l.log.Warn().Err(err).Msg("the ballast of the log cannot be removed")
		}
	}
	b.spent.Store(b.size < b.want/16)
}

func (l *Log) measureBallast() {
	l.ballast.size = 0
	if info, err := l.fs.Stat(l.ballast.path); err == nil {
		l.ballast.size = info.Size()
	}
}

// growBallast makes the ballast in steps while the disk has room. It does not sync the
// file: after a power cut the missing part is made again.
func (l *Log) growBallast() {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.want == 0 {
		return
	}
	l.measureBallast()
	// A tiny step is not worth a write each second, except for the last one.
	if step := l.ballastRoom(); step > 0 && step >= min(b.want/64, b.want-b.size) {
		if err := l.stepBallast(step); err != nil {
			b.after = time.Now().Add(ballastPause)
			l.log.Warn().Err(err).Int64("bytes", b.size).Int64("want", b.want).Msg("the ballast of the log cannot be made; it is tried again in a minute")
		}
	}
	if b.size >= b.want/16 && b.spent.CompareAndSwap(true, false) && b.given > 0 {
		l.log.Info().Int64("bytes", b.size).Msg("the disk has room again: the log takes records")
	}
}

// ballastRoom returns the length of the next step. After the step at least as much room
// is free as the ballast has. After a release the ballast returns only when the disk has
// half as much room again: so it is not made from the room that it released.
func (l *Log) ballastRoom() int64 {
	b := &l.ballast
	if time.Now().Before(b.after) {
		return 0
	}
	free := int64(math.MaxInt64) // for a file system that does not know its free room
	if m, ok := l.fs.(fsys.Measurer); ok {
		if n, err := m.Free(l.dir); err == nil {
			free = n
		}
	}
	if b.spent.Load() && free < b.given+b.given/2 {
		return 0
	}
	return min(ballastStep, b.want-b.size, (free-b.size)/2)
}

// stepBallast adds n bytes, or none. They are random because a file system that
// compresses would give zeros no room.
func (l *Log) stepBallast(n int64) (err error) {
	b := &l.ballast
	f, err := l.fs.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	noise := make([]byte, min(n, 1<<20))
	_, _ = rand.Read(noise)
	for off := b.size; off < b.size+n; off += int64(len(noise)) {
		if _, err := f.WriteAt(noise[:min(int64(len(noise)), b.size+n-off)], off); err != nil {
			return errors.Join(err, f.Truncate(b.size))
		}
	}
	b.size += n
	return nil
}
