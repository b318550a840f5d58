package formats

import (
	"bufio"
	"bytes"
	"errors"

	"blobtail/record"
)

// MaxBuffer is the buffer that a [bufio.Scanner] with a [Splitter] needs.
const MaxBuffer = 2 * record.MaxRecord

// A Splitter cuts a blob into entries. [Splitter.Split] is a [bufio.SplitFunc]. It never
// returns an error. An entry is a part of the buffer of the scanner.
type Splitter struct {
	// Line is the number of the line, from 1, at which the last entry begins.
	Line int
	// Unfinished says that the blob ends within a line, which was left out: the blob is still
	// growing. The last line of a classic log is an entry even without a newline, because such
	// a blob is stored whole.
	Unfinished bool

	kind   Kind
	lines  int // that were passed
	begun  bool
	skip   bool // the rest of an entry that is too long
	array  arrayState
	fields []field
	quotes quoteSearch // in the data of the next call
}

// arrayState is the place of a Splitter in an object {"records":[…]}.
type arrayState uint8

const (
	outside  arrayState = iota
	inside              // between the elements
	finished            // behind the array, still in its object
)

// NewSplitter returns a Splitter for one blob.
func NewSplitter(kind Kind) *Splitter { return &Splitter{kind: kind} }

// Split implements [bufio.SplitFunc]. It passes over everything before an entry in one
// call, because a scanner ends at the first call without an entry after the end of its
// input.
func (s *Splitter) Split(data []byte, atEOF bool) (advance int, entry []byte, err error) {
	for advance < len(data) && entry == nil {
		var n int
		if n, entry = s.next(data[advance:], atEOF); n == 0 {
			break
		}
		if entry != nil { // it begins where the data does
			s.Line = s.lines + 1
		}
		s.lines += bytes.Count(data[advance:advance+n], []byte{'\n'})
		advance += n
		s.quotes.moved(n)
	}
	return advance, entry, nil
}

// next returns the first entry of data and its end; no entry: there is none before that
// end. 0 asks for more data.
func (s *Splitter) next(data []byte, atEOF bool) (advance int, entry []byte) {
	if !s.begun {
		if len(data) < len(bom) && !atEOF {
			return 0, nil
		}
		s.begun = true
		if bytes.HasPrefix(data, []byte(bom)) {
			return len(bom), nil
		}
	}
	if s.skip {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return len(data), nil
		}
		s.skip = false
		return end + 1, nil
	}
	switch {
	case s.kind == Classic:
		advance, entry = s.classic(data, atEOF)
	case s.array == outside:
		advance, entry = s.line(data, atEOF)
	default:
		advance, entry = s.element(data, atEOF)
	}
	if advance == 0 && len(data) > record.MaxRecord {
		s.skip, s.array = true, outside
		return len(data), data // longer than any line may be, as its reader will find
	}
	return advance, entry
}

// classic is next for lines of fields. A field in quotes may have newlines. If the fields
// up to the end of a line make no entry, its first line alone is the malformed one: a
// quote that nobody closed must not take the lines behind it along.
func (s *Splitter) classic(data []byte, atEOF bool) (advance int, entry []byte) {
	if n := lineEnd(data); n > 0 {
		return n, nil
	}
	var end int
	var err error
	s.fields, end, err = cutFields(data, s.fields[:0], &s.quotes, atEOF)
	if errors.Is(err, errShort) {
		return 0, nil
	}
	if err == nil && checkFields(s.fields) == nil {
		return end, data[:end]
	}
	end = bytes.IndexByte(data, '\n') + 1
	switch {
	case end > 0:
		return end, data[:end]
	case atEOF:
		return len(data), data
	}
	return 0, nil
}

// line is next for JSON objects, each on a line.
func (s *Splitter) line(data []byte, atEOF bool) (advance int, entry []byte) {
	if n := blanks(data); n > 0 {
		return n, nil
	}
	n, more := arrayHead(data)
	switch {
	case n > 0:
		s.array = inside
		return n, nil
	case more && !atEOF:
		return 0, nil
	}
	end := bytes.IndexByte(data, '\n')
	switch {
	case end >= 0:
		return end + 1, data[:end]
	case atEOF:
		s.Unfinished = true
		return len(data), nil
	}
	return 0, nil
}

// element is next within {"records":[…]}.
func (s *Splitter) element(data []byte, atEOF bool) (advance int, entry []byte) {
	n := blanks(data)
	switch {
	case n > 0:
		return n, nil
	case s.array == finished:
		s.array = outside
		if data[0] == '}' {
			return 1, nil
		}
		s.skip = true // other members of the object
		return 1, nil
	case data[0] == ',':
		return 1, nil
	case data[0] == ']':
		s.array = finished
		return 1, nil
	}
	end := valueEnd(data)
	switch {
	case end > 0:
		return end, data[:end]
	case atEOF: // Azure adds elements before the end of the array, so this is damage
		return len(data), data
	}
	return 0, nil
}

// blanks counts the white space at the start of JSON.
func blanks(data []byte) int {
	for i, c := range data {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return i
		}
	}
	return len(data)
}

// arrayHead returns the length of `{"records":[` at the start of data, with white space in
// any place; 0: there is none. more says that data ends within it.
func arrayHead(data []byte) (n int, more bool) {
	for _, part := range []string{`{`, `"records"`, `:`, `[`} {
		n += blanks(data[n:])
		rest := data[n:]
		if len(rest) < len(part) {
			return 0, string(rest) == part[:len(rest)]
		}
		if string(rest[:len(part)]) != part {
			return 0, false
		}
		n += len(part)
	}
	return n, false
}

// valueEnd returns the end of the JSON value at the start of data, valid or not; 0: it goes
// on behind data.
func valueEnd(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ']' || c == '}'):
			return max(i, 1)
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

var _ bufio.SplitFunc = (*Splitter)(nil).Split
