package body

import "bytes"

// traceEnd returns the end of the text whose first line goes from off to end: behind the
// lines of a stack trace, if such lines follow. places is how many places they have, as
// many as lines that are not empty: so the records behind have the same places if the
// lines are read one by one. framed reports whether one of them is a call of Java,
// JavaScript, .NET or Python.
func traceEnd(body []byte, off, end int) (next, places int, framed bool) {
	t := trace{python: isTraceback(body[off:end]), rust: isPanic(body[off:end])}
	next, places = end, 1
	for at := end + 1; at < len(body) && places < mostTraceLines; {
		e := lineEnd(body, at)
		line := body[at:e]
		blank := skipBlanks(line, 0) == len(line)
		switch {
		case e-off > longestTrace:
			return next, places, framed
		case blank:
			t.indented = false
		case looksLikeObject(line[skipBlanks(line, 0):]), !t.has(line, behind(body, e)):
			return next, places, framed
		default:
			next = e
			places++
			framed = framed || isCall(line)
		}
		at = e + 1
	}
	return next, places, framed
}

// isCall reports whether a line is a call in a trace of Java, JavaScript, .NET or Python.
func isCall(line []byte) bool {
	call := line[skipBlanks(line, 0):]
	return len(call) < len(line) && (bytes.HasPrefix(call, []byte("at ")) || bytes.HasPrefix(call, []byte(`File "`)))
}

// behind returns the line behind the one that ends at end.
func behind(body []byte, end int) []byte {
	if end+1 >= len(body) {
		return nil
	}
	return body[end+1 : lineEnd(body, end+1)]
}

// A trace is a stack trace so far.
type trace struct {
	python   bool // it is a traceback of Python without its error so far
	rust     bool // it is a panic of Rust with its message on this line
	indented bool // the line before is
}

// continuing are beginnings of lines of stack traces that are not indented: of Java,
// JavaScript, Go, Rust, Python and .NET.
var continuing = [...]string{
	"at ", "Caused by:", "Suppressed:", "... ", "goroutine ", "created by ", "[signal ", "exit status ", "stack backtrace:", "note: run with `RUST_BACKTRACE",
	"During handling of the above exception", "The above exception was the direct cause", "--- End of ",
}

// has reports whether a line that is not empty belongs to the trace. A line with a time does
// not: it is the next record of a program that indents its lines.
func (t *trace) has(line, next []byte) bool {
	before, rust := t.indented, t.rust
	t.indented, t.rust = line[0] == ' ' || line[0] == '\t', false
	if !t.indented && !rust && !t.continues(line, next, before) {
		return false
	}
	_, _, own := textTime(plain(line))
	return !own
}

// continues reports whether a line that is not indented continues the trace by its pattern.
// before says that the line before is indented.
func (t *trace) continues(line, next []byte, before bool) bool {
	switch {
	case isTraceback(line):
		t.python = true
		return true
	case t.python && before && isError(line):
		t.python = false
		return true
	case isFrame(line, next):
		return true
	}
	for _, begin := range continuing {
		if line[0] == begin[0] && bytes.HasPrefix(line, []byte(begin)) {
			return true
		}
	}
	return false
}

func isTraceback(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Traceback (most recent call last):"))
}

// isError reports whether a line is the last one of a Python traceback, such as
// "ValueError: no" or "app.errors.Missing".
func isError(line []byte) bool {
	name, _, _ := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(":"))
	for _, c := range name {
		if c != '.' && c != '_' && !isDigit(c) && (c|0x20)-'a' >= 26 {
			return false
		}
	}
	return len(name) > 0
}

// isFrame reports whether a line is a function in a trace of Go: its place is on the next
// line, behind a tab.
func isFrame(line, next []byte) bool {
	line = bytes.TrimRight(line, "\r")
	return len(next) > 0 && next[0] == '\t' && len(line) > 0 && line[len(line)-1] == ')' && bytes.IndexByte(line, '(') > 0
}
