package readapi

import (
	"blobtail/internal/httpguard"
	"blobtail/query"
	"blobtail/reading"
)

// noteQuery tells the guard which services a request reads, and when.
func (c *call) noteQuery(q query.Query) {
	n := httpguard.Note(c.r)
	n.Services, n.From, n.To = q.Services, q.Range.From, q.Range.To
}

// noteResult tells the guard how the read went.
func (c *call) noteResult(r *reading.Result) {
	n := httpguard.Note(c.r)
	n.Bytes, n.Records, n.Problems = r.Fetched, r.Records, len(r.Problems())
}
