// Package unflushed joins the records in blobs with records not yet flushed to a blob. So a
// read misses nothing, and the newest records appear at once.
//
//	ingesters --live records--+
//	tables of the tail -------+--> unflushed records --+--> query --> lines in order
//	blobs ---------------------------------------------+
//
// Make a [Reader]. Then [Reader.Gather] completes any query, [Reader.Tail] returns the
// newest records, and [Reader.Follow] goes on with new records. The order everywhere is
// (time, origin, index). A record found in several places is emitted once.
//
// Live records are the records in the logs of ingesters. The reader asks for them first
// and lists blobs after that. So a record acknowledged before the question is in an
// answer or in the listing. Meanwhile the reader reads the ingesters' rows, which name
// all ingesters that may hold records (roster.go). If all of these have answered, or hold
// none that are old enough for the range (floor.go), the read is exact. Else it is
// incomplete, and the report names the others. Then rows of the tail's tables show their part of
// the missing records: the newest of each interval. The report has the rest as a [Gap].
//
// # Tails and followers
//
// [Reader.Tail] joins live records, rows of the tail and blobs by one merge. It reads rows only
// if not all ingesters answered, service by service, so the tables may take 2 ms longer for each
// service. Of more than 1,000 services it reads only the rows that may have unflushed records.
// It reads blobs from the hour of the n-th newest unflushed record on, by the counts of these
// records in each hour, and goes further back if that was not enough. Blobs that end before the
// n-th record are listed and not opened. Rows alone would be exact for n up to 100, since each
// has the newest 100 of its interval. Blobs and live records make a tail exact also if rows are
// late or lost, or records come with times far from now.
//
// [Reader.Follow] asks each ingester for the records appended behind a position of its log, and
// waits for none: an ingester that hangs delays no records of others (polls.go).
// Positions are places in the log, so they hold over restarts. An ingester remembers the last
// 262,144 runs, stored or not, and a start reads them back. The answers are in the order of
// acceptance. The follower holds each record for half a second, and sorts by time the records
// that it holds. Copies that a shipper sent elsewhere are known by identity. If an ingester has
// forgotten runs behind the position, the follower reads blobs from the time of the last
// complete poll on, and says that late records may be missing. At its end a follower gives a
// cursor: the greatest emitted record and these positions. Without live records a follower reads
// rows of the tail. For the records that a row counts and does not have, it names the command
// that shows them.
package unflushed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/internal/lease"
	"blobtail/internal/trust"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/tailindex"
)

// ErrNobody says that no ingester is running, as far as the reader knows.
var ErrNobody = errors.New("no ingester is running")

// LiveOff begins the warnings of reads that ask no ingester. BlobsAlone is that of mode [Off].
const (
	LiveOff    = "live: off, so no ingester is asked"
	BlobsAlone = LiveOff + ": records that are in no blob yet are not in this read"
)

// mayBeMissing is in each note of a read that may lack records.
const mayBeMissing = "may be missing"

// MayLack reports whether a warning or a note of a read says that its answer may lack records.
func MayLack(text string) bool {
	return strings.HasPrefix(text, LiveOff) || strings.Contains(text, mayBeMissing)
}

// Mode selects the live records of a read.
type Mode int

// Modes of a read.
const (
	Auto Mode = iota // unflushed records too, if an ingester can be asked
	Off              // blobs only
	Only             // no blobs
	// Elsewhere is that of a part of a question by time: another process has asked the ingesters for all.
	Elsewhere
)

// Options are the sources of a [Reader]. Blobs, Store and Ingesters must be set.
type Options struct {
	Blobs *blobs.Reader
	// Live is the ingester to ask, which asks the others; nil: all that may hold records are
	// asked at the addresses in their rows.
	Live *live.Client
	// Announced asks the ingesters at the addresses in their rows; nil: without Live no
	// ingester can be asked. See [live.ClientOptions].
	Announced *http.Client
	// Trust is what Announced believes; nil: what this host believes.
	Trust *trust.Trust
	// Token is the credentials for them, as id.secret; "": none. PlainHTTP lets it go to other
	// hosts without TLS.
	Token     string
	PlainHTTP bool
	// Distant says that ingesters may be out of reach, as those of a store in a cloud: all that
	// are asked at their addresses have 2 s for the header of an answer. A follower that
	// reaches none goes by the tables of the tail.
	Distant bool
	// Off asks no ingester: mode Auto reads blobs alone, and Tail and Follow blobs and the
	// tables of the tail. Each report says so.
	Off bool
	// Unasked says that no ingester writes to the store: none is asked, and no report
	// mentions any.
	Unasked bool
	Tail    *tailindex.Reader // nil: there are no tables
	// Name is the user's name for the store, for messages; "": "this store".
	Name string
	// Store returns the id of the store, "" if it has none.
	Store func(ctx context.Context) (string, error)
	// Ingesters lists the rows of the store's ingesters, as [lease.List] does, with
	// the store's time to judge them by.
	Ingesters func(ctx context.Context) ([]lease.Ingester, time.Time, error)
	// Pace is how long a follower waits between polls; 0: 200 ms.
	Pace time.Duration
	// Hangs remembers ingesters that hang; nil: one of its own does.
	Hangs *live.Hangs
}

