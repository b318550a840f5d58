package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"blobtail/storage/fsys"
)

// writer is the end of the log.
type writer struct {
	file   *file
	number uint32
	next   uint32 // number of the next segment: it only grows, even if making a segment fails
	off    int64  // offset of the next record
	seal   *seal
}

// Append writes a record at the end of the log and returns the position of its payload.
// The record is durable only after Sync. typ must not be 0; Replay yields the record with
// the same type.
//
// After an error nothing was appended. A full disk (ENOSPC) leaves the log unchanged, and
// later calls may succeed. An error with [ErrFailed] is final.
//
// A short record may be in memory only until Sync, Check or ReadAt.
func (l *Log) Append(typ byte, payload []byte) (Pos, error) {
	return l.append(typ, payload, false)
}

func (l *Log) append(typ byte, payload []byte, reserved bool) (pos Pos, err error) {
	if typ == 0 || len(payload) > MaxPayload {
		return 0, fmt.Errorf("wal: append: type %d or length %d is out of bounds", typ, len(payload))
	}
	sum := checksum(0).add(payload) // before the lock: it takes long
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.Err(); err != nil {
		return 0, err
	}
	if l.active == nil {
		return 0, fmt.Errorf("wal: append: %w", ErrClosed)
	}
	if reserved {
		err = l.reserved(func() error {
			pos, err = l.place(typ, payload, sum, true)
			return err
		})
		return pos, err
	}
	if l.ballast.spent.Load() {
		return 0, fmt.Errorf("wal: append: %w", errSpent)
	}
	return l.place(typ, payload, sum, false)
}

// place puts a record at the end. If the segment is full, the record goes into the next
// one. A record that is to be written now is in its file when place returns.
func (l *Log) place(typ byte, payload []byte, sum checksum, now bool) (Pos, error) {
	whole := int64(recordHeader + len(payload))
	if l.w.off > headerSize && l.w.off+whole > l.segmentSize {
		if err := l.roll(); err != nil {
			return 0, err
		}
	}
	l.held.mu.Lock()
	defer l.held.mu.Unlock()
	hold := !now && l.holds(whole)
	if !hold {
		if err := l.writeHeld(); err != nil {
			return 0, err
		}
		hold = !now && l.holds(whole)
	}
	off := l.w.off
	if hold {
		l.w.hold(&l.held, typ, payload, sum)
	} else if err := l.w.write(l.held.bytes[:0], typ, payload, sum); err != nil {
		return 0, l.undo(off, err)
	}
	l.w.off = align(off + whole)
	l.mu.Lock()
	l.end = makePos(l.w.number, l.w.off)
	if !hold {
		l.written = l.end
	}
	l.mu.Unlock()
	return makePos(l.w.number, off+recordHeader), nil
}

// undo removes the bytes of a failed write behind the last whole record.
func (l *Log) undo(off int64, cause error) error {
	if err := l.w.file.Truncate(off); err != nil {
		return l.fail(errors.Join(cause, err))
	}
	return fmt.Errorf("wal: append to segment %d: %w", l.w.number, cause)
}

// write puts a record at w.off into the file; buf is scratch. It omits the zeros that align
// the next record: the file system supplies them.
func (w *writer) write(buf []byte, typ byte, payload []byte, sum checksum) error {
	buf = append(buf, make([]byte, recordHeader)...)
	w.seal.put(buf, w.off, typ, len(payload), sum)
	long := recordHeader+len(payload) > short
	if !long {
		buf = append(buf, payload...)
	}
	_, err := w.file.WriteAt(buf, w.off)
	if err == nil && long {
		_, err = w.file.WriteAt(payload, w.off+recordHeader)
	}
	return err
}

// Roll ends the active segment before it is full, so that it can be removed once its
// records are not needed. It does nothing while the segment has no records. On a full
// disk it removes the ballast, as AppendReserved does.
func (l *Log) Roll() error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if l.active == nil {
		return fmt.Errorf("wal: roll: %w", ErrClosed)
	}
	if l.w.off <= headerSize {
		return nil
	}
	return l.reserved(l.roll)
}

// roll makes the full segment durable, and only then the next one. So no record outlives
// an earlier one, and every position in an older segment is durable.
func (l *Log) roll() error {
	if err := l.settle(); err != nil {
		return err
	}
	if err := l.syncFile(l.w.file); err != nil {
		return err
	}
	if err := l.inPlace(l.w.file); err != nil {
		return err
	}
	l.commit.advance(makePos(l.w.number, l.w.off))
	full := l.w.file
	if err := l.begin(l.w.number, 0); err != nil {
		return err
	}
	// An error of Close does not matter here: the segment is durable.
	_ = l.files.release(full)
	return nil
}

var errNumbers = errors.New("wal: segment numbers are used up")

// begin makes the next segment, and the log continues there. prev is the number of the
// segment before it, lost the number of the newest missing segment.
func (l *Log) begin(prev, lost uint32) error {
	n := l.w.next
	if n == 0 || n == math.MaxUint32 {
		return errNumbers
	}
	l.w.next++
	created := time.Unix(0, time.Now().UnixNano()).UTC()
	s := &segment{
		Segment:  Segment{Number: n, Created: created, Size: headerSize},
		readable: true, badCopy: -1, prev: prev, lost: lost,
	}
	rand.Read(s.Random[:])
	f, info, err := l.create(s)
	if err != nil {
		if l.Err() != nil {
			return l.Err()
		}
		return fmt.Errorf("wal: make segment %d: %w", n, err)
	}
	l.w.file = l.files.add(n, f, info)
	l.w.number, l.w.off, l.w.seal = n, headerSize, newSeal(s.Random)
	l.mu.Lock()
	if k := len(l.segs); k > 0 && l.active != nil {
		l.segs[k-1].Size = int64(l.end.Offset())
		l.sealed += l.segs[k-1].Size
	}
	l.segs = append(l.segs, s)
	l.active, l.end = l.w.file, makePos(n, headerSize)
	l.written = l.end
	l.mu.Unlock()
	l.commit.advance(makePos(n, headerSize))
	l.noteNewest()
	return l.Err()
}

// create makes the file of a segment. Its header and name are durable before its first
// record.
func (l *Log) create(s *segment) (fsys.File, fs.FileInfo, error) {
	path := l.files.path(s.Number, segmentSuffix)
	f, err := l.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(s.header(), 0)
	}
	if err == nil {
		err = l.syncFile(f)
	}
	if err == nil {
		err = l.syncDir(l.dir)
	}
	if err != nil {
		// The removal of the name must be durable before another segment is made. If the
		// name came back after that, this segment would look damaged.
		return nil, nil, errors.Join(err, f.Close(), l.fs.Remove(path), l.syncDir(l.dir))
	}
	return f, info, nil
}
