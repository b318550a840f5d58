package reading

import (
	"context"
	"time"

	"blobtail/newest"
	"blobtail/query"
)

// Doubts returns why [Store.Names] may lack services: an ingester that holds records cannot
// be asked. The error is that of ctx.
func (s *Store) Doubts(ctx context.Context) ([]error, error) {
	g, err := s.r.o.Logs.Gather(ctx, query.Query{
		Services: []string{"*"}, Range: query.Range{From: time.Now().UnixNano(), To: query.Newest}, Limit: 1,
	}, newest.Auto)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Report.Problems, nil
}
