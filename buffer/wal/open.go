package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"blobtail/storage/fsys"
)

// Open opens the log in dir, making it if needed, and begins a new segment. It reads the
// headers of old segments and all of the last one. So its duration does not depend on the
// length of the log.
//
// It fails with a [*LockedError] if a process has the log open. It fails with another
// error if a segment is of a newer version or cannot be opened. Damage does not keep a
// log from opening.
func Open(dir string, o Options) (*Log, error) {
	l := newLog(dir, o)
	if err := l.open(); err != nil {
		l.files.close()
		if l.home != nil {
			err = errors.Join(err, l.home.Close())
		}
		if l.lock != nil {
			err = errors.Join(err, l.lock.Close())
		}
		if _, locked := errors.AsType[*LockedError](err); locked || l.Err() != nil {
			return nil, err // the error is complete
		}
		return nil, fmt.Errorf("wal: open %s: %w", dir, err)
	}
	return l, nil
}

func newLog(dir string, o Options) *Log {
	if o.FS == nil {
		o.FS = fsys.OS()
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = defaultSegmentSize
	}
	o.SegmentSize = min(o.SegmentSize, maxSegmentSize)
	l := &Log{
		dir:         dir,
		fs:          o.FS,
		log:         o.Log,
		segmentSize: o.SegmentSize,
		files:       &files{fs: o.FS, dir: dir, open: map[uint32]*file{}},
		ballast:     ballast{path: filepath.Join(dir, ballastName), want: max(cmp.Or(o.Reserve, o.SegmentSize), 0)},
		failed:      make(chan struct{}),
	}
	l.held.bytes = make([]byte, 0, short)
	l.commit.done.L = &l.commit.mu
	l.commit.complete = make(chan struct{}, 1)
	return l
}

func (l *Log) open() error {
	if err := fsys.MakeDir(l.fs, l.dir); err != nil {
		return err
	}
	var err error
	if l.home, err = openHome(l.fs, l.dir); err != nil {
		return err
	}
	if l.lock, err = lockDir(l.fs, l.dir); err != nil {
		return err
	}
	numbers, greatest, err := l.list()
	if err != nil {
		return err
	}
	l.openBallast()
	l.openNewest()
	if l.segs, err = l.readSegments(numbers); err != nil {
		return err
	}
	empty, err := l.repairLast()
	if err != nil {
		return err
	}
	if n := len(l.segs); n > 0 {
		l.foundEnd = makePos(l.segs[n-1].Number, align(l.segs[n-1].Size))
	}
	if err := l.start(max(greatest, l.newest.noted), empty); err != nil {
		return err
	}
	if l.ballast.spent.Load() {
		l.growBallast()
	}
	return l.Err()
}

// start begins the new segment and then removes an empty one before it, so a process that
// restarts often does not accumulate files. The removal comes second: the number of the
// newest file must never be lost.
func (l *Log) start(greatest uint32, empty bool) error {
	kept := l.segs
	if empty {
		kept = kept[:len(kept)-1]
	}
	if last := lastOf(l.segs); l.newest.noted > last {
		l.lacking = hole{last + 1, l.newest.noted}
	}
	for _, s := range kept {
		l.sealed += s.Size
	}
	l.found = kept
	old := l.segs
	l.segs = slices.Clone(kept)
	l.w.next = greatest + 1 // 0 if the numbers are used up
	if err := l.reserved(func() error { return l.begin(lastOf(kept), l.lacking.last) }); err != nil {
		return err
	}
	if !empty {
		return nil
	}
	if err := l.unlink(old[len(old)-1].Number); err != nil {
		return err
	}
	return l.syncDir(l.dir)
}

// lastOf returns the number of the last segment, or 0.
func lastOf(segs []*segment) uint32 {
	if len(segs) == 0 {
		return 0
	}
	return segs[len(segs)-1].Number
}

