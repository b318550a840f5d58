package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

// chosenAround and mostAround are how many records a context has before and after its record:
// unless more are asked for, and at most.
const (
	chosenAround = 10
	mostAround   = 1000
)

// found is the route records/{service}/{id}.
func (c *call) found() error {
	service, id := c.r.PathValue("service"), c.r.PathValue("id")
	if !record.ValidStored(service) {
		return &reading.NoServiceError{Name: service}
	}
	n, out, err := c.around(id, reading.Place{Service: service, Before: 1, After: 1})
	if err != nil {
		return err
	}
	answer := form.Found{Record: form.Record{ID: id, Line: bytes.TrimSuffix(n.Record.Line, []byte("\n"))}, Service: service, Outcome: form.OutcomeOf(out)}
	for _, e := range n.Before {
		at := e.Key()
		answer.Previous = string(at.Append(nil))
	}
	for _, e := range n.After {
		at := e.Key()
		answer.Next = string(at.Append(nil))
	}
	return c.json(answer)
}

// context is the route of the records around one.
func (c *call) context() error {
	p, id := reading.Place{Service: c.params.Get("service")}, c.params.Get("id")
	if p.Service == "" || id == "" {
		return badRequest("which record? Add service= and id=; form=events of %srecords has the ids", Prefix)
	}
	if !record.ValidStored(p.Service) {
		return badRequest("service=%.100s: it must be the name of one service; services=all adds the others", p.Service)
	}
	var err error
	if p.Before, err = c.params.Number("before", chosenAround, 0, mostAround); err != nil {
		return err
	}
	if p.After, err = c.params.Number("after", chosenAround, 0, mostAround); err != nil {
		return err
	}
	word, err := c.params.Word("services", "same", "all")
	if err != nil {
		return err
	}
	p.Others = word == "all"
	n, out, err := c.around(id, p)
	if err != nil {
		return err
	}
	return c.neighbours(n, out)
}

// around finds a record and those next to it, in the order of records.
func (c *call) around(id string, p reading.Place) (*reading.Neighbours, *reading.Outcome, error) {
	var at record.Key
	if err := at.UnmarshalText([]byte(id)); err != nil {
		return nil, nil, badRequest("%w", err)
	}
	mode, err := c.live()
	if err != nil {
		return nil, nil, err
	}
	p.Time, p.ID = at.Time, record.ID{Origin: at.Origin, Index: at.Index}
	n, out, err := c.store.Around(c.r.Context(), reading.Ask{Live: mode}, p)
	switch {
	case err != nil:
		return nil, nil, err
	case n != nil && n.Record != nil:
		return n, out, nil
	case out.Complete():
		return nil, nil, &door.Refusal{
			Status: http.StatusNotFound, Title: "No such record", Reason: fmt.Sprintf("%s has no record %s; its day may have expired", p.Service, id),
		}
	}
	return nil, nil, &door.Refusal{
		Status: http.StatusBadGateway,
		Reason: fmt.Sprintf("record %s of %s is not found, and a part of the store could not be read: %v", id, p.Service, errors.Join(out.Problems()...)),
	}
}

// neighbours answers with a record and those next to it, as events.
func (c *call) neighbours(n *reading.Neighbours, out *reading.Outcome) error {
	end := form.End{Outcome: form.OutcomeOf(out), Examined: out.Examined}
	all := slices.Concat(n.Before, []record.Entry{*n.Record}, n.After)
	a := reading.Ask{Services: []string{"*"}, Parse: c.o.Forms}
	if _, err := a.Matcher(budget.Of(c.r.Context())); err != nil {
		return err
	}
	for i := range all {
		_ = a.Parsed(func(line []byte) error { all[i].Line = bytes.Clone(line); return nil })(all[i].Line)
		end.Records++
		end.Bytes += int64(len(all[i].Line))
	}
	line, err := json.Marshal(form.Event{End: &end})
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.Lines)
	var body []byte
	for i := range all {
		body = appendRecord(body, &all[i], i == len(n.Before))
		if len(body) >= streamBuffer {
			if _, err := c.w.Write(body); err != nil {
				return nil // the client has gone
			}
			body = body[:0]
		}
	}
	_, _ = c.w.Write(append(append(body, line...), '\n')) // a client that has gone needs no answer
	return nil
}
