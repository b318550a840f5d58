// Package reading runs queries for clients of a server.
//
// Make one [Reader] for the process, and a [Client] of it for each request, by the token of the
// request. A Client narrows each query to the services that its token may read. So services
// that it may not read do not exist for it: they are in no list, no count and no error. Handlers
// get services from a Client and from nowhere else.
//
//	handler -> Client.Query -> services of the token -> newest.Gather -> query.Reader
//
// The package knows no protocol and answers no request.
package reading

import (
	"context"
	"errors"
	"slices"

	"blobtail/blobfmt"
	"blobtail/internal/access"
	"blobtail/internal/budget"
	guard "blobtail/internal/door"
	"blobtail/newest"
	"blobtail/query"
)

// Options are what a [Reader] reads. Blobs and Logs must be set.
type Options struct {
	Blobs *query.Reader
	Logs  *newest.Reader
}

// Reader reads one store for many clients. It may be used by several goroutines at once.
type Reader struct {
	o    Options
	door door
	all  lists
}

// New returns a Reader. It reads nothing yet.
func New(o Options) *Reader { return &Reader{o: o} }

// Client reads for the holder of a token.
type Client struct {
	r     *Reader
	token *access.Token
}

// For returns a client for the holder of a token; nil: for somebody who may read everything.
func (r *Reader) For(token *access.Token) *Client { return &Client{r, token} }

// May reports whether the client may read a service.
func (c *Client) May(service string) bool { return c.token == nil || c.token.MayRead(service) }

// BlobsAlone reports whether the operator wants no ingester to be asked. Then no answer has the
// records that are in no blob yet.
func (c *Client) BlobsAlone() bool { return c.r.o.Logs.Off() }

// Services are the services with records that the client may read, in order. Those in the
// logs of ingesters alone are among them, as far as they are found in a second. System services
// are too, if the client may read them. The list may be 5 s old.
func (c *Client) Services(ctx context.Context) ([]string, error) {
	all, err := c.r.all.get(ctx, c.r.services)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all.names), func(s string) bool { return !c.May(s) }), nil
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
	return &list{names: slices.Compact(stored), whole: whole || errors.Is(err, newest.ErrNobody)}, nil
}

// A Read reads the records of a completed query, as [query.Reader.Plan] and
// [query.Reader.Newest] do.
type Read func(blobs *query.Reader, q query.Query) (query.Summary, error)

// Query completes a query with unflushed records, narrows it to services that the client may
// read, and has read run it. read gets names instead of globs, after ingesters have been asked:
// those services that the query chooses. No service at all is no error: read is not called
// then. A service of which neither blobs nor ingesters have a record is absent in the summary, and
// so is one that the client may not read. Queries that come at the same time share requests.
func (c *Client) Query(ctx context.Context, q query.Query, mode newest.Mode, read Read) (*query.Outcome, error) {
	out, m := &query.Outcome{}, &member{asked: q.Services, mode: mode}
	var hidden []*query.NoServiceError
	var err error
	if q.Services, _, hidden, err = c.reach(q.Services); err != nil || len(q.Services) == 0 {
		return out, err
	}
	if m.choose = q.Choose; m.choose == nil {
		m.choose = func(string) bool { return true }
	}
	m.query = q
	defer c.r.door.leave()
	err = c.r.door.enter(ctx, m)
	defer m.shares.leave()
	if err != nil {
		return out, err
	}
	var told newest.Report
	if q, told, err = m.shares.gather(ctx, c.r.o.Logs, m); err != nil {
		return out, err
	}
	out = told.Outcome(nil)
	blobs := c.r.o.Blobs
	switch {
	case mode == newest.Only:
		blobs = query.Without(query.Options{})
	case m.of.party != nil:
		blobs = blobs.Over(m.of.party.Store)
	}
	if q.Services, err = c.named(ctx, blobs, m, q.Unflushed); err != nil || len(q.Services) == 0 {
		return out, err
	}
	q.Choose = nil // it has
	told.Gaps = slices.DeleteFunc(c.gapsOf(m.asked, told.Gaps), func(g query.Gap) bool { return !m.choose(g.Service) })
	if accept := q.Filter.Accept; accept != nil && budget.Of(ctx) == nil {
		// A block has thousands of records, and a filter may take a millisecond for each. With a
		// budget a filter looks at that.
		q.Filter.Accept = func(line []byte) bool { return ctx.Err() == nil && accept(line) }
	}
	sum, err := read(blobs, q)
	if ended := budget.Of(ctx).Err(); ended != nil {
		err = ended // which is why the read was interrupted, or what it made is not whole
	}
	exists := c.exists(ctx, out)
	*out = *told.Outcome(&sum)
	note(ctx, q, out)
	return out, c.settle(exists, out, hidden, err)
}

// note tells the guard of the request what was read for it.
func note(ctx context.Context, q query.Query, r *query.Outcome) {
	guard.NoteOf(ctx).Add(guard.Read{
		Services: q.Services, From: q.Range.From, To: q.Range.To, Bytes: r.Fetched, Records: r.Records, Incomplete: !r.Complete(),
	})
}

// Body reads one blob whole, as [query.Reader.Body] does. A blob of a service that the client
// may not read is a [*query.NoBlobError], and so is anything else in the store.
func (c *Client) Body(ctx context.Context, key string) (body []byte, warning, err error) {
	name, err := blobfmt.ParseName(key)
	if err != nil || !c.May(name.Service) {
		return nil, nil, &query.NoBlobError{Key: key}
	}
	return c.r.o.Blobs.Body(ctx, key)
}
