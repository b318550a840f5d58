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
	// Element is the number of the last entry in an array of records, from 1; 0 outside of one.
	Element int
	// Unfinished is the line at which an entry begins that the blob does not have as a whole,
	// because it is still growing: the entry was left out. 0: there is none. The last entry of
	// a resource log needs its newline to be whole. That of a classic log is whole if its end
	// is one by its fields.
	Unfinished int

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
		s.skip, s.array, s.Element = true, outside, 0
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
	if err == nil && checkFields(s.fields) == nil && (!cutOff(data[:end]) || endsField(data[:end])) {
		return end, data[:end]
	}
	first := bytes.IndexByte(data, '\n') + 1
	switch {
	case atEOF && (first == 0 || err == nil && end == len(data) && cutOff(data) || errors.Is(err, errOpen) && !hasLine(data)):
		s.Unfinished = s.lines + 1
		return len(data), nil
	case first > 0:
		return first, data[:first]
	}
	return 0, nil
}

// cutOff reports whether an entry lacks its newline.
func cutOff(entry []byte) bool { return entry[len(entry)-1] != '\n' }

// endsField reports whether an entry with all of its fields ends where a field may end.
// Behind a quote or a semicolon it does, since the last field is usually empty. Behind other
// text, more of it may come.
func endsField(entry []byte) bool {
	last := entry[len(entry)-1]
	return last == '"' || last == ';'
}

// hasLine reports whether a text has a line in it that begins as a line of Storage Analytics.
func hasLine(text []byte) bool {
	return bytes.Contains(text, []byte("\n1.0;")) || bytes.Contains(text, []byte("\n2.0;"))
}

// line is next for JSON objects, each on a line.
func (s *Splitter) line(data []byte, atEOF bool) (advance int, entry []byte) {
	if n := blanks(data); n > 0 {
		return n, nil
	}
	n, more := arrayHead(data)
	switch {
	case n > 0:
		s.array, s.Element = inside, 0
		return n, nil
	case more && !atEOF:
		return 0, nil
	}
	end := bytes.IndexByte(data, '\n')
	switch {
	case end >= 0:
		return end + 1, data[:end]
	case atEOF:
		s.Unfinished = s.lines + 1
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
		s.array, s.Element = outside, 0
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
		s.Element++
		return end, data[:end]
	case atEOF: // Azure adds elements before the end of the array, so this is damage
		s.Element++
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
