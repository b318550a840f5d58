package reading

import (
	"context"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
)

// Doubts returns why [Store.Names] may lack services: an ingester that holds records cannot
// be asked. The error is that of ctx.
func (s *Store) Doubts(ctx context.Context) ([]error, error) {
	g, err := s.r.o.Logs.Gather(ctx, blobs.Query{
		Services: []string{"*"}, Range: blobs.Range{From: time.Now().UnixNano(), To: blobs.Newest}, Limit: 1,
	}, unflushed.Auto)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Report.Problems, nil
}
