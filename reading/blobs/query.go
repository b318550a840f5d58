// Package blobs reads records from a blob store: it finds the blobs of a read,
// fetches and decodes only the blocks that it needs, merges them in order and drops
// copies.
//
// Make a [Reader], ask it for a [Plan], then call [Plan.Read] for the lines,
// [Plan.Count] for their number, or [Plan.Histogram] for their numbers by time and
// level. A plan costs one LIST of its whole range for each service. It knows how many
// bytes a read would fetch. [Reader.Newest] reads the newest N records without a plan: it
// guesses the newest hour by the names of directories, and lists from there back only as
// far as it must. Package catalog does the listing.
//
// A caller puts unflushed records, from any source, into an [Unflushed] and names that in
// the [Query]. A read merges them with the blobs as if they were stored.
//
// Expired days (package horizon) are hidden, even if their blobs are still there. A read
// returns the records that were stored when it began. If a day expires during the read,
// it leaves out the rest of that day and warns. A listed blob may be deleted or compacted
// later, so a read that gets too old stops and says so.
//
// The order is (time, origin, index) everywhere. A record that is stored more than
// once, because a sender tried again, has the same time and the same bytes in each
// copy. So identities are looked up only if records of equal time meet in different
// blobs, and a read of blobs that do not overlap never looks them up.
//
// If a part cannot be read, a read goes on with the others, adds a problem to
// [Summary.Problems], and its result is incomplete. It returns an error only if it cannot
// go on: the listing fails, the store refuses, the context ends.
//
// A read holds the blocks being merged and a bounded number ahead of them. The lines of a read of
// the newest N wait in a temporary file, beyond some megabytes. The memory of unflushed records is
// bounded too. Bytes that the filter of a query makes of records are taken from the [budget.Budget]
// in the context. Once that has ended, a read ends with the error of its context.
//
// # Guesses
//
// A request to a remote store takes some ten milliseconds, so the chain of requests decides the
// time of a short read. Guesses shorten it, and none can make a read wrong. A [Scout] makes the
// first three while its caller waits for unflushed records; its comment has them. A read may
// list blobs only when it has the unflushed records, or it could miss some that were flushed in
// between; so it lists the blobs of a Scout again. The fourth is the blocks of a blob: if a
// range touches a part of the blob's time, the bytes there, as the metadata tell them, are
// requested together with the index. The index then says which blocks they are.
//
// A walk by years, months, days and periods is four requests, one after another. Instead a guess
// asks for the days of this month and the periods of today at once. It only says where the first
// listing begins. That listing has no end, so it has later records too, and a walk with newer
// answers finds the way back. A guess that fails costs two or three requests. A window of one
// service takes a chain of two requests.
//
// # Blobs
//
// The index of a blob is one request of 64 KiB, or more of a large blob; 8 KiB in a directory,
// and then the rest. Blobs are opened when the merge reaches them, so memory does not grow with
// the range. If blobs overlap, because many ingesters wrote the same hour, those that probably
// hold some of the newest N, by their counts and times, are opened at once and their last blocks
// decoded.
//
// Blocks are ruled out by time, by level, and by the filters of the index. The filters have the
// words of each block, exact, and hashes of its ids (docs/reference/format.md, Filters). A search takes
// the words and ids that every match must have, and reads only blocks that may have all. The ids
// lie in buckets of 4 KB, and the metadata say where, so one small read rules out a blob before
// its index is read. A filter never rules out a block that has a match: a doubtful block is
// read.
//
// [Unflushed] holds unflushed records as blobs in memory, one for each service and hour. From 48
// MiB on, or less if many reads hold some, blocks are in an unnamed temporary file. An ingester
// has answered once the last record of its answer is kept there. A file without room makes the
// read incomplete.
//
// # Names that are no service
//
// Nobody knows that a service does not exist before both blobs and ingesters were asked. So a
// read notes the names without blobs ([Summary.Miss]), and its caller settles them once it knows
// the unflushed records ([Summary.Settle]).
package blobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/storage"
)

// Open ends of a [Range].
const (
	Oldest int64 = math.MinInt64
	Newest int64 = math.MaxInt64
)

// Range is the half open span [From, To) of times in ns since 1970, UTC. From
// [Oldest] and To [Newest] leave that end open.
type Range struct{ From, To int64 }

// Always is the range of all times.
func Always() Range { return Range{Oldest, Newest} }

// touches reports whether a time from first to last, both included, may be in r.
func (r Range) touches(first, last int64) bool {
	return last >= r.From && (first < r.To || r.To == Newest)
}

// covers reports whether all times from first to last, both included, are in r.
func (r Range) covers(first, last int64) bool {
	return first >= r.From && (last < r.To || r.To == Newest)
}

