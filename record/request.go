package record

import (
	"context"
	"errors"
)

// Line is one canonical line of a Request.
type Line struct {
	Time    int64  // effective time, Unix nanoseconds
	Off     uint32 // where the line begins in Request.Data
	Len     uint32 // its length with the newline
	Service uint32 // index into Request.Services
	Shift   int32  // its place in the body less its own number in Request.Lines; see [Request.Index]
}

// Request is what a source hands over: the accepted lines of one HTTP request,
// of one part of a long body, or of one message. The lines stand in the order
// of the input. The receiver owns nothing in it after the call that took it
// returns, so a source may use the memory again.
type Request struct {
	// Origin identifies the request wherever it is sent again. The zero origin
	// means that its place in the log becomes its origin.
	Origin Origin
	// Sum is the XXH3-64 of the request's path, a zero byte and the part of the
	// decoded body that it is made of (1 in place of 0) when the origin comes from a
	// key, so that the same key with another body or path is found out; else 0.
	Sum uint64
	// Outcome tells a repeat from another reading of the same body. It is left zero
	// where there is no origin, or where the outcome is a function of that.
	Outcome Outcome
	// DefaultTime is the time, in Unix nanoseconds, that records without one got, when
	// the origin comes from a key; else 0.
	DefaultTime int64
	// Services are the names that Lines refer to, folded, each once.
	Services []string
	Lines    []Line
	Data     []byte
	// Reply is set on a message: the subject on which its server is told what
	// became of it. The server keeps a message until it is stored, so it is not
	// waited for; a request without Reply is durable once it is in the log.
	Reply string
}

// Index is the index of line i's identity: its place among the records of the
// request's part of the body, counted from 0, rejected ones included. So it depends
// on the body alone, and not on what else of the body was taken.
func (r *Request) Index(i uint32) uint32 { return i + uint32(r.Lines[i].Shift) }

// Receipt is the answer to a Request that was taken.
type Receipt struct {
	// Duplicate says that a request with this origin and outcome was taken before.
	Duplicate bool
	// Expired is how many records were not taken, because they are of days that have
	// been dropped; those of [RejectedService] are not counted. Of a repeat it is how
	// many they were the first time.
	Expired int
	// Wait returns nil once the request is durable: in the log, or with stored
	// set, in a blob. It may be called more than once and from any goroutine.
	Wait func(ctx context.Context, stored bool) error
}

var (
	// ErrFull says that no more can be taken now and that the request is worth
	// sending again later.
	ErrFull = errors.New("the log is full")
	// ErrUnheld says that nothing can be taken now, because readers could not know of
	// it or the log may belong to another store, and that the request is worth sending
	// again later.
	ErrUnheld = errors.New("nothing can be taken now")
	// ErrKeyReused says that the request's key came before with another body.
	ErrKeyReused = errors.New("the idempotency key was used with another body")
)
