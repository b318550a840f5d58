package reading

import (
	"context"
	"slices"

	"blobtail/internal/access"
	"blobtail/newest"
	"blobtail/record"
)

// FollowAll is [Client.Follow] for all services for which wanted is true, now and later. The
// services of the query do not count.
func (c *Client) FollowAll(ctx context.Context, o newest.FollowOptions, wanted func(service string) bool) (newest.Cursor, error) {
	o.Query.Services = []string{"*", "_*"}
	if c.token != nil && c.token.Role != access.Peer {
		o.Query.Services = slices.Clone(c.token.Read)
	}
	if len(o.Query.Services) == 0 {
		<-ctx.Done()
		return newest.Cursor{}, ctx.Err()
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
