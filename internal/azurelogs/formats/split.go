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
//
// Of an entry that is longer than [record.MaxRecord] the Splitter returns one byte more than
// that, which its reader finds too long, and passes over the rest. It never looks further
// ahead, so the cuts do not depend on the parts in which the blob comes.
type Splitter struct {
	// Line is the number of the line, from 1, at which the last entry begins.
	Line int
	// Element is the number of the last entry in an array of records, from 1; 0 outside of one.
	Element int
	// Unfinished is the line at which an entry begins that the blob does not have as a whole,
	// because it is still growing: the entry was left out. 0: there is none. The last entry of
	// a resource log needs its newline to be whole, or is one whole object. That of a classic
	// log is whole if its end is one by its fields.
	Unfinished int
	// Array says that the blob has an array of records.
	Array bool

	kind   Kind
	lines  int // that were passed
	begun  bool
	skip   skipping
	value  valueScan // of the element that is skipped
	array  arrayState
	cut    bool // the blob ends within an element
	fields []field
	quotes quoteSearch // in the data of the next call
}

// skipping is the part of a blob that a Splitter passes over.
type skipping uint8

const (
	nothing    skipping = iota
	restOfLine          // of an entry that is too long, or behind an array
	restOfElement
)

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
	if s.skip != nothing {
		if n := s.pass(data); n > 0 { // 0: the element ends where data begin
			return n, nil
		}
	}
	if len(data) > record.MaxRecord {
		data, atEOF = data[:record.MaxRecord+1], false
	}
	switch {
	case s.kind == Classic:
		advance, entry = s.classic(data, atEOF)
	case s.array == outside:
		advance, entry = s.line(data, atEOF)
	default:
		advance, entry = s.element(data, atEOF)
	}
	if advance > 0 || len(data) <= record.MaxRecord {
		return advance, entry
	}
	s.skip = restOfLine
	if s.array == inside {
		s.Element++
		s.skip, s.value = restOfElement, valueScan{}
		s.value.end(data)
	}
	return len(data), data // longer than any line may be, as its reader will find
}

// pass returns the length of the part of data that is to be skipped.
func (s *Splitter) pass(data []byte) int {
	end, over := 0, false
	if s.skip == restOfElement {
		end, over = s.value.end(data)
	} else {
		end = bytes.IndexByte(data, '\n') + 1
		over = end > 0
	}
	if !over {
		return len(data)
	}
	s.skip = nothing
	return end
}

// Open reports, at the end of a blob, whether an array of records lacks its end though the
// last entry is whole.
func (s *Splitter) Open() bool { return s.array == inside && s.skip == nothing }

// Whole reports, at the end of a blob, whether its last array of records has its end.
func (s *Splitter) Whole() bool { return s.array != inside && !s.cut }

// classic is next for lines of fields. A field in quotes may have newlines. If the fields
// up to the end of a line make no entry, its first line alone is the malformed one: a quote
// without an end must not take the lines behind it along.
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
		s.array, s.Element, s.Array = inside, 0, true
		return n, nil
	case more && !atEOF:
		return 0, nil
	}
	end := bytes.IndexByte(data, '\n')
	switch {
	case end >= 0:
		return end + 1, data[:end]
	case atEOF && isObject(data):
		return len(data), data
	case atEOF:
		s.Unfinished = s.lines + 1
		return len(data), nil
	}
	return 0, nil
}

// isObject reports whether data are one whole object.
func isObject(data []byte) bool {
	n := 0
	if data[0] == '{' {
		n = record.ValueLen(data)
	}
	return n > 0 && n+blanks(data[n:]) == len(data)
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
		s.skip = restOfLine // other members of the object
		return 1, nil
	case data[0] == ',':
		return 1, nil
	case data[0] == ']':
		s.array = finished
		return 1, nil
	}
	end, whole := new(valueScan).end(data)
	switch {
	case whole:
		end = max(end, 1) // a stray bracket is an entry of its own
		s.Element++
		return end, data[:end]
	case atEOF: // Azure writes the array with its end, so this is damage
		s.Element++
		s.array, s.cut = outside, true
		return len(data), data
	}
	return 0, nil
}

// TrimEnd returns an entry without the white space at its end. The last line of a blob that
// still grows may get some, and stays the same entry.
func TrimEnd(entry []byte) []byte { return bytes.TrimRight(entry, " \t\r\n") }

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

// A valueScan searches for the end of a JSON value, valid or not, that comes in parts.
type valueScan struct {
	depth           int
	quoted, escaped bool
}

// end returns the end of the value in its next part; over is false if it goes on behind data.
func (v *valueScan) end(data []byte) (n int, over bool) {
	for i, c := range data {
		switch {
		case v.escaped:
			v.escaped = false
		case v.quoted:
			v.escaped, v.quoted = c == '\\', c != '"'
		case c == '"':
			v.quoted = true
		case c == '{' || c == '[':
			v.depth++
		case v.depth == 0 && (c == ',' || c == ']' || c == '}'):
			return i, true
		case c == '}' || c == ']':
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(data), false
}

var _ bufio.SplitFunc = (*Splitter)(nil).Split