// last is the last time of the range.
func (r Range) last() int64 {
	if r.To == Newest {
		return Newest
	}
	return r.To - 1
}

// Bounded reports whether either end is given.
func (r Range) Bounded() bool { return r.From != Oldest || r.To != Newest }

// Query selects records.
type Query struct {
	// Services are names, or globs like those of path.Match. A glob matches a system
	// name such as _rejected only if it begins with "_" itself.
	Services []string
	Range    Range
	Filter   Filter
	Edges    Edges
	Limit    int  // only the newest Limit records; 0 for all
	First    int  // only the oldest First records; 0 for all. Not together with Limit
	Reverse  bool // newest first
	// Choose chooses among the services that the names and globs match; nil: all of them. The
	// others do not exist for the query.
	Choose func(service string) bool
	// MaxRaw is the most bytes of lines that a read may decode; 0: any number. A read that
	// needs more of them fails with a [*TooLargeError]: at once if that is certain from
	// metadata, else when it comes to that.
	MaxRaw int64
	// MaxHeld is the most bytes of lines that a read may put aside, because it finds the newest
	// first and the oldest are to come first; 0: any number. Few of them are in memory.
	MaxHeld int64
	// Unflushed are records in no blob. Their services count as services even if nothing
	// is stored under them. Records of services outside Services are left out.
	Unflushed []*Unflushed
	// Stored are blobs that ingesters stored before the listings of the read begin. If the store
	// lacks one without a reason, the read is incomplete.
	Stored []Stored
	// Sure says that nobody asks whether the services exist: a service without records is
	// neither an error nor absent. So a read of it is empty.
	Sure bool
	// Absent is told of the names that are no service, beside others that are, before the first
	// record; nil: it is not. The summary has them too.
	Absent func(names []*NoServiceError)
	// Expired are horizons that the caller has read. It has left their expired days out
	// of Unflushed. Without any, the plan reads them.
	Expired horizon.Checked
	// Scout has looked at the store earlier, for this query; nil: the read looks itself.
	Scout *Scout
	// Ahead says that the records of the whole plan will be read, so that a Scout may begin
	// with it. It does nothing without a Scout, nor with a limit of newest records.
	Ahead bool
	// Part says that the query is a part by time of one that another process answers, and Aged how long
	// ago it began. That process tells which services do not exist, and what had expired.
	Part bool
	Aged time.Duration
	// cool counts what the reads of the query fetch from cooler tiers, see [Reader.Together].
	cool *coolReads
}

// Options tune a [Reader]. The zero value suits a command.
type Options struct {
	Workers    int   // blocks decoded at once, by all reads; 0: GOMAXPROCS
	GroupBytes int64 // most bytes of one ranged GET of blocks; 0: 8 MiB, or 256 KiB unless Distant
	// MaxAge is the largest age of a read: half of the time between hiding and
	// deleting, and between compacting and deleting. 0: 30 min.
	MaxAge time.Duration
	// Distant says that a request to the store takes long. Parts of blobs that a read probably
	// needs are then requested together with the index that tells, and the days of a range are
	// listed apart ([catalog.View.InParts]).
	Distant bool
	// Indexes keeps the indexes of blobs for later reads; nil: none are kept.
	Indexes Indexes
	// Findings is how many bytes of findings are kept for later reads, at most; 0: none are. With
	// them up to 16 MiB of the ids of blobs are kept too.
	Findings int64
	// Entries is how many bytes of parsed names and metadata are kept for later reads, at most; 0:
	// none are.
	Entries int64
	// Progress counts the blobs of all reads of the Reader; nil: they are not counted.
	Progress *progress.Counter
	// Cool is called once in a read that fetches much from cooler tiers, before it does if that
	// is known, perhaps from another goroutine; nil: a warning of the summary says so.
	Cool func(*CoolError)
	// MuchCool is how many bytes are much; 0: 1 GiB.
	MuchCool int64
	// Now is the host's clock, by which the newest hour is guessed; nil: [time.Now].
	Now func() time.Time
}

// Reader reads one store. Several goroutines may use it at once.
type Reader struct {
	store    storage.BlobStore
	opt      Options
	decoder  *blobfmt.Decoder
	shared   *shared
	findings *findings // of filters in blocks; nil: none are kept
	ids      *keptIDs  // nil: none are kept
	entries  *catalog.Memory
	// acquitted are known blobs of [Query.Stored]; nil: there is no store that could have them.
	acquitted *acquitted
	share     Share // nil: nobody reads with others
}

