package remote

import (
	"errors"
	"fmt"
	"strings"

	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record/times"
)

// outcome is the outcome of an answer of the server.
func (c *Client) outcome(o *form.Outcome) *reading.Outcome {
	out := &reading.Outcome{Notes: o.Notes}
	out.Requests, out.Fetched, out.BlobsListed, out.BlobsOpened = o.Cost.Requests, o.Cost.Bytes, o.Cost.BlobsListed, o.Cost.BlobsOpened
	out.BlocksRead, out.BlocksSkipped, out.Copies = o.Cost.BlocksRead, o.Cost.BlocksSkipped, o.Cost.Copies
	out.Decoded = o.Cost.Decoded
	out.RuledOutByIDs, out.RuledOutByWords = o.Cost.SkippedByIDs, o.Cost.SkippedByWords
	for _, text := range o.Problems {
		out.Lack(errors.New(text))
	}
	if !o.Complete && out.Complete() {
		out.Lack(fmt.Errorf("the server %s says that its answer is incomplete", c))
	}
	for _, g := range o.Gaps {
		out.Gaps = append(out.Gaps, gapOf(g))
	}
	told := map[string]bool{} // by a warning too
	for _, name := range o.Absent {
		none := &reading.NoServiceError{Name: name}
		out.Absent = append(out.Absent, none)
		told[none.Error()] = true
	}
	for _, text := range o.Warnings {
		if !told[text] {
			out.Warnings = append(out.Warnings, errors.New(text))
		}
	}
	return out
}

// end is the outcome of a stream of records, by its last event.
func (c *Client) end(e *form.End) *reading.Outcome {
	out := c.outcome(&e.Outcome)
	out.Records, out.Bytes, out.Unflushed, out.Examined, out.Higher, out.More = e.Records, e.Bytes, e.Unflushed, e.Examined, e.Higher, e.More
	return out
}

func gapOf(g form.Gap) reading.Gap {
	return reading.Gap{Service: g.Service, Records: g.Records, AtMost: g.AtMost, From: nanos(g.From), To: nanos(g.To)}
}

// nanos reads a time of the server, 0 if there is none.
func nanos(text string) int64 {
	ns, _ := times.Parse([]byte(text))
	return ns
}

// report is an event of a tail that is no record.
func report(ev *form.Event) *reading.Report {
	switch {
	case ev.Warning != "":
		return &reading.Report{Warnings: []error{errors.New(ev.Warning)}}
	case ev.Absent != "":
		return &reading.Report{Absent: []*reading.NoServiceError{{Name: ev.Absent}}}
	case ev.Note != "":
		return &reading.Report{Notes: []string{ev.Note}}
	case ev.Gap != nil:
		return &reading.Report{Gaps: []reading.Gap{gapOf(*ev.Gap)}}
	case ev.Problem != "":
		return &reading.Report{Problems: []error{errors.New(ev.Problem)}}
	}
	return &reading.Report{}
}

// failure is an error as a [reading.Source] has it. asked are the services of the request.
func failure(asked []string, err error) error {
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Status != 404 || refused.Title != "No such service" {
		return err
	}
	switch name := refused.Service; {
	case name == "" && strings.HasPrefix(refused.Detail, "logql: "):
		return &reading.NoneChosenError{}
	case name == "" && len(asked) == 1:
		return &reading.NoServiceError{Name: asked[0], Near: refused.Near}
	case name != "":
		return &reading.NoServiceError{Name: name, Near: refused.Near}
	}
	return err
}