// Reader reads one store and the ingesters that write to it. It may be used by
// several goroutines at once.
type Reader struct {
	o Options
	// gathered counts the queries that hold unflushed records.
	gathered atomic.Int64
}

// New makes a Reader. It reads nothing yet.
func New(o Options) *Reader {
	if o.Pace == 0 {
		o.Pace = 200 * time.Millisecond
	}
	if o.Hangs == nil {
		o.Hangs = &live.Hangs{}
	}
	return &Reader{o: o}
}

// StoreID is the id of the store, "" if it has none.
func (r *Reader) StoreID(ctx context.Context) (string, error) { return r.o.Store(ctx) }

// Off reports whether no ingester is asked, so that all results are of blobs, or of blobs and
// tables.
func (r *Reader) Off() bool { return r.o.Off }

// Report holds the problems, notes and gaps of a read, without its records.
type Report struct {
	Problems []error // reasons why the result is incomplete
	Warnings []error // facts that a reader must know; the result is complete as it was asked for
	Notes    []string
	Gaps     []Gap
	// Absent are the names that a follower was given and that are no service.
	Absent []*blobs.NoServiceError
	// Well says that no trouble is left of those that a follower reported.
	Well bool
}

// A Gap is a span of time with more records than were found.
type Gap = blobs.Gap

// Outcome returns the outcome of a read with sum as the summary of its blobs; nil: none was read.
func (r *Report) Outcome(sum *blobs.Summary) *blobs.Outcome {
	if sum == nil {
		sum = &blobs.Summary{}
	}
	out := sum.Outcome()
	out.Lack(r.Problems...)
	out.Warnings = slices.Concat(r.Warnings, out.Warnings)
	out.Absent = append(out.Absent, r.Absent...)
	out.Notes, out.Gaps = slices.Clone(r.Notes), slices.Clone(r.Gaps)
	return out
}

// Empty reports whether a report tells nothing.
func (r *Report) Empty() bool {
	return len(r.Problems)+len(r.Warnings)+len(r.Notes)+len(r.Gaps)+len(r.Absent) == 0 && !r.Well
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) warn(text string) { r.Warnings = append(r.Warnings, errors.New(text)) }

// warnOfTables warns of the records that a tail lacks if it asks no ingester.
func (r *Report) warnOfTables() {
	r.warn(fmt.Sprintf("%s: records that are in no blob yet are from the tables of the tail, which have at most the newest %d of each few seconds, and none that came late", LiveOff, tailindex.MaxLines))
}

func (r *Report) problem(err error) { r.Problems = append(r.Problems, err) }

// asked is one question for all services of a query.
func asked(q *blobs.Query) live.Query {
	ask := live.Query{From: q.Range.From, To: q.Range.To}
	ask.Service, _ = askable(q.Services)
	for l := range record.Level(record.NumLevels) {
		if q.Filter.Levels.Has(l) {
			ask.Levels = append(ask.Levels, l)
		}
	}
	return ask
}

// question is the first question to ingesters for a query. They do not search texts, so
// for these it asks for so many of the newest records that they probably suffice.
func question(q *blobs.Query) live.Query {
	ask := asked(q)
	most := max(q.Limit, min(q.Limit+1, live.MaxNewest)) // one more, or blobs are searched for it
	if f := &q.Filter; f.ReadsLines() {
		most = 1000 + 50*min(q.Limit, live.MaxNewest)
	}
	if q.Limit > 0 && most <= live.MaxNewest {
		ask.Newest = most
	}
	return ask
}
