package readapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/reading"
	"blobtail/record"
)

// run has read run a query for the client. A service that exists and
// has no record that the query touches is no error.
func (c *call) run(q query.Query, mode newest.Mode, read reading.Read) (*reading.Result, error) {
	asked, ran := q.Services, false
	result, err := c.client.Query(c.r.Context(), q, mode, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		ran = true
		return read(blobs, q)
	})
	if err == nil && !ran && len(asked) > 0 && len(result.Report.Problems) == 0 { // else it may be there
		if err = error(&query.NoServiceError{Name: asked[0]}); q.Choose != nil {
			err = noneChosen(asked)
		}
	}
	if isNone(err) && ran && len(result.Report.Problems) > 0 {
		err = nil // the missing records may be those of the service
	}
	if err != nil || slices.ContainsFunc(result.Summary.Problems, isNone) {
		err = c.held(result, err)
	}
	return result, err
}

// held takes errors about services back that have records in the logs of ingesters only.
func (c *call) held(result *reading.Result, err error) error {
	if err != nil && !isNone(err) {
		return err
	}
	all, failed := c.client.Services(c.r.Context())
	if failed != nil {
		return err
	}
	there := func(err error) bool {
		none, ok := errors.AsType[*query.NoServiceError](err)
		return ok && slices.Contains(all, none.Name)
	}
	result.Summary.Problems = slices.DeleteFunc(result.Summary.Problems, there)
	if there(err) {
		return nil
	}
	return err
}

// isNone reports whether an error says that there is no such service.
func isNone(err error) bool {
	_, ok := errors.AsType[*query.NoServiceError](err)
	return ok
}

// outcome tells how a read went.
func outcome(r *reading.Result, f *query.Filter) form.Outcome {
	out := form.Outcome{
		Complete: r.Complete(), Problems: texts(r.Problems()), Warnings: texts(r.Warnings), Notes: append([]string{}, r.Report.Notes...), Gaps: []form.Gap{},
		Cost: form.Cost{
			Requests: r.Requests, Bytes: r.Fetched, BlobsListed: r.BlobsListed, BlobsOpened: r.BlobsOpened, BlocksRead: r.BlocksRead,
			BlocksSkipped: r.BlocksSkipped, SkippedByIDs: r.RuledOutByIDs, SkippedByWords: r.RuledOutByWords, Copies: r.Copies,
		},
	}
	for _, g := range r.Report.Gaps {
		out.Gaps = append(out.Gaps, gap(g))
	}
	if f.Where != nil {
		for _, note := range f.Where.Notes() {
			out.Notes = append(out.Notes, "where: "+note)
		}
	}
	return out
}

func gap(g newest.Gap) form.Gap {
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
