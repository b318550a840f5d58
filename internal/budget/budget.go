// Package budget bounds one query: the bytes that it holds at once, and the time for which it
// works.
//
// A server has one [Pool]. [Pool.Begin] gives a query its [Budget], in the context of the query.
// Code that holds bytes for a query takes them with [Budget.Take] before it makes them, and gives
// them back with [Budget.Give]. For bytes that it can do without, such as the further lines of an
// answer, it uses [Budget.Try]. Code with a loop that a query can make long looks at [Budget.Err]
// in it. The bytes that a worker makes of one record are in a [Share].
//
//	Pool.Begin -> context -> Of -> Take, Try, Give, Err
//	                            -> Share, for each worker -> Take, Release
//
// A budget ends once, by the first bytes that it does not have, or with its context. After that
// Err has the reason, all further bytes are refused, and the context of the query is over. So a
// worker need not report missing results: the code that answers the query asks Err before.
//
// A nil *Budget has no bounds. The package knows no record and no protocol.
//
// # Bounds
//
// A template of 60 bytes can make lines of 1 MiB, a field may be asked for a thousand times, and
// a loop in a loop has no end. These rules hold:
//
//   - Bytes that are held are taken before they are made: values that stages make of a record,
//     variables of templates and of where, compiled expressions, series, lines that wait. A query
//     that would hold more is refused with both figures. Queries share a pool beyond the first
//     megabytes that each has for sure, so many at once stay bounded too.
//   - Bytes of parts that may be left out are only tried for. As many lines of an answer come as
//     fit, the newest first, with a warning. Lines that come in the other order than they are found
//     wait in a file.
//   - Much may be made of one record at a time only. The other workers of the query wait. So the
//     number of CPUs does not decide how much a query may make of a record.
//   - A loop ends with the deadline and with the client. A worker then makes nothing more and
//     reports nothing. The code that answers asks the budget first, so half an answer is never one.
//   - The libraries below have no bounds of their own. A template gets functions that take the
//     bytes that they make. Each part of an expression of where that makes or repeats something
//     becomes a call of such a function (internal/where/bounds.go); a fuzz target compares the
//     results with those of the language. A regular expression is compiled for the budget, with
//     an estimate of its memory, and a match that may take long reads its text character by
//     character.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"blobtail/internal/units"
)

// The defaults of [Limits].
const (
	DefaultQuery = 96 << 20
	DefaultSure  = 2 << 20
	DefaultAll   = 192 << 20
)

// Limits are the bytes that queries may hold. Each zero stands for its default.
type Limits struct {
	// Query is how much one query holds at most.
	Query int64
	// Sure is how much of that each query has in any case, however much others hold.
	Sure int64
	// All is how much all queries of a pool hold beyond that, together.
	All int64
}

// A Pool is the memory that the queries of a process may hold together.
type Pool struct {
	limits Limits
	taken  atomic.Int64
}

// NewPool returns a pool for any number of queries.
func NewPool(l Limits) *Pool {
	l.Query = cmp.Or(l.Query, DefaultQuery)
	l.Sure = min(cmp.Or(l.Sure, DefaultSure), l.Query)
	l.All = cmp.Or(l.All, DefaultAll)
	return &Pool{limits: l}
}

// Alone returns a pool for the one query of a process, which may hold so many bytes.
func Alone(most int64) *Pool { return NewPool(Limits{Query: most, Sure: most}) }

// Error says that a query would hold more than it may.
type Error struct {
	Bytes, Limit int64
}

// Error names both figures.
func (e *Error) Error() string {
	return fmt.Sprintf("the query makes too much at once (query: %s or more, limit: %s): fewer or shorter lines, labels and texts of templates, or fewer records, need less",
		rounded(e.Bytes), units.Size(e.Limit))
}

// rounded is a number of bytes, rounded up to whole MiB from 1 MiB on.
func rounded(n int64) units.Size {
	const unit = 1 << 20
	if n < unit {
		return units.Size(n)
	}
	return units.Size((n + unit - 1) / unit * unit)
}

// BusyError says that a query needs bytes that other queries hold.
type BusyError struct {
	Limit int64 // of all queries
}

// Error names the limit.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the queries under way hold %s together, which is the limit; ask again in a moment", units.Size(e.Limit))
}

// A Budget is the memory that one query may hold. Several goroutines may use it at once.
type Budget struct {
	pool *Pool
	ctx  context.Context // that of the query, which ends with the budget
	end  context.CancelCauseFunc
	held atomic.Int64
	over atomic.Bool
	why  atomic.Pointer[error] // nil: the context has the reason
	// alone has the one place for a worker that makes much of a record.
	alone chan struct{}
	quiet func() bool
}

// key is the key of a budget in a context.
type key struct{}

// Begin returns the budget of a query, and a context that has it and ends with it. The caller ends
// the budget when nothing of the query is left.
func (p *Pool) Begin(ctx context.Context) (context.Context, *Budget) {
	b := &Budget{pool: p, alone: make(chan struct{}, 1)}
	ctx, b.end = context.WithCancelCause(ctx)
	b.ctx = context.WithValue(ctx, key{}, b)
	b.quiet = context.AfterFunc(ctx, func() { b.over.Store(true) })
	return b.ctx, b
}

