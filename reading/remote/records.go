package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"blobtail/internal/spill"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

const (
	// batchOf is about how many bytes of lines are passed on at once.
	batchOf = 64 << 10
	// mostLine bounds an event: a record has a MiB, and its bytes may be escaped.
	mostLine = 8 << 20
	// mostHeld is how many bytes of lines that wait are in memory.
	mostHeld = 64 << 20
)

// Records implements [reading.Source]. If the answer breaks off, a [*BrokenError] is among the
// problems of the outcome.
//
// The lines of more than [form.MostHeld] of the newest records wait for the oldest of them, unless
// they are wanted in reverse: up to 64 MiB in memory, and the others in an unnamed temporary file.
func (c *Client) Records(ctx context.Context, a reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	if a.Limit <= form.MostHeld && a.First <= form.MostHeld || a.Limit > 0 && a.Reverse || a.First > 0 && !a.Reverse {
		return c.records(ctx, &a, emit)
	}
	a.Reverse = !a.Reverse
	aside := spill.Space{Most: mostHeld}
	defer aside.Close()
	var held []spill.Extent
	out, err := c.records(ctx, &a, func(lines []byte) error {
		e, err := aside.Put(lines)
		if err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
		held = append(held, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(held) {
		lines, err := aside.Get(&held[i], 0, held[i].Size())
		if err != nil {
			return nil, err
		}
		if err := backwards(lines, emit); err != nil {
			return nil, err
		}
		held[i] = spill.Extent{}
	}
	return out, nil
}

// Tail implements [reading.Source]. A server asks the ingesters itself.
func (c *Client) Tail(ctx context.Context, a reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	return c.Records(ctx, a, emit)
}

// backwards emits lines from the last one to the first one.
func backwards(lines []byte, emit func(lines []byte) error) error {
	var out []byte
	for len(lines) > 0 {
		at := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		out = append(out, lines[at:]...)
		lines = lines[:at]
		if len(out) >= batchOf || at == 0 {
			if err := emit(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return nil
}

func (c *Client) records(ctx context.Context, a *reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	params := a.Values()
	maps.Copy(params, a.Order())
	params.Set("form", "events")
	b, _, err := c.open(ctx, request{path: "records", params: params, kind: form.Lines})
	if err != nil {
		return nil, failure(a.Services, err)
	}
	defer b.Close()
	got := &reading.Outcome{}
	s := &stream{lines: lines{from: bufio.NewReaderSize(b, batchOf)}, emitter: emitter{emit: func(lines []byte) error {
		got.Records += int64(bytes.Count(lines, []byte("\n")))
		got.Bytes += int64(len(lines))
		return emit(lines)
	}}}
	s.absent = a.Here.Absent
	end, err := s.read()
	var stopped *emitError
	switch {
	case errors.As(err, &stopped):
		return nil, stopped.err
	case err == nil:
		return c.end(end), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	got.Lack(&BrokenError{c.base.String(), err})
	return got, nil
}

// Around implements [reading.Source]. Without the record there are no neighbours.
func (c *Client) Around(ctx context.Context, a reading.Ask, p reading.Place) (*reading.Neighbours, *reading.Outcome, error) {
	at := record.Key{Time: p.Time, Origin: p.ID.Origin, Index: p.ID.Index}
	id := string(at.Append(nil))
	params := url.Values{"service": {p.Service}, "id": {id}, "before": {strconv.Itoa(p.Before)}, "after": {strconv.Itoa(p.After)}}
	if p.Others {
		params.Set("services", "all")
	}
	if live := a.Values()["live"]; live != nil {
		params["live"] = live
	}
	n := &reading.Neighbours{}
	b, _, err := c.open(ctx, request{path: "context", params: params, kind: form.Lines})
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusNotFound && refused.Title == "No such record" {
		return n, &reading.Outcome{}, nil
	}
	if err != nil {
		return nil, nil, failure([]string{p.Service}, err)
	}
	defer b.Close()
	from := lines{from: bufio.NewReaderSize(b, batchOf)}
	for {
		var ev form.Event
		line, err := from.next()
		if err == nil {
			err = json.Unmarshal(line, &ev)
		}
		var e record.Entry
		if err == nil && ev.Record != nil {
			e, err = entryOf(ev.Record)
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil:
			return nil, nil, &BrokenError{c.base.String(), err}
		case ev.End != nil:
			n.MoreBefore, n.MoreAfter = len(n.Before) == p.Before, len(n.After) == p.After // or may be
			return n, c.end(ev.End), nil
		case ev.Record == nil:
		case ev.Record.Anchor:
			n.Record = &e
		case n.Record == nil:
			n.Before = append(n.Before, e)
		default:
			n.After = append(n.After, e)
		}
	}
}

// entryOf is a record of the server with its identity.
func entryOf(r *form.Record) (e record.Entry, err error) {
	if e, err = placeOf(r.ID); err == nil && len(r.Line) == 0 {
		err = fmt.Errorf("an event has a record without a line, with the id %.100q", r.ID)
	}
	e.Line = append(bytes.Clone(r.Line), '\n')
	return e, err
}

// placeOf is a record without its line, by its id.
func placeOf(id string) (e record.Entry, err error) {
	var at record.Key
	if at.UnmarshalText([]byte(id)) != nil {
		return e, fmt.Errorf("an event has a record with the id %.100q", id)
	}
	return record.Entry{Time: at.Time, ID: record.ID{Origin: at.Origin, Index: at.Index}}, nil
}
