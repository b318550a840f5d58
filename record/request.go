package record

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"blobtail/record/ack"
)

// Line is one canonical line of a Request.
type Line struct {
	Time    int64  // effective time, Unix nanoseconds
	Off     uint32 // offset in Request.Data
	Len     uint32 // its length with the newline
	Service uint32 // index into Request.Services
	Shift   int32  // its place in the body less its own number in Request.Lines; see [Request.Index]
}

// Request is the output of a source: the accepted lines of one HTTP request, of one
// part of a long body, or of one message. The lines are in the order of the input.
// The receiver owns nothing in it after its call returns, so a source may reuse the
// memory.
type Request struct {
	// Origin identifies the request, also when it is sent again. For the zero origin,
	// its place in the log becomes its origin.
	Origin Origin
	// Sum is the XXH3-64 of the request's path, a zero byte and the request's part of
	// the decoded body (1 in place of 0) when the origin comes from a key, so that the
	// same key with another body or path is detected; otherwise 0.
	Sum uint64
	// Outcome distinguishes a repeat from another reading of the same body. It is left
	// zero if there is no origin, or if the outcome is a function of that.
	Outcome Outcome
	// DefaultTime is the time, in Unix nanoseconds, of the records without their own,
	// when the origin comes from a key; otherwise 0.
	DefaultTime int64
	// Services are the names for Line.Service, folded, each once.
	Services []string
	// Lacks counts the lines that lack a part of the head, by service; it may be shorter than
	// Services.
	Lacks []Lacks
	Lines []Line
	Data  []byte
	// Reply is set for a message: the subject for reporting its outcome to its server.
	// The server keeps a message until it is stored, so the source does not wait for
	// it. A request without Reply is durable once it is in the log.
	Reply string
	// Came is when another ingester accepted the request, of one from its log; else zero. Such a
	// request may be a part of the one that was sent, so it is no repeat of another.
	Came time.Time
}

// Lacks counts lines that lack a part of the head, or have fields for it that could not be read.
type Lacks struct {
	Time        uint32 // those without a time of their own
	TimeUnread  uint32 // those with a field for the time that could not be read
	LevelUnread uint32 // those without a level, and with a field for it that could not be read
	TimeFar     uint32 // those of Time with a guessed time that was too far off
}

// Count counts the line of a stamp.
func (l *Lacks) Count(s *Stamp) {
	if !s.OwnTime {
		l.Time++
	}
	if s.TimeUnread {
		l.TimeUnread++
	}
	if s.LevelUnread {
		l.LevelUnread++
	}
	if s.TimeFar && !s.OwnTime {
		l.TimeFar++
	}
}

// Add adds the counts of other lines.
func (l *Lacks) Add(m Lacks) {
	l.Time += m.Time
	l.TimeUnread += m.TimeUnread
	l.LevelUnread += m.LevelUnread
	l.TimeFar += m.TimeFar
}

// Index is the index of line i's identity: its place among the records of the
// request's part of the body, counted from 0, rejected ones included. So it depends
// on the body alone, and not on the acceptance of other records.
func (r *Request) Index(i uint32) uint32 { return i + uint32(r.Lines[i].Shift) }

// Earliest is the least time of its records, in Unix nanoseconds; math.MaxInt64 if it has
// none.
func (r *Request) Earliest() int64 {
	earliest := int64(math.MaxInt64)
	for i := range r.Lines {
		earliest = min(earliest, r.Lines[i].Time)
	}
	return earliest
}

// Receipt is the answer to an accepted Request.
type Receipt struct {
	// Duplicate says that a request with this origin and outcome was accepted before.
	Duplicate bool
	// Expired is how many records were left out because their days have been dropped;
	// those of [RejectedService] are not counted. For a repeat it is the number of the
	// first time.
	Expired int
	// Ack is the least level for which a sender that is answered has to wait.
	Ack ack.Level
	// Wait returns nil once the request is durable: in the log, or with stored set, in
	// a blob. It may be called more than once and from any goroutine.
	Wait func(ctx context.Context, stored bool) error
	// Shipped is the Wait of [ack.Shipped]. Its error may be [ack.ErrDisk]. nil: the log is not shipped.
	Shipped func(ctx context.Context) error
}

// Reached returns nil once the request is where the level says. It may be called like Wait.
func (r *Receipt) Reached(ctx context.Context, level ack.Level) error {
	if level == ack.Shipped && r.Shipped != nil {
		return r.Shipped(ctx)
	}
	return r.Wait(ctx, level > ack.Disk) // what is in a blob survives the disk too
}

var (
	// ErrFull says that the log is full for now, or a disk that a request needs. The request
	// is worth sending again later.
	ErrFull = errors.New("the log is full")
	// ErrUnheld says that nothing can be accepted now, because readers could not know
	// of it, the log may belong to another store, or its disk fails to write. The request
	// is worth sending again later.
	ErrUnheld = errors.New("nothing can be taken now")
	// ErrKeyReused says that the request's key came before with another body.
	ErrKeyReused = errors.New("the idempotency key was used with another body")
)

// Outcome is the result of a source's processing of a request. Two requests of one
// origin with different outcomes are not the same: another reading of a body, or
// another clock, accepts other records of it. The zero Outcome says that the origin
// alone is enough.
type Outcome struct {
	// Accepted and Rejected count the records of each kind, including expired ones.
	Accepted, Rejected uint32
	// Sum is a checksum of the accepted lines: of the time, length, service and place
	// of each, since the origin covers their bytes; 0: it is not known.
	Sum uint64
}

// Same reports whether the outcomes are the same, as far as both are known.
func (o Outcome) Same(p Outcome) bool {
	if o == (Outcome{}) || p == (Outcome{}) {
		return true
	}
	return o.Accepted == p.Accepted && o.Rejected == p.Rejected && (o.Sum == p.Sum || o.Sum == 0 || p.Sum == 0)
}

// EarlierError says that a request with this key and body came before, and that its
// records without their own times got another time than now. The caller gives them
// that time, and the request that origin, and submits it again: then they are the
// same records.
type EarlierError struct {
	Origin      Origin
	DefaultTime int64 // Unix nanoseconds
}

// Error includes the time for the records without times.
func (e *EarlierError) Error() string {
	return fmt.Sprintf("the request came before, as %s; its records without times got %s then", e.Origin, AppendTime(nil, e.DefaultTime))
}
