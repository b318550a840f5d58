package readapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"blobtail/internal/door"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/record"
)

const (
	// chosenAround and mostAround are how many records a context has before and after its
	// record: unless more are asked for, and at most.
	chosenAround = 10
	mostAround   = 1000
	// mostAroundRaw bounds the bytes that a search for them decodes.
	mostAroundRaw = 256 << 20
)

// found is the route records/{service}/{id}.
func (c *call) found() error {
	service, id := c.r.PathValue("service"), c.r.PathValue("id")
	if !record.ValidStored(service) {
		return &query.NoServiceError{Name: service}
	}
	anchor, err := parseID(id)
	if err != nil {
		return err
	}
	mode, err := c.mode()
	if err != nil {
		return err
	}
	s := &surroundings{call: c, service: service, anchor: anchor, most: [2]int{1, 1}}
	n, result, err := s.find([]string{service}, mode)
	if err != nil {
		return err
	}
	answer := form.Found{Record: form.Record{ID: id, Line: bytes.TrimSuffix(n.Record.Line, []byte("\n"))}, Service: service, Outcome: outcome(result, &query.Filter{})}
	for _, e := range n.Before {
		answer.Previous = string(appendID(nil, &e))
	}
	for _, e := range n.After {
		answer.Next = string(appendID(nil, &e))
	}
	return c.json(answer)
}

// context is the route of the records around one.
func (c *call) context() error {
	service, id := c.params.get("service"), c.params.get("id")
	if service == "" || id == "" {
		return badRequest("which record? Add service= and id=; form=events of %srecords has the ids", Prefix)
	}
	if !record.ValidStored(service) {
		return badRequest("service=%.100s: it must be the name of one service; services=all adds the others", service)
	}
	anchor, err := parseID(id)
	if err != nil {
		return err
	}
	s := &surroundings{call: c, service: service, anchor: anchor}
	for i, name := range []string{"before", "after"} {
		if s.most[i], err = c.params.number(name, chosenAround, 0, mostAround); err != nil {
			return err
		}
	}
	mode, err := c.mode()
	if err != nil {
		return err
	}
	services := []string{service}
	if word, err := c.params.word("services", "same", "all"); err != nil {
		return err
	} else if word == "all" {
		services = append(services, "*")
	}
	n, result, err := s.find(services, mode)
	if err != nil {
		return err
	}
	return s.write(n, result)
}

// surroundings are a record and those before and after it, in the order of records.
type surroundings struct {
	*call
	service string
	anchor  record.Entry // without its line
	most    [2]int       // records before and after
}

// find finds the record and its surroundings.
func (s *surroundings) find(services []string, mode newest.Mode) (*query.Neighbours, *query.Outcome, error) {
	var n *query.Neighbours
	q := query.Query{Services: services, Range: query.Always(), MaxRaw: mostAroundRaw}
	result, err := s.run(q, mode, func(blobs *query.Reader, q query.Query) (sum query.Summary, err error) {
		n, sum, err = blobs.Around(s.r.Context(), q, s.anchor.Time, s.anchor.ID, s.most[0], s.most[1])
		return sum, err
	})
	switch {
	case err != nil:
		return nil, nil, err
	case n != nil && n.Record != nil && s.isAnchor(n.Record):
		return n, result, nil
	case result.Complete():
		return nil, nil, &door.Refusal{
			Status: http.StatusNotFound, Title: "No such record",
			Reason: fmt.Sprintf("%s has no record %s; its day may have expired", s.service, appendID(nil, &s.anchor)),
		}
	}
	return nil, nil, &door.Refusal{
		Status: http.StatusBadGateway,
		Reason: fmt.Sprintf("record %s of %s is not found, and a part of the store could not be read: %v", appendID(nil, &s.anchor), s.service, errors.Join(result.Problems()...)),
	}
}

func (s *surroundings) isAnchor(e *record.Entry) bool {
	name, ok := record.LineService(e.Line)
	return ok && string(name) == s.service
}

// write answers with the records as events.
func (s *surroundings) write(n *query.Neighbours, result *query.Outcome) error {
	end := form.End{Outcome: outcome(result, &query.Filter{}), Examined: result.Examined}
	all := slices.Concat(n.Before, []record.Entry{*n.Record}, n.After)
	for i := range all {
		end.Records++
		end.Bytes += int64(len(all[i].Line))
	}
	line, err := json.Marshal(form.Event{End: &end})
	if err != nil {
		return err
	}
	s.w.Header().Set("Content-Type", form.Lines)
	var body []byte
	for i := range all {
		body = appendRecord(body, &all[i], all[i].ID == s.anchor.ID && all[i].Time == s.anchor.Time)
		if len(body) >= streamBuffer {
			if _, err := s.w.Write(body); err != nil {
				return nil // the client has gone
			}
			body = body[:0]
		}
	}
	_, _ = s.w.Write(append(append(body, line...), '\n')) // a client that has gone needs no answer
	return nil
}
