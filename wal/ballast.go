package wal

import (
	"crypto/rand"
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

// giveUp removes the ballast; false when there is none.
func (l *Log) giveUp() bool {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size == 0 {
		return false
	}
	if err := l.fs.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Error().Err(err).Msg("the disk is full, and the ballast of the log cannot be removed")
		return false
	}
	l.log.Warn().Int64("bytes", b.size).Msg("the disk is full: the log gives its ballast up")
	b.size = 0
	b.spent.Store(true)
	// Some file systems free the blocks of a file when its removal is durable.
	return l.syncDir(l.dir) == nil
}

// openBallast takes over what an earlier process left, whole or not, unless it is
// more than is wanted now.
func (l *Log) openBallast() {
	b := &l.ballast
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := l.fs.Stat(b.path)
	if err != nil {
		return
	}
	if b.size = info.Size(); b.size <= b.want {
		return
	}
	b.size = 0
	if err := l.fs.Remove(b.path); err != nil {
		l.log.Warn().Err(err).Msg("the ballast of the log cannot be removed")
	}
}

// growBallast makes the ballast by steps, when there is room. It must never take
// the room that it is there to keep: so it leaves at least as much as it has, and
// where nobody knows how much there is, it goes back after a step that failed and
// waits. What is written is not synced: ballast that a power cut takes is made
// again.
func (l *Log) growBallast() {
	b := &l.ballast
	if b.want == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || time.Now().Before(b.after) {
		return
	}
	b.size = 0
	if info, err := l.fs.Stat(b.path); err == nil {
		b.size = info.Size()
	}
	step := min(ballastStep, b.want-b.size)
	if m, ok := l.fs.(fsys.Measurer); ok {
		if free, err := m.Free(l.dir); err == nil {
			step = min(step, (free-b.size)/2)
		}
	}
	// Slivers are not worth a write each second; the last one is.
	if step > 0 && step >= min(b.want/64, b.want-b.size) {
		if err := l.stepBallast(step); err != nil {
			b.after = time.Now().Add(ballastPause)
			l.log.Warn().Err(err).Int64("bytes", b.size).Int64("want", b.want).Msg("the ballast of the log cannot be made; it is tried again in a minute")
		}
	}
	if b.size >= b.want/16 && b.spent.CompareAndSwap(true, false) {
		l.log.Info().Int64("bytes", b.size).Msg("the disk has room again: the log takes records")
	}
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
			start := end - n
			terr := f.Truncate(start)
			if terr == nil {
				b.size = start
			}
			return errors.Join(err, terr)
		}
		b.size += m
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