// Of returns the budget in a context; nil if there is none.
func Of(ctx context.Context) *Budget {
	b, _ := ctx.Value(key{}).(*Budget)
	return b
}

// Without returns a context without a budget, for work that several queries share.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, (*Budget)(nil))
}

// End gives all back. Nothing of the query may be held after it.
func (b *Budget) End() {
	b.quiet()
	b.Give(b.held.Load())
	b.end(nil)
}

// Err is the reason why the budget has ended; nil: it has not. It costs next to nothing.
func (b *Budget) Err() error {
	if b == nil || !b.over.Load() {
		return nil
	}
	if why := b.why.Load(); why != nil {
		return *why
	}
	return b.ctx.Err()
}

// Take takes bytes. The error is that of Err: an [*Error], a [*BusyError], or that of the context.
func (b *Budget) Take(n int64) error {
	if b == nil {
		return nil
	}
	if err := b.Err(); err != nil {
		return err
	}
	held, all := b.take(n)
	switch {
	case held > b.pool.limits.Query:
		b.Give(n)
		return b.fail(&Error{held, b.pool.limits.Query})
	case all > b.pool.limits.All:
		b.Give(n)
		return b.fail(&BusyError{b.pool.limits.All})
	}
	return nil
}

// Fits is Take for bytes that go on to a client as they are made: nothing is held, and only those of
// one query are too many.
func (b *Budget) Fits(n int64) error {
	if b == nil {
		return nil
	}
	if err := b.Err(); err != nil {
		return err
	}
	if n > b.pool.limits.Query {
		return b.fail(&Error{n, b.pool.limits.Query})
	}
	return nil
}

// Try takes bytes if the query then holds no more than [Budget.Spare], and if half of the bytes
// that the queries share is left for others that cannot do without. Otherwise the caller does
// without them, and the budget goes on.
func (b *Budget) Try(n int64) bool {
	if b == nil {
		return true
	}
	held, all := b.take(n)
	if held <= b.Spare() && all <= b.pool.limits.All/2 && b.Err() == nil {
		return true
	}
	b.Give(n)
	return false
}

// take counts bytes. It returns those of the query, and those that all queries have beyond the
// sure ones if this one has some.
func (b *Budget) take(n int64) (held, all int64) {
	held = b.held.Add(n)
	if more := b.beyond(held) - b.beyond(held-n); more > 0 {
		all = b.pool.taken.Add(more)
	}
	return held, all
}

// beyond is how much of so many bytes is from the pool.
func (b *Budget) beyond(held int64) int64 { return max(0, held-b.pool.limits.Sure) }

// Give gives bytes back that were taken.
func (b *Budget) Give(n int64) {
	if b == nil || n == 0 {
		return
	}
	held := b.held.Add(-n)
	b.pool.taken.Add(b.beyond(held) - b.beyond(held+n))
}

// Spare is how many bytes the query may hold by [Budget.Try]: a third, because its workers need
// room too.
func (b *Budget) Spare() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return max(b.pool.limits.Query/3, b.pool.limits.Sure)
}

// fail ends the budget, and returns the reason: err, or an earlier one.
func (b *Budget) fail(err error) error {
	b.why.CompareAndSwap(nil, &err)
	b.over.Store(true)
	b.end(*b.why.Load())
	return *b.why.Load()
}

// slack is how much of a record a share holds without asking. Most records need less.
const slack = 64 << 10

// A Share is the memory that one worker of a query holds for the record at which it works. Much
// may be made of one record at a time only. So the number of workers does not decide how much a
// query may make of a record. The zero value, and one of a nil budget, has no bounds.
type Share struct {
	of         *Budget
	used, paid int64
	alone      bool
}

// Share returns an empty share, for one goroutine.
func (b *Budget) Share() Share { return Share{of: b} }

// Take takes bytes for the record. It waits while another worker of the query holds much.
func (s *Share) Take(n int) error {
	if s.used += int64(n); s.used-s.paid <= slack {
		return nil
	}
	return s.pay()
}

// pay takes the bytes of the share from the budget.
func (s *Share) pay() error {
	b := s.of
	if b == nil {
		return nil
	}
	if !s.alone && s.used > b.much() {
		select {
		case b.alone <- struct{}{}:
			s.alone = true
		case <-b.ctx.Done():
			b.over.Store(true)
			return b.Err()
		}
	}
	n := s.used - s.paid
	if err := b.Take(n); err != nil {
		return err
	}
	s.paid += n
	return nil
}

// much is the size from which on only one record at a time may be: twice as many workers as there
// are CPUs hold half of the budget below it.
func (b *Budget) much() int64 {
	return b.pool.limits.Query / int64(4*runtime.GOMAXPROCS(0))
}

// Used is how many bytes the share holds, for Back.
func (s *Share) Used() int64 { return s.used }

// Back gives back all that was taken since the share held so many bytes.
func (s *Share) Back(used int64) {
	s.used = used
	if s.paid > used+slack {
		s.of.Give(s.paid - used)
		s.paid = used
	}
}

// Release gives all back, when nothing of the record is left.
func (s *Share) Release() {
	s.of.Give(s.paid)
	s.used, s.paid = 0, 0
	if s.alone {
		<-s.of.alone
		s.alone = false
	}
}
