package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"blobtail/reading"
	"blobtail/reading/form"
)

// Part passes the lines of a part of a question to emit, as [Client.Records] does. An answer that breaks
// off is an error, behind the lines that came.
func (c *Client) Part(ctx context.Context, a reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	params := a.Values()
	maps.Copy(params, a.Order())
	b, _, err := c.open(ctx, request{path: "records", params: params, kind: form.Lines})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	end, err := parted(b, emit)
	var stopped *emitError
	switch {
	case errors.As(err, &stopped):
		return nil, stopped.err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &BrokenError{c.base.String(), err}
	}
	return c.end(end), nil
}

// parted reads lines with events between them, up to the last event.
func parted(from io.Reader, emit func(lines []byte) error) (*form.End, error) {
	buf, have, came := make([]byte, 4*batchOf), 0, int64(0)
	for {
		if have == len(buf) {
			if have >= mostLine {
				return nil, fmt.Errorf("a line has more than %d bytes", mostLine)
			}
			buf = append(buf, make([]byte, have)...)
		}
		n, err := from.Read(buf[have:])
		fresh := bytes.LastIndexByte(buf[have:have+n], '\n') + 1
		whole := buf[:have+fresh]
		if have += n; fresh == 0 {
			whole = nil
		}
		left := have - len(whole)
		for len(whole) > 0 {
			lines, records := stored(whole)
			if came += records; records > 0 {
				if err := emit(lines); err != nil {
					return nil, &emitError{err}
				}
			}
			event, rest, _ := bytes.Cut(whole[len(lines):], []byte("\n"))
			if whole = rest; len(event) == 0 {
				continue
			}
			var ev form.Event
			if err := json.Unmarshal(event, &ev); err != nil {
				return nil, fmt.Errorf("an event cannot be read: %w", err)
			}
			if ev.End != nil && ev.End.Records != came {
				return nil, fmt.Errorf("%d records came, and it sent %d", came, ev.End.Records)
			}
			if ev.End != nil {
				return ev.End, nil
			}
		}
		copy(buf, buf[have-left:have])
		have = left
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
}

// stored returns the stored lines that a text of whole lines begins with, and their number.
func stored(text []byte) (lines []byte, n int64) {
	at := 0
	for at < len(text) && bytes.HasPrefix(text[at:], []byte(`{"ts":`)) {
		at += bytes.IndexByte(text[at:], '\n') + 1
		n++
	}
	return text[:at], n
}
