package api

import (
	"encoding/json"
	"net/http"

	"blobtail/internal/budget"
	"blobtail/reading"
	"blobtail/reading/form"
)

// part answers with what the records of a slice of time add to an answer, for a server that joins it with
// others. The question is as the asker has completed it: forms of this server do not count.
func (c *call) part() error {
	var j reading.Joint
	err := json.Unmarshal([]byte(c.params.Get("joint")), &j)
	if err != nil {
		return badRequest("joint: %w", err)
	}
	if j.Ask, err = reading.ParseAsk(c.params, c.now); err != nil {
		return err
	}
	if j.Split != nil {
		j.Split.Zone = c.now.Location()
	}
	p, out, err := c.store.Part(c.r.Context(), j)
	if err != nil {
		return err
	}
	body, err := (&form.Part{End: *form.EndOf(out), Of: p}).Encode()
	if err != nil {
		return badRequest("%w", err)
	}
	if err := budget.Of(c.r.Context()).Take(int64(len(body))); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.Portable)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(body) // a client that has gone needs no answer
	return nil
}