// New returns a reader of store. It does nothing yet.
func New(store storage.BlobStore, o Options) *Reader {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.GroupBytes <= 0 {
		if o.GroupBytes = 8 << 20; !o.Distant {
			o.GroupBytes = firstGroup // a request takes microseconds, and less takes less memory
		}
	}
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.MuchCool = cmp.Or(o.MuchCool, muchCool)
	return &Reader{store: store, opt: o, decoder: blobfmt.NewDecoder(o.Workers), shared: newShared(o.Workers),
		findings: newFindings(o.Findings), ids: newKeptIDs(o.Findings > 0), entries: catalog.NewMemory(o.Entries), acquitted: newAcquitted()}
}

// Over returns a reader of another view of the store: it sends its requests to the store that wrap
// returns. It shares the rest with r.
func (r *Reader) Over(wrap func(storage.BlobStore) storage.BlobStore) *Reader {
	over := *r
	over.store = wrap(r.store)
	return &over
}

// Summary counts the work of a read. Problems make it incomplete; warnings do not.
type Summary struct {
	Records, Bytes            int64 // emitted
	BlobsListed, BlobsOpened  int64
	BlocksRead, BlocksSkipped int64 // skipped: ruled out by the index of an opened blob, by the ids of an unopened one, or by findings
	// RuledOutByIDs and RuledOutByWords count the skipped blocks by the filter that ruled
	// them out.
	RuledOutByIDs, RuledOutByWords int64
	Requests, Fetched              int64 // GETs after the listing, and their bytes
	Decoded                        int64 // bytes of the lines of the blocks read, and of unflushed records
	Copies                         int64 // records left out as copies of emitted ones
	Unflushed                      int64 // of the emitted or counted records, those in no blob of the read
	// Higher counts records that fail the filter only because their level is above the
	// lowest wanted one. It is a lower bound: unread blocks may have more.
	Higher int64
	// Examined counts the records that the read blobs have in all, by their metadata.
	Examined int64
	// More says that a limit left records out, or may have.
	More     bool
	Problems []error
	Warnings []error
	// Absent are the names of the query that are no service, beside others that are: nothing is
	// stored under them, and no record of [Query.Unflushed] is theirs. Nothing is missing because
	// of them. If there is no other name, the read fails with the error of the first.
	Absent []*NoServiceError
}

// Join adds the summary of another read of the same blobs. An error that both have counts once.
func (s *Summary) Join(o *Summary) {
	s.Records += o.Records
	s.Bytes += o.Bytes
	s.BlobsListed += o.BlobsListed
	s.BlobsOpened += o.BlobsOpened
	s.BlocksRead += o.BlocksRead
	s.BlocksSkipped += o.BlocksSkipped
	s.RuledOutByIDs += o.RuledOutByIDs
	s.RuledOutByWords += o.RuledOutByWords
	s.Requests += o.Requests
	s.Fetched += o.Fetched
	s.Decoded += o.Decoded
	s.Copies += o.Copies
	s.Unflushed += o.Unflushed
	s.Higher += o.Higher
	s.Examined += o.Examined
	s.More = s.More || o.More
	s.Problems, s.Warnings = joined(s.Problems, o.Problems), joined(s.Warnings, o.Warnings)
	for _, none := range o.Absent {
		if !slices.ContainsFunc(s.Absent, func(known *NoServiceError) bool { return known.Name == none.Name }) {
			s.Absent = append(s.Absent, none)
		}
	}
}

// joined returns errors with those of more that have other texts.
func joined(errs, more []error) []error {
	if len(errs) == 0 || len(more) == 0 {
		return append(errs, more...)
	}
	known := make(map[string]bool, len(errs))
	for _, err := range errs {
		known[err.Error()] = true
	}
	for _, err := range more {
		if text := err.Error(); !known[text] {
			known[text] = true
			errs = append(errs, err)
		}
	}
	return errs
}

// Problem is a part of the store that could not be read. Length 0 means all of the
// blob. It wraps the cause: storage.ErrNotExist for a blob that vanished after it was
// listed, a *blobfmt.CorruptError for damage.
type Problem struct {
	Blob           string
	Offset, Length int64
	Err            error
}

func (p *Problem) Error() string {
	if c := (*blobfmt.CorruptError)(nil); errors.As(p.Err, &c) {
		return p.Err.Error() // it has the place
	}
	if p.Length == 0 {
		return fmt.Sprintf("%s: %v", p.Blob, p.Err)
	}
	return fmt.Sprintf("%s: bytes %d to %d: %v", p.Blob, p.Offset, p.Offset+p.Length, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// BadQueryError is the reason that a [Query] is invalid.
type BadQueryError struct{ Err error }

func badQuery(format string, args ...any) error {
	return &BadQueryError{fmt.Errorf(format, args...)}
}

func (e *BadQueryError) Error() string { return e.Err.Error() }
func (e *BadQueryError) Unwrap() error { return e.Err }
