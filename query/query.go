// Package query reads records back out of a blob store: it finds the blobs that
// a read touches, fetches and decodes only the blocks that it needs, merges them
// in order and drops copies.
//
// Make a [Reader], ask it for a [Plan], then call [Plan.Read] for the lines,
// [Plan.Count] for their number, or [Plan.Histogram] for their numbers by time and
// level. A plan costs one LIST per service, of all that its range holds; it says
// how many bytes a read would fetch before anything is fetched. For the newest N
// there is [Reader.Newest], which makes no plan: it finds the newest hour by the
// names of directories, and lists from there back only as far as it must.
//
// Records that are in no blob yet, from wherever they come, are a [Loose] and
// named in the [Query]. A read merges them with the blobs as if they were stored.
//
// Days that have expired (package horizon) are hidden, whether their blobs are still
// there or not. A read is of what was there when it began, unless a day expires
// meanwhile: the rest of that is left out, and a warning says so. What a listing
// names may be deleted or compacted later, so a read that gets too old stops and says
// that it did.
//
// The order is (time, origin, index) everywhere. A record that is stored more
// than once, because a sender tried again, has the same time and the same bytes
// in each copy. So identities are looked at only where records of equal time
// meet in different blobs, and a read of blobs that do not overlap never does.
// Of a loose record there may be only the beginning; it gives way to the whole
// line, which is the one case of copies that differ.
//
// What cannot be read does not stop the rest: it is one of [Summary.Problems],
// and the result is then incomplete. An error is returned only where nothing
// more can be expected: the listing fails, the store refuses, the context ends.
//
// The package knows nothing of terminals. It never holds more than the blocks
// being merged and a bounded number ahead of them, except for a read of the
// newest N, which holds those N, and for what is loose, which has a bound too.
package query

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/blobfmt"
	"blobtail/horizon"
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

// Always is the range that everything is in.
func Always() Range { return Range{Oldest, Newest} }

// touches says whether anything from first to last, both included, may be in r.
func (r Range) touches(first, last int64) bool {
	return last >= r.From && (first < r.To || r.To == Newest)
}

// covers says whether all from first to last, both included, is in r.
func (r Range) covers(first, last int64) bool {
	return first >= r.From && (last < r.To || r.To == Newest)
}

// Bounded says whether either end is given.
func (r Range) Bounded() bool { return r.From != Oldest || r.To != Newest }

// Query says what to read.
type Query struct {
	// Services are names, or globs as of path.Match. A glob matches a system
	// name such as _rejected only if it begins with "_" itself.
	Services []string
	Range    Range
	Filter   Filter
	Limit    int  // only the newest so many; 0 for all
	First    int  // only the oldest so many; 0 for all. Not together with Limit
	Reverse  bool // newest first
	// Loose are records beside those of the blobs, sealed. Their services are
	// services, whether anything is stored of them or not; those of services that
	// are not asked for are left out.
	Loose []*Loose
	// Expired is what the caller knows to have expired of the services, and of which
	// it has left nothing in Loose; nil: the plan looks itself.
	Expired horizon.Horizons
}

// Options tune a [Reader]. The zero value is what a command wants.
type Options struct {
	Workers    int   // blocks decoded at once; 0: GOMAXPROCS
	GroupBytes int64 // most bytes of one ranged GET of blocks; 0: 8 MiB
	// MaxAge is how old a read may get: half of the time that lies between hiding
	// and deleting, and between compacting and deleting. 0: 30 min.
	MaxAge time.Duration
}

// Reader reads one store. It may be used by several goroutines at once.
type Reader struct {
	store storage.BlobStore
	opt   Options
}

// New returns a reader of store. It does nothing yet.
func New(store storage.BlobStore, o Options) *Reader {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.GroupBytes <= 0 {
		o.GroupBytes = 8 << 20
	}
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	return &Reader{store: store, opt: o}
}

// Summary is what a read did. Problems make it incomplete; warnings do not.
type Summary struct {
	Records, Bytes            int64 // given out
	BlobsListed, BlobsOpened  int64
	BlocksRead, BlocksSkipped int64 // skipped: in an opened blob, but ruled out by its index
	Requests, Fetched         int64 // GETs after the listing, and their bytes
	Copies                    int64 // records not given out because they had been already
	Loose                     int64 // of those given out, or counted, the ones that no blob read holds
	Replaced                  int64 // blobs ignored because a compacted blob replaces them
	Expired                   int64 // blobs ignored because their day has expired
	Foreign                   int64 // objects under a service that are no blobs of ours
	// Higher counts records that matched in all but their level, which is above
	// the lowest one asked for. It is a lower bound: what was not read is not in it.
	Higher int64
	// More says that a limit left something out, or may have.
	More     bool
	Problems []error
	Warnings []error
}

// add adds what another read, or part of one, did.
func (s *Summary) add(o *Summary) {
	s.Records += o.Records
	s.Bytes += o.Bytes
	s.BlobsListed += o.BlobsListed
	s.BlobsOpened += o.BlobsOpened
	s.BlocksRead += o.BlocksRead
	s.BlocksSkipped += o.BlocksSkipped
	s.Requests += o.Requests
	s.Fetched += o.Fetched
	s.Copies += o.Copies
	s.Loose += o.Loose
	s.Replaced += o.Replaced
	s.Expired += o.Expired
	s.Foreign += o.Foreign
	s.Higher += o.Higher
	s.More = s.More || o.More
	s.Problems = append(s.Problems, o.Problems...)
	s.Warnings = append(s.Warnings, o.Warnings...)
}

// Complete says that everything asked for was read.
func (s *Summary) Complete() bool { return len(s.Problems) == 0 }

// Problem is a part of the store that could not be read. Length 0 means all of
// the blob. It wraps what happened: storage.ErrNotExist for a blob that vanished
// after it was listed, a *blobfmt.CorruptError for damage.
type Problem struct {
	Blob           string
	Offset, Length int64
	Err            error
}

func (p *Problem) Error() string {
	if c := (*blobfmt.CorruptError)(nil); errors.As(p.Err, &c) {
		return p.Err.Error() // it says where
	}
	if p.Length == 0 {
		return fmt.Sprintf("%s: %v", p.Blob, p.Err)
	}
	return fmt.Sprintf("%s: bytes %d to %d: %v", p.Blob, p.Offset, p.Offset+p.Length, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// NoServiceError says that nothing is stored under a name or glob.
type NoServiceError struct {
	Name string
	// Near is a service of a similar name, or "".
	Near string
}

func (e *NoServiceError) Error() string {
	if strings.ContainsAny(e.Name, globChars) {
		return fmt.Sprintf("no service matches %q", e.Name)
	}
	return fmt.Sprintf("no service %q", e.Name)
}

// BadQueryError says what in a [Query] cannot be.
type BadQueryError struct{ Err error }

func (e *BadQueryError) Error() string { return e.Err.Error() }
func (e *BadQueryError) Unwrap() error { return e.Err }

// counters are the parts of a Summary that several goroutines add to.
type counters struct {
	opened, blocksRead, blocksSkipped atomic.Int64
	requests, fetched, higher         atomic.Int64
}

func (c *counters) addTo(s *Summary) {
	s.BlobsOpened += c.opened.Load()
	s.BlocksRead += c.blocksRead.Load()
	s.BlocksSkipped += c.blocksSkipped.Load()
	s.Requests += c.requests.Load()
	s.Fetched += c.fetched.Load()
	s.Higher += c.higher.Load()
}
