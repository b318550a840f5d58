package wal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/fsys"
)

// Pos is the place of a payload byte in the log: the number of the segment and
// the offset in its file. Positions order as the log does, none is ever used
// twice, and zero is never a position.
type Pos uint64

// Segment returns the number of the segment.
func (p Pos) Segment() uint32 { return uint32(p >> 32) }

// Offset returns the offset in the segment's file.
func (p Pos) Offset() uint32 { return uint32(p) }

// Options are the settings of a log; the zero value works.
type Options struct {
	SegmentSize int64            // size at which a segment is rolled; 0: 64 MiB
	OpenFiles   int              // how many segments are kept open for reading; 0: 64
	FS          fsys.FS          // nil: the host's
	Log         zerolog.Logger   // zero: silent
	Now         func() time.Time // for the time in a segment's header; nil: time.Now
}

// Log is an open log. All methods may be called at once from any goroutine.
type Log struct{}

// Segment describes one file of the log.
type Segment struct {
	Number  uint32
	Created time.Time
	Random  [16]byte // drawn when the segment was made
	Size    int64    // bytes on disk
}

// Record is one record as Replay found it.
type Record struct {
	Type    byte
	Pos     Pos      // of the first byte of Payload
	Payload []byte   // valid until the next step of the iteration
	Segment *Segment // where it stands
}

// CorruptError is a span of a segment that could not be read.
type CorruptError struct {
	Path           string
	Offset, Length int64
	Reason         string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: %s: %d bytes at %d are damaged: %s", e.Path, e.Length, e.Offset, e.Reason)
}

// LockedError says that another process holds the log directory.
type LockedError struct {
	Dir string
	PID int // 0 when it is not known
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("log directory %s is in use by process %d; every ingester needs its own --wal", e.Dir, e.PID)
}

// MaxPayload is the length of the longest payload that Append takes.
const MaxPayload = 1 << 30

// What callers decide by.
var (
	ErrFailed = errors.New("wal: the log has failed for good")
	ErrClosed = errors.New("wal: the log is closed")
	ErrActive = errors.New("wal: the active segment cannot be removed")
)

// Stats are counters since Open.
type Stats struct {
	Appends      int64
	Bytes        int64 // payload bytes appended
	Fsyncs       int64
	FsyncSeconds float64
	TornBytes    int64 // cut off the last segment on Open
	Corrupt      int64 // damaged spans that Replay met
}

var errTODO = errors.New("wal: not built yet")

// Open opens the log in dir, making it if needed.
func Open(dir string, o Options) (*Log, error) { return nil, errTODO }

// Append writes a record at the end of the log. typ must not be 0.
func (l *Log) Append(typ byte, payload ...[]byte) (Pos, error) { return 0, errTODO }

// Sync returns when the record at p and all before it are durable.
func (l *Log) Sync(p Pos) error { return errTODO }

// ReadAt fills b with payload bytes from p on.
func (l *Log) ReadAt(b []byte, p Pos) error { return errTODO }

// Replay yields what was found on Open, oldest first.
func (l *Log) Replay(ctx context.Context) iter.Seq2[Record, error] {
	return func(func(Record, error) bool) {}
}

// Segment describes segment n; false when the log has none of that number.
func (l *Log) Segment(n uint32) (Segment, bool) { return Segment{}, false }

// Front returns the number of the oldest segment.
func (l *Log) Front() uint32 { return 0 }

// RemoveFront deletes the oldest segment.
func (l *Log) RemoveFront() error { return errTODO }

// Active returns the number of the segment that is appended to.
func (l *Log) Active() uint32 { return 0 }

// Size returns the bytes on disk of all segments.
func (l *Log) Size() int64 { return 0 }

// Failed is closed when the log has failed for good; Err then says why.
func (l *Log) Failed() <-chan struct{} { return nil }

// Err returns the error that the log failed with, nil while it works.
func (l *Log) Err() error { return nil }

// Stats returns the counters.
func (l *Log) Stats() Stats { return Stats{} }

// Close makes what was appended durable and releases the directory.
func (l *Log) Close() error { return errTODO }