// unlink removes a segment's file; its absence is not durable yet.
func (l *Log) unlink(n uint32) error {
	err := l.fs.Remove(l.files.path(n, segmentSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.files.remove(n)
	return nil
}

// readSegments reads the headers. It notes segments that name a missing predecessor, and
// those made when a predecessor was missing. Any number of segments may be missing at the
// front: they were removed.
func (l *Log) readSegments(numbers []uint32) ([]*segment, error) {
	segs := make([]*segment, 0, len(numbers))
	for _, n := range numbers {
		s, err := l.readSegment(n)
		if err != nil {
			return nil, err
		}
		_, there := slices.BinarySearch(numbers, s.prev)
		_, back := slices.BinarySearch(numbers, s.lost)
		switch {
		case s.lost != 0 && !back:
			s.lacking = hole{s.prev + 1, s.lost}
		case s.prev > numbers[0] && !there:
			s.lacking = hole{segs[len(segs)-1].Number + 1, s.prev}
		}
		segs = append(segs, s)
	}
	return segs, nil
}

func (l *Log) readSegment(n uint32) (*segment, error) {
	path := l.files.path(n, segmentSuffix)
	f, err := l.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(info.Size(), headerSize))
	(&pageReader{r: f}).readAt(b, 0)
	s, err := decodeHeader(b)
	if errors.Is(err, errNoHeader) || (err == nil && s.Number != n) {
		return &segment{Segment: Segment{Number: n, Size: info.Size()}, badCopy: -1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.Size = info.Size()
	return s, nil
}

// replace makes the first n bytes of f the segment's file, durably.
func (l *Log) replace(f fsys.File, number uint32, n int64) error {
	temp := l.files.path(number, tempSuffix)
	if err := l.writeFile(temp, f, 0, n); err != nil {
		return err
	}
	return l.rename(temp, l.files.path(number, segmentSuffix))
}

// rename gives a file of the directory another name, durably.
func (l *Log) rename(from, to string) error {
	if err := l.fs.Rename(from, to); err != nil {
		return err
	}
	return l.syncDir(l.dir)
}

// writeFile makes path a durable copy of n bytes of f; its name is not durable.
func (l *Log) writeFile(path string, f fsys.File, off, n int64) error {
	return l.reserved(func() error { return l.copyTo(path, f, off, n) })
}

func (l *Log) copyTo(path string, f io.ReaderAt, off, n int64) (err error) {
	out, err := l.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			// On a full disk the partial file would occupy room.
			err = errors.Join(err, l.fs.Remove(path))
		}
	}()
	src := &pageReader{r: f}
	buf := make([]byte, min(n, scanWindow))
	for at := int64(0); at < n; {
		b := buf[:min(n-at, scanWindow)]
		src.readAt(b, off+at)
		if _, err := out.WriteAt(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return l.syncFile(out)
}

// Quarantine keeps segment n for the operator, if a record in it will not be handled any
// more. The segment gets another name in the directory "quarantine", which outlives the
// segment. A segment with such a name already is left alone.
func (l *Log) Quarantine(n uint32) error {
	err := l.reserved(func() error { return l.keep(n) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("wal: keep segment %d in quarantine: %w", n, err)
	}
	return nil
}

// quarantine keeps a damaged segment. A failure is logged, and has no other effect.
func (l *Log) quarantine(n uint32) {
	if err := l.keep(n); !errors.Is(err, fs.ErrExist) {
		l.log.Error().Err(err).Uint32("segment", n).Str("quarantine", l.kept(n)).Msg("a segment of the log is damaged; it is kept in quarantine")
	}
}

func (l *Log) kept(n uint32) string {
	return filepath.Join(l.dir, "quarantine", fileName(n, segmentSuffix))
}

// keep gives a segment a second name, which outlives the first. It returns fs.ErrExist if
// the segment has one.
func (l *Log) keep(n uint32) error {
	to := l.kept(n)
	if err := l.fs.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := l.fs.Link(l.files.path(n, segmentSuffix), to); err != nil {
		return err
	}
	return errors.Join(l.syncDir(filepath.Dir(to)), l.syncDir(l.dir))
}
