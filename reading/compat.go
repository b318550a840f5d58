package reading

import (
	"context"

	"blobtail/newest"
	"blobtail/query"
)

// Client, Read, Query, Services and the followers of this file are the door as it was. They go with
// the last handler that uses them.
type Client = Store

// Read reads the records of a completed query.
type Read func(blobs *query.Reader, q query.Query) (query.Summary, error)

// Query is [Store.Records] with a function that reads.
func (s *Store) Query(ctx context.Context, q query.Query, mode newest.Mode, read Read) (*query.Outcome, error) {
	return s.ask(ctx, q, mode, true, func(_ context.Context, blobs *query.Reader, q query.Query) (query.Summary, error) {
		if q.Services = named(&q); len(q.Services) == 0 {
			return query.Summary{}, nil
		}
		return read(blobs, q)
	})
}

// FollowQuery is [Store.Follow].
func (s *Store) FollowQuery(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error) {
	return s.followQuery(ctx, o)
}

// FollowAll is [Store.Follow] for chosen services.
func (s *Store) FollowAll(ctx context.Context, o newest.FollowOptions, wanted func(service string) bool) (newest.Cursor, error) {
	o.Query.Services, o.Query.Choose = []string{"*", "_*"}, wanted
	return s.followQuery(ctx, o)
}
