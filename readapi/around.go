package readapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"blobtail/internal/httpguard"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/reading"
	"blobtail/record"
)

const (
	// chosenAround and mostAround are how many records a context has before and after its
	// record: unless more are asked for, and at most.
	chosenAround = 10
	mostAround   = 1000
	// mostAroundBytes bounds the lines on each side. The record next to the anchor is always
	// there.
	mostAroundBytes = 16 << 20
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
	result, err := s.find([]string{service}, mode)
	if err != nil {
		return err
	}
	answer := form.Found{Record: form.Record{ID: id, Line: bytes.TrimSuffix(s.line, []byte("\n"))}, Service: service, Outcome: outcome(result, &query.Filter{})}
	for _, e := range s.before {
		answer.Previous = string(appendID(nil, &e))
	}
	for _, e := range s.after {
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
	result, err := s.find(services, mode)
	if err != nil {
		return err
	}
	return s.write(result)
}

// surroundings are a record and those before and after it, in the order of records.
type surroundings struct {
	*call
	service string
	anchor  record.Entry // without its line
	most    [2]int       // records before and after

	line          []byte         // of the anchor; nil: it is not found
	before, after []record.Entry // the nearest ones, in order
	sizes         [2]int         // of their lines
	cut           bool           // some were left out because of the size
}

// errEnough ends a read that has what it needs.
var errEnough = errors.New("enough")

// find finds the record and its surroundings.
func (s *surroundings) find(services []string, mode newest.Mode) (*reading.Result, error) {
	result, err := s.run(query.Query{Services: services, Range: query.Always()}, mode, s.read)
	switch {
	case err != nil:
		return nil, err
	case s.line == nil && result.Complete():
		return nil, &requestError{
			status: http.StatusNotFound, title: "No such record",
			detail: fmt.Sprintf("%s has no record %s; its day may have expired", s.service, appendID(nil, &s.anchor)),
		}
	case s.line == nil:
		return nil, &requestError{
			status: http.StatusBadGateway,
			detail: fmt.Sprintf("record %s of %s is not found, and a part of the store could not be read: %v", appendID(nil, &s.anchor), s.service, errors.Join(result.Problems()...)),
		}
	}
	return result, nil
}

// read reads first from the time of the record on, since records of the same time are on both
// sides of it, and then back from that time.
func (s *surroundings) read(blobs *query.Reader, q query.Query) (sum query.Summary, err error) {
	from := s.anchor.Time
	for _, width := range []time.Duration{time.Hour, 24 * time.Hour, math.MaxInt64} {
		q.Range = query.Range{From: from, To: query.Newest}
		if from < math.MaxInt64-int64(width) {
			q.Range.To = from + int64(width)
		}
		plan, err := blobs.Plan(s.r.Context(), q)
		if err != nil {
			return sum, err
		}
		part, err := plan.Entries(s.r.Context(), s.forward)
		join(&sum, &part)
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return sum, err
		}
		if s.line == nil || q.Range.To == query.Newest {
			break
		}
		from = q.Range.To
	}
	if s.line == nil || len(s.before) >= s.most[0] || s.anchor.Time == query.Oldest {
		return sum, nil
	}
	same := s.before
	s.before = nil
	q.Range, q.Limit, q.Reverse = query.Range{From: query.Oldest, To: s.anchor.Time}, s.most[0]-len(same), true
	part, err := blobs.NewestEntries(s.r.Context(), q, s.back)
	join(&sum, &part)
	slices.Reverse(s.before)
	s.before = append(s.before, same...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return sum, err
}

// forward takes records from the time of the anchor on, in order.
func (s *surroundings) forward(e *record.Entry) error {
	order := e.Compare(&s.anchor)
	switch {
	case order < 0:
		if s.keep(&s.before, 0, e); len(s.before) > s.most[0] {
			s.sizes[0] -= len(s.before[0].Line)
			s.before = s.before[1:]
		}
	case order == 0 && s.line == nil && s.isAnchor(e):
		s.line = bytes.Clone(e.Line)
	case order > 0 && s.line == nil:
		return errEnough // it is not there
	case order > 0:
		if len(s.after) == s.most[1] {
			return errEnough
		}
		if !s.keep(&s.after, 1, e) {
			return errEnough
		}
	}
	return nil
}

func (s *surroundings) isAnchor(e *record.Entry) bool {
	name, ok := record.LineService(e.Line)
	return ok && string(name) == s.service
}

// back takes records before the time of the anchor, the newest first.
func (s *surroundings) back(e *record.Entry) error {
	if !s.keep(&s.before, 0, e) {
		return errEnough
	}
	return nil
}

// keep keeps a copy of a record, unless its side has too many bytes.
func (s *surroundings) keep(side *[]record.Entry, n int, e *record.Entry) bool {
	if len(*side) > 0 && s.sizes[n]+len(e.Line) > mostAroundBytes {
		s.cut = true
		return false
	}
	kept := *e
	kept.Line = bytes.Clone(e.Line)
	*side = append(*side, kept)
	s.sizes[n] += len(e.Line)
	return true
}

// write answers with the records as events.
func (s *surroundings) write(result *reading.Result) error {
	anchor := s.anchor
	anchor.Line = s.line
	var body []byte
	end := form.End{Outcome: outcome(result, &query.Filter{}), More: s.cut, Examined: result.Examined}
	for _, list := range [][]record.Entry{s.before, {anchor}, s.after} {
		for i := range list {
			body = appendRecord(body, &list[i], nil, list[i].ID == anchor.ID && list[i].Time == anchor.Time)
			end.Records++
			end.Bytes += int64(len(list[i].Line))
		}
	}
	if s.cut {
		end.Warnings = append(end.Warnings, "the records around are large, and some are left out")
	}
	line, err := json.Marshal(form.Event{End: &end})
	if err != nil {
		return err
	}
	s.w.Header().Set("Content-Type", form.Lines)
	httpguard.Note(s.r).Records = end.Records
	_, _ = s.w.Write(append(append(body, line...), '\n')) // a client that has gone needs no answer
	return nil
}
