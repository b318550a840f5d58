// Package tailindex keeps the newest end of each service's log in a table, where a reader
// finds it with one short query: the log-tail pattern, with rows that hold many records.
//
//	buffer --Accepted--> Writer --a row each interval and service--> table tail<yyyymmdd>
//	                                                                   |
//	                               Newest, Written, Watch  <-- Reader <-+
//
// A row covers the arrivals at one ingester for one service between two writes: the
// newest [MaxLines] of its lines, and the number of other ones. It omits lines longer
// than [MaxLine]. No loss is hidden: the row counts the records that it omits, and they
// are in the log of that ingester and in blobs. The form of a row is in docs/reference/format-tail.md.
//
// The table only makes the newest end quick to read. If it is unavailable, late or lost,
// that costs only freshness. So a writer never makes ingestion wait.
//
// # Rows
//
// One row for each record would be the log data anti-pattern: at 1 TB a day 36,000 rows a
// second, more than an account accepts. Row keys are inverted ticks, so a reader asks for the
// first n rows of a partition and is done. Row numbers have no gaps, so a follower knows when it
// missed a row. docs/dev/decisions.md has the load on the tables in numbers.
//
// Each accepted run is offered to the [Writer], which copies at most 200 lines of it and waits
// for nothing. A service that was quiet for an interval gets its row within a tenth of a
// second; a busy one gets a row each interval ([Options.Every]). Before a write the log is fsynced up to the newest of these lines, so that no
// reader sees a record that a power cut takes back. A write with an unknown outcome is repeated
// with the very same rows. Records that arrive meanwhile wait: the newest 100 lines are kept,
// the others counted. So after an outage one row of each service covers the whole outage, and
// says how many records it lacks.
//
// Memory is bounded. While the waiting lines of all services take more than 16 MiB, the
// interval is a second. While they take more than 64 MiB, each
// accepted run first drops the waiting lines of its service, and the row counts them. Such a row
// has fewer than 100 lines, and the dropped records may lie anywhere in its time. At most 12
// services are written at a time, 4 of them services with a failed last write, so writes that
// hang do not delay the rest.
//
// The tail gets no record of a day that is known to be dropped. Rows that have some already
// stay, and readers hide them.
package tailindex

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// Format is the version of a row. A row of another version is refused.
const Format = 2

const (
	// MaxLines is the most lines that a row has.
	MaxLines = 100
	// MaxLine is the length in bytes of the longest line in a row; a row omits and
	// counts a longer one.
	MaxLine = 16 << 10
	// Behind and Ahead bound the times of records that a row counts, relative to their
	// arrival. Readers find other records in blobs.
	Behind = 24 * time.Hour
	Ahead  = 10 * time.Minute
	// Late bounds how much older than its arrival the newest record of a row may be for
	// [Reader.Written] and [Watch] to find the row. Rows are in the order of their
	// records' times, so the search needs an end.
	Late = 10 * time.Minute
	// LeastEvery and MostEvery bound the time between two rows of a busy service. Each poll
	// of a [Watch] finds rows with a newest record up to a minute old, which is far more.
	LeastEvery = time.Second
	MostEvery  = 30 * time.Second
)

// The defaults of [Options].
const (
	DefaultPrefix = "tail"
	DefaultShards = 4
	MaxShards     = 16
)

// Row is the records of a service in one write of one ingester.
type Row struct {
	Service string // set by a [Reader]
	Key     string
	Process string // of the ingester; 8 hex digits, new with each start
	// Number counts the rows of this process, service and kind from 1, without gaps. A
	// number missing between two was written and is lost, or late.
	Number  uint64
	Errors  bool      // the row counts only records of level error and critical
	Arrived time.Time // time of its creation, by the store's clock as far as the ingester knew it
	// First and Last are the times of the oldest and newest record that it counts.
	First, Last int64
	Count       int            // number of records that it counts
	Omitted     int            // number of them that are not in Entries
	Entries     []record.Entry // in order of time, origin and index
}

// OldestOmitted reports whether all omitted records are older than the entries.
func (r *Row) OldestOmitted() bool {
	n := len(r.Entries)
	return r.Omitted == 0 || n == MaxLines && r.Entries[n-1].Time == r.Last
}

// RowError reports that rows of a table cannot be read: a newer version wrote them, or
// they are damaged, or another program wrote them.
type RowError struct {
	Table, Partition, Key string
	Reason                error // storage.ErrOlder of a row that only an older version wrote
	More                  int   // number of other invalid rows in the same answer
}

func (e *RowError) Error() string {
	s := fmt.Sprintf("row %s of partition %s of table %s: %s", e.Key, e.Partition, e.Table, e.Reason)
	if e.More > 0 {
		s += fmt.Sprintf(" (and %d more rows have something wrong)", e.More)
	}
	return s
}

// Unwrap returns the reason.
func (e *RowError) Unwrap() error { return e.Reason }

// kind is the first byte of the keys of rows.
func kind(errors bool) byte {
	if errors {
		return 'e'
	}
	return 'a'
}

// The greatest time of .NET, and the Unix epoch, in ticks of 100 ns since the year 1.
// Azure's design guide sorts the newest first by inverted ticks.
const (
	maxTicks  = 3155378975999999999
	unixTicks = 621355968000000000
)

// inverse is the inverted ticks of a time: the newer, the smaller.
func inverse(ns int64) int64 {
	ticks := ns / 100
	if ns%100 < 0 {
		ticks--
	}
	return maxTicks - unixTicks - ticks
}

// keyOf is the key of a row with a newest record of that inverse.
func keyOf(kind byte, inverse int64, process string, number uint64) string {
	return fmt.Sprintf("%c-%019d-%s-%d", kind, inverse, process, number)
}

// parseKey is the strict inverse of keyOf. The row has only the fields that the key has.
func parseKey(key string) (r Row, inverse int64, ok bool) {
	r.Key = key
	parts := strings.Split(key, "-")
	if len(parts) != 4 || strings.Trim(parts[2], "0123456789abcdef") != "" {
		return r, 0, false
	}
	inverse, bad := strconv.ParseInt(parts[1], 10, 64)
	number, err := strconv.ParseInt(parts[3], 10, 64)
	r = Row{Key: key, Process: parts[2], Number: uint64(number), Errors: parts[0] == "e"}
	return r, inverse, bad == nil && err == nil && number > 0 && len(r.Process) == 8 &&
		key == keyOf(kind(r.Errors), inverse, r.Process, r.Number)
}

// Partition is the partition of a service's rows in a shard. Services have no
// tilde in their names.
func Partition(service string, shard int) string { return service + "~" + strconv.Itoa(shard) }

// Table is the name of the table of arrivals on the UTC day of t.
func Table(prefix string, t time.Time) string { return prefix + t.UTC().Format("20060102") }

// timeLayout has the same width for every time, like those of ingesters' rows.
const timeLayout = "2006-01-02T15:04:05.000000000Z"
