// Package runlog is the form that records have in the log: the bytes of the log's
// records, and the one reader of them.
//
// An [Encoder] turns a request into one runs record: its lines, grouped into runs
// of one service and one period. A batch record ([BatchRecord]) names the runs that
// become one blob, by their positions. A commit record says that a batch is stored,
// and a parked record ([Parked]) is a copy of a batch further on in the log.
//
// A [Reader] reads runs and checks them. On top of it, a [Loader] brings the lines
// of one batch in order for the sink, and a [Query] gives the unflushed records of
// many batches in order to a reader. Both keep each identity once, by the same
// decisions.
//
// The package keeps no account of the log and decides nothing: that is package
// buffer. docs/reference/format-shipped.md, Log, has the bytes.
package runlog

import (
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/record/origin"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The types of the log's records. 3 is reserved.
const (
	TypeRuns   byte = 1
	TypeBatch  byte = 2
	TypeCommit byte = 4
	TypeParked byte = 5
)

// Bin names the content of one blob: a service and a period of event time.
type Bin struct {
	Service string
	Period  int64 // its start, Unix minutes
}

// Start is the start of the period.
func (b Bin) Start() time.Time { return time.Unix(b.Period*60, 0).UTC() }

// periodOf is the start, in Unix minutes, of the period in which a time lies, Unix
// nanoseconds. Periods are a number of minutes that divides 60.
func periodOf(t int64, period time.Duration) int64 {
	n := t / int64(period)
	if t%int64(period) < 0 {
		n--
	}
	return n * int64(period/time.Minute)
}

var (
	// ErrNewer is wrapped by the error for a record that a newer version wrote.
	ErrNewer = errors.New("the log was written by a newer version; use that one")

	errRun = errors.New("not a run")
)

// Rotten reports whether an error of [Reader.Read] means that the log no longer has the
// bytes, so that another try cannot help.
func Rotten(err error) bool {
	return errors.Is(err, errRun) || errors.Is(err, ErrNewer) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrNotExist)
}

// PlaceOrigin is the origin of a request without one: the place of its record in
// the log.
func PlaceOrigin(pos wal.Pos, segment wal.Segment) record.Origin {
	return origin.OfLog(segment.Created.UnixMilli(), [5]byte(segment.Random[:5]), uint64(pos.Offset()))
}
