package api

import (
	"encoding/gob"
	"encoding/json"

	"blobtail/reading"
	"blobtail/reading/form"
)

// part answers with what the records of a stretch of time add to an answer, for a server that joins it with
// others. The question is as the asker has completed it: forms of this server do not count.
func (c *call) part() error {
	var j reading.Joint
	if err := json.Unmarshal([]byte(c.params.Get("joint")), &j); err != nil {
		return badRequest("joint: %w", err)
	}
	a, err := reading.ParseAsk(c.params, c.now)
	if err != nil {
		return err
	}
	if j.Slices != nil {
		j.Slices.Zone = c.now.Location()
	}
	p, out, err := c.store.Part(c.r.Context(), a, j)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.Portable)
	_ = gob.NewEncoder(c.w).Encode(form.Part{End: *form.EndOf(out), Of: p}) // a client that has gone needs no answer
	return nil
}
