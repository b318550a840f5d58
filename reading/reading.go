// Package reading is the door to records: the commands, the servers and the clients read through it.
//
// A question is an [Ask]. A [Source] answers it, by records or by numbers, and then by an [Outcome],
// which alone says whether anything is missing. There are two sources: a [Store], which reads a store
// with its ingesters, perhaps with workers (package fan), and a server that does so for others
// (package remote).
//
//	flags, parameters, LogQL -> Ask -> Source -+-> Store: gather (unflushed), list, plan, merge (blobs)
//	                                           +-> a server, over HTTP
//	                                           -> records, then one Outcome
//
// Make one [Reader] for the process, and a [Store] of it for each request, by the token of the
// request. A Store narrows each question to the services that its token may read. So services
// that it may not read do not exist for it: they are in no list, no count and no error. Services
// are resolved once, after ingesters were asked, for names, globs, selectors and tokens alike.
//
// The package knows no protocol and answers no request.
//
// # Sharing
//
// A server reads for many clients, and its answers must be as complete as those of the command.
// It keeps nothing between reads but three things that cannot become wrong: decoded indexes of
// blobs (package indexcache) and what filters found in blocks ([blobs.Options]), because a blob
// never changes, and the list of all services for 5 s, for clients that ask for that list. No read rests on the list. A read of a glob, or of the
// services that a LogQL selector chooses, finds them after it has gathered unflushed records,
// among those of the records and of the store.
//
// Reads that come at the same time share requests. They begin together as a company (bursts.go).
// The first one waits for as many as came in the last burst, for 5 ms at most. So a lone read
// never waits, and the second refresh of a dashboard is one company. The members with equal
// services, and with ranges that end in the same hours, share one question to the ingesters, one
// look at the horizons, and the unflushed records. A query for the newest records asks for
// itself: the newest of two ranges together are not the newest of each. All members share
// listings (package together).
//
// A listing or an answer is shared only if it began after each of its readers came, and a
// listing only if it began after each had its unflushed records. So sharing does not change the
// result of a read. Only services that a token may read are asked for, and reads share unflushed
// records only if they ask for the same services. So nothing of a hidden service comes near a
// read that may not see it.
//
// Reads also share the workers that decode blocks, and the memory of those that have ended.
// While many are at work, each holds fewer fetched bytes: eight reads of everything at once stay
// under 500 MB. [blobs.Query] bounds the bytes that one read decodes (MaxRaw).
package reading

import (
	"context"
	"errors"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/access"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
)

// Options are the sources of a [Reader], and its bounds. Blobs and Logs must be set.
type Options struct {
	Blobs *blobs.Reader
	Logs  *unflushed.Reader
	// Name is the user's name for the store.
	Name string
	// Ingesters lists the rows of the ingesters; nil: it is not possible.
	Ingesters Ingesters
	// MaxRaw is the most bytes of lines that a read may decode, and MaxHeld the most that it may put
	// aside because it finds the newest first; 0: any number. Followers have no such bounds.
	MaxRaw, MaxHeld int64
	// Sharing has others read parts of questions that read much; nil: nobody does.
	Sharing Sharing
}

// Ingesters lists the rows of a store's ingesters, as [Source.Ingesters] does.
type Ingesters func(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error)

// Reader reads one store for many clients. It may be used by several goroutines at once.
type Reader struct {
	o       Options
	bursts  bursts
	all     lists
	indexes *indexes // nil: none are kept
}

// New returns a Reader. It reads nothing yet.
func New(o Options) *Reader { return &Reader{o: o} }

// Forget drops what is kept of erased records, until ctx ends: see [blobs.Reader.Forget].
func (r *Reader) Forget(ctx context.Context) { r.o.Blobs.Forget(ctx) }

// Store is a [Source] that reads for the holder of a token.
type Store struct {
	r     *Reader
	token *access.Token
}

var _ Source = (*Store)(nil)

// For returns the store for the holder of a token; nil: for a reader of everything.
func (r *Reader) For(token *access.Token) *Store { return &Store{r, token} }

// String implements [Source].
func (s *Store) String() string { return s.r.o.Name }

// May reports whether the holder of the token may read a service.
func (s *Store) May(service string) bool { return s.token == nil || s.token.MayRead(service) }

// BlobsAlone reports whether the operator wants no ingester to be asked. Then no answer has the
// records that are in no blob yet.
func (s *Store) BlobsAlone() bool { return s.r.o.Logs.Off() }

// Names implements [Source]. Those in the logs of ingesters alone are among them, as far as they
// are found in a second. System services are too, if the holder of the token may read them. The
// list may be 5 s old.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	all, err := s.r.all.get(ctx, s.r.services)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all.names), func(name string) bool { return !s.May(name) }), nil
}

// services lists all services, in order.
func (r *Reader) services(ctx context.Context) (*list, error) {
	stored, err := r.o.Blobs.Services(ctx, []string{"*", "_*"})
	if err != nil {
		return nil, err
	}
	held, whole, err := r.o.Logs.Services(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	stored = append(stored, held...)
	slices.Sort(stored)
	return &list{names: slices.Compact(stored), whole: whole || errors.Is(err, unflushed.ErrNobody)}, nil
}

// Ingesters implements [Source]. A holder who may not read all services gets no hosts and addresses,
// and no times of unflushed records.
func (s *Store) Ingesters(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error) {
	if s.r.o.Ingesters == nil {
		return nil, time.Time{}, nil, errors.ErrUnsupported
	}
	rows, now, unread, err = s.r.o.Ingesters(ctx)
	if !s.mayAll("*") {
		// Their times are those of records that the holder may not read.
		rows = slices.Clone(rows)
		for i := range rows {
			rows[i].Host, rows[i].Address, rows[i].Oldest, rows[i].Floor = "", "", time.Time{}, time.Time{}
		}
	}
	return rows, now, unread, err
}

// Body implements [Source], as [blobs.Reader.Body] does. A blob of a service that the holder of the
// token may not read is a [*NoBlobError], and so is anything else in the store.
func (s *Store) Body(ctx context.Context, key string) (body []byte, warning, err error) {
	name, err := blobfmt.ParseName(key)
	if err != nil || !s.May(name.Service) {
		return nil, nil, &NoBlobError{Key: key}
	}
	return s.r.o.Blobs.Body(ctx, key)
}
