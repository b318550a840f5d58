package readapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/reading"
	"blobtail/record"
)

// run has read run a query for the client. A service that exists and has no record that the query
// touches is no error. A selector of LogQL chooses among services, as a glob does: none of them is
// absent because of it.
func (c *call) run(q query.Query, mode newest.Mode, read reading.Read) (*query.Outcome, error) {
	asked, ran := q.Services, false
	result, err := c.client.Query(c.r.Context(), q, mode, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		ran = true
		return read(blobs, q)
	})
	switch {
	case q.Choose != nil && ran:
		result.Absent = nil
	case err != nil || ran:
	case q.Choose == nil:
	case result.Complete(): // else it may be there
		err = noneChosen(asked)
	}
	return result, err
}

// outcome tells how a read went.
func outcome(r *query.Outcome, f *query.Filter) form.Outcome {
	out := form.Outcome{
		Complete: r.Complete(), Problems: texts(r.Problems()), Warnings: texts(r.Warnings), Notes: append([]string{}, r.Notes...), Gaps: []form.Gap{},
		Cost: form.Cost{
			Requests: r.Requests, Bytes: r.Fetched, BlobsListed: r.BlobsListed, BlobsOpened: r.BlobsOpened, BlocksRead: r.BlocksRead,
			BlocksSkipped: r.BlocksSkipped, SkippedByIDs: r.RuledOutByIDs, SkippedByWords: r.RuledOutByWords, Copies: r.Copies,
		},
	}
	for _, none := range r.Absent {
		out.Absent = append(out.Absent, none.Name)
		out.Warnings = append(out.Warnings, none.Error())
	}
	for _, g := range r.Gaps {
		out.Gaps = append(out.Gaps, gap(g))
	}
	if f.Where != nil {
		for _, note := range f.Where.Notes() {
			out.Notes = append(out.Notes, "where: "+note)
		}
	}
	return out
}

func gap(g query.Gap) form.Gap {
	return form.Gap{Service: g.Service, Records: g.Records, AtMost: g.AtMost, From: stamp(g.From), To: stamp(g.To)}
}

// texts are the texts of errors, each once: several reads may have met the same trouble.
func texts(errs []error) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		if text := err.Error(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// stamp writes a time such that texts sort like times.
func stamp(ns int64) string { return string(record.AppendTime(nil, ns)) }

// json answers with one object.
func (c *call) json(answer any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.JSON)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(body.Bytes()) // a client that has gone needs no answer
	return nil
}
