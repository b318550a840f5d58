package reading

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"blobtail/internal/access"
	guard "blobtail/internal/door"
	"blobtail/internal/globset"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/record"
)

// Follow emits records as they are acknowledged, as [newest.Reader.Follow] does, of the
// services that the client may read. Services that appear later are among them if a glob of
// the query matches them.
func (c *Client) Follow(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error) {
	asked := o.Query.Services
	services, exact, hidden, err := c.reach(asked)
	if err != nil {
		return newest.Cursor{}, err
	}
	if len(hidden) > 0 && o.Report != nil {
		o.Report(&newest.Report{Absent: hidden})
	}
	if len(services) == 0 { // no service that it may read will ever match
		return newest.Cursor{}, idle(ctx, o)
	}
	if o.Query.Services = services; !exact {
		c.sift(&o, asked)
	}
	if report := o.Report; report != nil {
		o.Report = func(r *newest.Report) {
			for _, none := range r.Absent {
				c.scrub(none)
			}
			report(r)
		}
	}
	cursor, err := c.follow(ctx, o)
	if none, ok := errors.AsType[*query.NoServiceError](err); ok {
		c.scrub(none)
	}
	return cursor, err
}

// idle is a follower that nothing will come to.
func idle(ctx context.Context, o newest.FollowOptions) error {
	if o.Once {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// follow emits records, and tells the guard of the request how many.
func (c *Client) follow(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error) {
	read := guard.Read{Services: o.Query.Services, From: o.Query.Range.From, To: o.Query.Range.To}
	defer func() { guard.NoteOf(ctx).Add(read) }()
	if emit := o.Emit; emit != nil {
		o.Emit = func(lines []byte) error {
			read.Records += int64(bytes.Count(lines, []byte("\n")))
			return emit(lines)
		}
	}
	if visit := o.Visit; visit != nil {
		o.Visit = func(e *record.Entry) error {
			read.Records++
			return visit(e)
		}
	}
	return c.r.o.Logs.Follow(ctx, o)
}

// sift drops what a follower gets of services that the query does not ask for.
func (c *Client) sift(o *newest.FollowOptions, asked []string) {
	wanted := globset.New(asked)
	of := func(service string) bool { return len(wanted.Match(service)) > 0 && c.May(service) }
	accept, report := o.Query.Filter.Accept, o.Report
	o.Query.Filter.Accept = func(line []byte) bool {
		service, ok := record.LineService(line)
		return ok && of(string(service)) && (accept == nil || accept(line))
	}
	if report == nil {
		return
	}
	o.Report = func(r *newest.Report) {
		kept := *r
		if kept.Gaps = c.gapsOf(asked, r.Gaps); len(kept.Gaps) > 0 || len(r.Gaps) == 0 {
			report(&kept)
		}
	}
}

// FollowAll is [Client.Follow] for all services for which wanted is true, now and later. The
// services of the query do not count.
func (c *Client) FollowAll(ctx context.Context, o newest.FollowOptions, wanted func(service string) bool) (newest.Cursor, error) {
	o.Query.Services = []string{"*", "_*"}
	if c.token != nil && c.token.Role != access.Peer {
		o.Query.Services = slices.Clone(c.token.Read)
	}
	if len(o.Query.Services) == 0 {
		return newest.Cursor{}, idle(ctx, o)
	}
	accept, report := o.Query.Filter.Accept, o.Report
	o.Query.Filter.Accept = func(line []byte) bool {
		service, ok := record.LineService(line)
		return ok && wanted(string(service)) && c.May(string(service)) && (accept == nil || accept(line))
	}
	if report != nil {
		o.Report = func(r *newest.Report) {
			r.Gaps = slices.DeleteFunc(r.Gaps, func(g newest.Gap) bool { return !wanted(g.Service) || !c.May(g.Service) })
			report(r)
		}
	}
	return c.follow(ctx, o)
}
