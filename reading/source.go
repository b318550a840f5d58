package reading

import (
	"context"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/survey"
	"blobtail/record"
)

// A Source answers questions about records. [Store] reads a store itself, and package remote asks
// a server for them. Both pass the tests of package readingtest.
//
// An error means that there is no answer. Else the [Outcome] says how the read went: [Outcome.Complete]
// reports whether anything is missing. A name without any record is a [*NoServiceError] if the
// question has no other, else it is among the absent ones of the outcome.
type Source interface {
	// String is the user's name for the source.
	String() string
	// Records passes the lines of a question to emit, in order, by calls with one or more whole
	// lines. The bytes are valid during the call. An error of emit ends the read and is returned as
	// it is. With an error of its own too, the outcome covers the emitted records, unless it is
	// nil.
	Records(ctx context.Context, a Ask, emit func(lines []byte) error) (*Outcome, error)
	// Tail passes the newest records of a question as a follower begins with them: also by the
	// tables of the tail, if no ingester can be asked.
	Tail(ctx context.Context, a Ask, emit func(lines []byte) error) (*Outcome, error)
	// Count counts the records of a question: [Outcome.Records].
	Count(ctx context.Context, a Ask) (*Outcome, error)
	// Histogram counts the records of a question by time, and by level or the fields of a split. Its
	// limits do not count.
	Histogram(ctx context.Context, a Ask, s Slices) (*Histogram, *Outcome, error)
	// Table answers a query in LogQL with numbers.
	Table(ctx context.Context, t Table) ([]Row, *Outcome, error)
	// Survey tells which fields the records of a question have, with their most frequent values. Its
	// limits do not count.
	Survey(ctx context.Context, a Ask, o SurveyOptions) (*Survey, *Outcome, error)
	// Patterns tells which texts the messages of a question have in common, and which of these another
	// window does not have. Its limits do not count.
	Patterns(ctx context.Context, a Ask, o PatternOptions) (*Patterns, *Outcome, error)
	// Around returns a record and those next to it. The filter and the limits of the question do
	// not count. Without the record the neighbours have none.
	Around(ctx context.Context, a Ask, p Place) (*Neighbours, *Outcome, error)
	// Follow emits records as they are acknowledged, until ctx ends.
	Follow(ctx context.Context, a Ask, o FollowOptions) (Cursor, error)
	// Services sums up the services with records in a range, in order.
	Services(ctx context.Context, a Ask) ([]Service, *Outcome, error)
	// Days sums up the days (UTC) of services that a range touches.
	Days(ctx context.Context, a Ask) ([]Listed, *Outcome, error)
	// Blobs lists the blobs of services that a range touches. An entry without a name has the
	// unflushed records of a service and a day.
	Blobs(ctx context.Context, a Ask) ([]Listed, *Outcome, error)
	// Names are the services that there are, in order, for people to choose from. They may be some
	// seconds old, and no read rests on them.
	Names(ctx context.Context) ([]string, error)
	// Ingesters lists the rows of the ingesters, with the time to judge them by. unread is the error
	// of unreadable rows, next to the readable ones.
	Ingesters(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error)
	// Body is one blob as it is stored. A [*Problem] comes with the rest of it. The warning is a
	// fact for people.
	Body(ctx context.Context, key string) (body []byte, warning, err error)
}

// Slices say how a histogram divides time.
type Slices struct {
	// By is the length of a bucket; 0: it suits the range, or else the records.
	By time.Duration
	// Most is how many buckets there are at most if By is 0; 0: 60.
	Most int
	// Bound is how many buckets of a length there may be; 0: any number. More are a [*BucketsError].
	Bound int
	// Zone is that of days and hours; nil: UTC.
	Zone *time.Location `json:"-"`
	// Until is a time up to which an open range goes at least, in ns: now, if it is meant to.
	Until int64
	// Split are one or two fields whose values divide a bucket, in place of the levels; level and
	// service are among them. None: the levels do.
	Split []string
	// Top is how many of the most frequent values or pairs of the split are told apart; 0: 7.
	Top int
	// Apart says whether buckets of each of some services are apart; nil: they are not. Only a
	// [Store] asks it.
	Apart func(services []string) bool `json:"-"`
}

