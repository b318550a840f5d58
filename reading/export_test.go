package reading

import (
	"context"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
)

// Filtered reads the records that a function accepts.
func (s *Store) Filtered(ctx context.Context, a Ask, accept func(line []byte) bool) (*Outcome, error) {
	q, err := a.query(nil)
	if err != nil {
		return nil, err
	}
	q.Filter.Accept = accept
	return s.ask(ctx, q, a.Live, false, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		return blobs.Newest(ctx, q, func([]byte) error { return nil })
	})
}

// Sifted returns the report of a follower of some names and globs, sifted.
func (s *Store) Sifted(asked []string, report func(*Report)) func(*Report) {
	o := unflushed.FollowOptions{Report: report}
	s.sift(&o, asked)
	return o.Report
}
