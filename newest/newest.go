// Package newest joins what blobs have of the logs with what they do not have
// yet, so that a read misses nothing and the newest records are there at once.
//
//	ingesters --live records--+
//	tables of the tail -------+--> loose records --+--> query --> lines in order
//	blobs -----------------------------------------+
//
// Make a [Reader]; then [Reader.Gather] completes a query whatever it asks for,
// [Reader.Tail] gives the newest records, and [Reader.Follow] goes on with what
// comes in. The order everywhere is (time, origin, index), and a record that is
// found in several places is given out once.
//
// Live records are what ingesters hold in their logs. They are asked for first,
// and blobs are listed after: what was acknowledged before the question is in an
// answer or in the listing. Whether all ingesters that may hold records have answered
// is decided by their rows, which are read after the read began (roster.go). With all
// of them a read is exact. Where no ingester can be asked, rows of the tail's tables stand in; they have the newest records of each
// second only, and what else there was is told as a [Gap].
package newest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/heartbeat"
	"blobtail/live"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Asker asks ingesters for what they hold; a [live.Client] does.
type Asker interface {
	// Ask returns when every ingester that answers has taken its snapshot. The
	// error is [ErrNobody] when there is no ingester that could be asked.
	Ask(ctx context.Context, q live.Query) (*live.Answer, error)
}

// ErrNobody says that no ingester is running, as far as one can know.
var ErrNobody = errors.New("no ingester is running")

// Mode says which live records a read is to have.
type Mode int

// Modes of a read.
const (
	Auto Mode = iota // what blobs do not have yet, if someone can be asked
	Off              // blobs only
	Only             // no blobs
)

// Options are what a [Reader] reads. Only Blobs must be set.
type Options struct {
	Blobs *query.Reader
	// Live is the ingester to ask; nil: one is found by the rows, by means of Dial.
	Live Asker
	// Dial makes an Asker of the ingester at an address; with hasty it does not wait
	// for long. nil: without Live no ingester can be asked.
	Dial func(address string, hasty bool) (Asker, error)
	// Unasked says that the caller knows that records in the logs of ingesters are
	// missing: no ingester is asked, and nobody is told of them.
	Unasked bool
	Tail    *tailindex.Reader // nil: there are no tables
	// Name is what the user calls the store, for messages; "": "this store".
	Name string
	// Store returns the id of the store, "" when it has none; nil: it has none.
	Store func(ctx context.Context) (string, error)
	// Ingesters lists the rows of the ingesters of the store, as [heartbeat.List], and
	// gives the store's time to judge them by; nil: there are none.
	Ingesters func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error)
	// Pace is how long a follower waits from one look to the next; 0: 200 ms.
	Pace time.Duration
}

// Reader reads one store and the ingesters that write to it. It may be used by
// several goroutines at once.
type Reader struct {
	o      Options
	finder finder
}

// New makes a Reader. It does nothing yet.
func New(o Options) *Reader {
	if o.Pace == 0 {
		o.Pace = 200 * time.Millisecond
	}
	if o.Ingesters == nil {
		o.Ingesters = func(context.Context) ([]heartbeat.Ingester, time.Time, error) { return nil, time.Now(), nil }
	}
	if o.Store == nil {
		o.Store = func(context.Context) (string, error) { return "", nil }
	}
	return &Reader{o: o}
}

// Report is what is to be said of a read beside its records.
type Report struct {
	Problems []error // what makes the result incomplete
	Notes    []string
	Gaps     []Gap
}

// A Gap is a span of time in which there are more records than were found.
type Gap struct {
	Service  string
	Records  int
	AtMost   bool  // not all of them are of what was asked for, or may not be
	From, To int64 // both included
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) problem(err error) { r.Problems = append(r.Problems, err) }

// asked is one question for all services of a query.
func asked(q *query.Query) live.Query {
	ask := live.Query{Service: askable(q.Services), From: q.Range.From, To: q.Range.To}
	for l := range record.Level(record.NumLevels) {
		if q.Filter.Levels.Has(l) {
			ask.Levels = append(ask.Levels, l)
		}
	}
	return ask
}

// askable lists names as ingesters take them. They refuse the whole of a question
// that has a name which no service can have, whose records nobody misses.
func askable(services []string) string {
	names := slices.DeleteFunc(slices.Clone(services), func(name string) bool {
		return name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00\r\n")
	})
	if len(names) == 0 {
		return "-" // a name that none has, for who else there is and whether they answer
	}
	return strings.Join(names, ",")
}

// question is what ingesters are asked to complete a query.
func question(q *query.Query) live.Query {
	ask := asked(q)
	if f := &q.Filter; len(f.Texts)+len(f.Exprs) == 0 && q.Limit <= live.MaxNewest {
		ask.Newest = q.Limit
	}
	return ask
}

// standing is since when rows of the tail may have what no blob has, as far as the
// rows of the ingesters tell.
type standing struct {
	now time.Time
	// since is when the oldest record arrived that may be in no blob; zero when all
	// are in blobs, or there is no ingester.
	since time.Time
	live  int // ingesters that are running
	heard time.Time
	err   error // the rows cannot be read
}

// longest is how far back rows of the tail are read for a record that is in no blob:
// an ingester may have been gone for days, and all these rows are in memory.
const longest = 15 * time.Minute

// writtenSince is from when on rows may have what a query wants and no blob has.
func (s *standing) writtenSince(q *query.Query) time.Time {
	since := s.since
	if from := s.now.Add(-longest); from.After(since) {
		since = from
	}
	if q.Range.From != query.Oldest {
		if from := time.Unix(0, q.Range.From).Add(-tailindex.Ahead); from.After(since) {
			since = from
		}
	}
	return since
}

// standing is what the rows say.
func (k *roster) standing() standing {
	s := standing{now: k.now, err: k.err}
	if errors.Is(k.err, storage.ErrNotExist) {
		s.err = nil
	}
	for _, i := range k.rows {
		running := i.Live(k.now)
		if running {
			s.live++
			if i.At.After(s.heard) {
				s.heard = i.At
			}
		}
		since := i.Oldest
		switch {
		case !since.IsZero():
		case i.State == heartbeat.Holding || running:
			since = i.At // what came after that
		default:
			continue
		}
		if i.State != heartbeat.Stopped && (s.since.IsZero() || since.Before(s.since)) {
			s.since = since
		}
	}
	return s
}