// Histogram has the numbers of records by time.
type Histogram struct {
	By time.Duration // the length of a bucket
	// First and Last are the times of the first and the last record of the blobs that the question
	// touches, with any level and text; Any is false if there is none.
	First, Last int64
	Any         bool
	// Buckets are those with records, in order; of one time by service.
	Buckets []Slot
	// Values are the most frequent values of a split in all of the records, the most frequent first, as
	// records have them: [survey.Split] takes a pair apart, and a field that is not there is "". They
	// are cut at 256 bytes. nil: there is no split.
	Values []survey.Value
	// Capped says that a split has more different values than are counted at once. Short is 0 if Values
	// and their numbers are right all the same. Else each number may lack so many records, at most,
	// which are among the others, and so may a value that is not there.
	Capped bool
	Short  int64
}

// Slot is a bucket. If the question says which services are apart, it is of one service, or of some
// that begin with that one.
type Slot struct {
	Bucket
	Service string
	// Of a split it has no levels. Parts are the numbers of [Histogram.Values], and Others that of the
	// records with other values.
	Parts  []int64
	Others int64
}

// Total is the number of all records of the bucket.
func (s *Slot) Total() (n int64) {
	for _, of := range s.Levels {
		n += of
	}
	for _, of := range s.Parts {
		n += of
	}
	return n + s.Others
}

// SurveyOptions choose the fields of a survey, and the records that it takes them from.
type SurveyOptions struct {
	// Fields are the wanted ones; none: all but ts and msg.
	Fields []string
	// Sample is how many of the newest records are looked at; 0: all are.
	Sample int
	// Top is how many values of a field are listed; 0: 10.
	Top int
}

// Survey has the fields of records.
type Survey struct {
	// Records are those that the fields were taken from. Newest says that they are the newest ones,
	// not all.
	Records int64
	Newest  bool
	// Of is the number of all records of the question; -1: it is not known.
	Of int64
	// Fields are level and service, then those that most records have.
	Fields []Field
	// More says that there are others, which were left out.
	More bool
}

// Field is a field of some records.
type Field struct {
	Name string
	// Type is int, float, string, bool, null, object or array, or mixed for several of them.
	Type string
	// Present are the records that have the field.
	Present int64
	// Distinct are the different values that were counted. Capped says that there are more.
	Distinct int
	Capped   bool
	// Exact says that all records of the question were counted.
	Exact bool
	// Values are the most frequent ones: texts as they are, any other value as JSON.
	Values []survey.Value
}

// Place is a record by its service, time and identity, and how many records next to it are wanted.
type Place struct {
	Service       string
	Time          int64
	ID            record.ID
	Before, After int
	// Others says that records of all services are next to it, else those of its own.
	Others bool
}

// Service sums up the records of a service.
type Service struct {
	Name  string
	Blobs int
	// Records, Bytes and Stored are of blobs: the records, the bytes of their lines, and the bytes
	// of the blobs. Stored is 0 if a range was asked for.
	Records, Bytes, Stored int64
	// Unflushed are records in no blob. One that was stored meanwhile may count in both.
	Unflushed int64
	// Estimated says that a range cuts blobs, or that records may count in both.
	Estimated   bool
	Levels      [record.NumLevels]int64 // of all
	First, Last int64
}

// Listed sums up blobs of a service: a day, or one blob.
type Listed struct {
	Service string
	Total
}

// FollowOptions say where a follower begins, and name the callbacks. It begins with the newest
// [Ask.Limit] records, or with all from the begin of the range on; without both with none.
type FollowOptions struct {
	// After goes on where another follower ended. Limit and range do not count then.
	After *Cursor
	// Once ends as soon as all existing records have been emitted. Of a [Store] the cursor of the end
	// has the positions in the logs only with After or Mark.
	Once bool
	// Emit gets one or more whole lines.
	Emit func(lines []byte) error
	// Visit gets each record with its identity, in place of Emit. Only a [Store] can.
	Visit func(*record.Entry) error
	// Mark gets a cursor now and then, for another follower to go on with; nil: no callback. Only
	// a [Store] calls it.
	Mark func(Cursor) error
	// Report is told of missing or late records, and of hints, as they become known; nil: no
	// callback.
	Report func(*Report)
}
