package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

// errNoLine is an event that a server does not send.
var errNoLine = errors.New("an event has a record without a line")

// emitError is an error of emit.
type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// emitter passes lines on, many at once.
type emitter struct {
	emit func(lines []byte) error
	out  []byte // lines that are not passed on yet
}

func (e *emitter) add(line []byte) { e.out = append(append(e.out, line...), '\n') }

func (e *emitter) pass() error {
	if len(e.out) == 0 {
		return nil
	}
	err := e.emit(e.out)
	e.out = e.out[:0]
	if err != nil {
		return &emitError{err}
	}
	return nil
}

// lines reads lines.
type lines struct {
	from *bufio.Reader
	long []byte // a line that is longer than the buffer of from
}

// stream reads events, one a line.
type stream struct {
	lines
	emitter
	came   int64                           // records
	absent func([]*reading.NoServiceError) // as [reading.Here] has it
}

// whole returns an error unless as many records came as the last event says that the server sent.
func whole(end []byte, came int64) error {
	var ev struct {
		End struct {
			Records *int64 `json:"records"`
		} `json:"end"`
	}
	if err := json.Unmarshal(end, &ev); err != nil {
		return fmt.Errorf("an event cannot be read: %w", err)
	}
	if sent := ev.End.Records; sent != nil && *sent != came {
		return fmt.Errorf("%d records came, and it sent %d", came, *sent)
	}
	return nil
}

// read reads the events up to the last one.
func (s *stream) read() (*form.End, error) {
	for {
		line, err := s.next()
		if err != nil {
			return nil, s.cut(err)
		}
		var ev form.Event
		if bytes.HasPrefix(line, []byte(`{"ts":`)) { // of a part of a question
			s.add(line)
			s.came++
		} else if _, stored, ok := storedRecord(line); ok {
			s.add(stored)
			s.came++
		} else if err := json.Unmarshal(line, &ev); err != nil {
			return nil, s.cut(fmt.Errorf("an event cannot be read: %w", err))
		} else if ev.Record != nil {
			if len(ev.Record.Line) == 0 {
				return nil, s.cut(errNoLine)
			}
			s.add(ev.Record.Line)
			s.came++
		} else if ev.Absent != "" && s.absent != nil {
			s.absent([]*reading.NoServiceError{{Name: ev.Absent}})
		} else if ev.End != nil {
			if err := whole(line, s.came); err != nil {
				return nil, s.cut(err)
			}
		}
		if len(s.out) >= batchOf || ev.End != nil || s.from.Buffered() == 0 {
			if err := s.pass(); err != nil {
				return nil, err
			}
		}
		if ev.End != nil {
			return ev.End, nil
		}
	}
}

// cut passes on the lines before a stream breaks off.
func (s *stream) cut(err error) error {
	if perr := s.pass(); perr != nil {
		return perr
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next reads a line without its newline. It is valid until the next one is read.
func (s *lines) next() ([]byte, error) {
	line, err := s.from.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err // a line without a newline was cut off
	}
	s.long = append(s.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) && len(s.long) < mostLine {
		line, err = s.from.ReadSlice('\n')
		s.long = append(s.long, line...)
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		err = fmt.Errorf("an event has more than %d bytes", mostLine)
	}
	if err != nil {
		return nil, err
	}
	return s.long[:len(s.long)-1], nil
}

// storedRecord returns the identity and the line of the record in an event, without its
// newline, as servers write it. Other spellings of the event are left to the caller.
func storedRecord(event []byte) (id, line []byte, ok bool) {
	const begin, middle, end = `{"record":{"id":"`, `","line":`, "}}"
	rest, ok := bytes.CutPrefix(event, []byte(begin))
	at := bytes.IndexByte(rest, '"')
	if !ok || at < 0 || bytes.IndexByte(rest[:at], '\\') >= 0 {
		return nil, nil, false
	}
	id = rest[:at]
	if rest, ok = bytes.CutPrefix(rest[at:], []byte(middle)); !ok {
		return nil, nil, false
	}
	n := record.ValueLen(rest)
	return id, rest[:n], n > 0 && string(rest[n:]) == end
}
