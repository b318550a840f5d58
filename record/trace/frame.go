package trace

import (
	"bytes"

	"blobtail/record/text"
)

// isCall reports whether the text behind "at" is a call: of Java pkg.Class.method(File.java:12), of
// JavaScript fn (file.js:1:2) or file.js:1:2, of .NET Type.Method(String x) in file:line 3.
func isCall(c []byte) bool {
	c = bytes.TrimSuffix(c, []byte(" {"))
	if bytes.HasPrefix(c, []byte("<ScriptBlock>")) || string(c) == "<anonymous>" {
		return true
	}
	open, closed := bytes.IndexByte(c, '('), bytes.LastIndexByte(c, ')')
	if open < 0 || closed < open {
		return isPlace(c) && (bytes.Count(c, []byte(":")) > 1 && bytes.IndexByte(c, ' ') < 0 || bytes.HasPrefix(c, []byte("async ")))
	}
	name, in, after := c[:open], c[open+1:closed], c[closed+1:]
	if len(after) > 0 && after[0] != ',' && !bytes.HasPrefix(after, []byte(" in ")) && !bytes.HasPrefix(after, []byte(" [")) &&
		!bytes.HasPrefix(after, []byte(" ~[")) {
		return false
	}
	switch {
	case isPlace(in):
		return true
	case len(name) > 0 && name[len(name)-1] == ' ':
		return string(in) == "<anonymous>" || string(in) == "native" || bytes.HasPrefix(in, []byte("index ")) ||
			bytes.HasPrefix(in, []byte("eval at ")) || bytes.HasPrefix(after, []byte(" [0x"))
	}
	return bytes.IndexByte(name, ' ') < 0 && (bytes.IndexByte(name, '.') > 0 || bytes.HasPrefix(name, []byte("lambda_method")))
}

// isPlace reports whether a text is a file and the number of a line: app/x.js:5 or node:fs:601:3
func isPlace(s []byte) bool {
	n := len(s)
	for n > 0 && text.IsDigit(s[n-1]) {
		n--
	}
	return n > 1 && n < len(s) && s[n-1] == ':' && (bytes.ContainsAny(s[:n], "./\\<") || bytes.HasPrefix(s, []byte("node:")))
}

// isThrown reports whether a line is the name of an exception, perhaps with its code, and behind
// a colon its message.
func isThrown(s []byte) bool {
	name, rest := s[:nameOf(s)], s[nameOf(s):]
	if !bytes.HasSuffix(name, []byte("Error")) && !bytes.HasSuffix(name, []byte("Exception")) &&
		!bytes.HasSuffix(name, []byte("Throwable")) || text.IsDigit(name[0]) {
		return false
	}
	if len(rest) > 2 && rest[0] == ' ' && (rest[1] == '[' || rest[1] == '(') {
		end := bytes.IndexAny(rest, "])")
		if end < 0 {
			return false
		}
		rest = rest[end+1:]
	}
	return len(rest) == 0 || rest[0] == ':'
}

// isQualified reports whether a line is an exception with the package of its name.
func isQualified(s []byte) bool {
	return bytes.IndexByte(s[:nameOf(s)], '.') > 0 && isThrown(s)
}

// isError reports whether a line is the last one of a Python traceback, such as "ValueError: no"
// or "app.errors.missing".
func (j *Joiner) isError(s []byte) bool {
	name, _, _ := bytes.Cut(s, []byte(":"))
	if nameOf(name) < len(name) || !bytes.ContainsAny(name, ".ABCDEFGHIJKLMNOPQRSTUVWXYZ") || text.IsDigit(name[0]) {
		return false
	}
	level := text.Level(j.times, s, false)
	return level == nil || isSevere(level) || len(name) > len("Warning") && bytes.HasSuffix(name, []byte("Warning"))
}

// isSource reports whether a line is the place of the source that Node.js prints before an error:
// /app/x.js:5, then lines of the source. The last of them has the mark ^.
func (j *Joiner) isSource(s []byte, end int) bool {
	if placeOf(s) < len(s) || !bytes.ContainsAny(s, "/\\") {
		return false
	}
	for range farthest {
		var line []byte
		if line, end = j.behind(end); len(line) == 0 || line[0] > ' ' {
			return false
		}
		if mark := bytes.TrimLeft(line, " \t^"); len(mark) == 0 && line[len(line)-1] == '^' {
			return true
		}
	}
	return false
}

// placeOf returns the length of the place that a text begins with: a file without blanks, the number of
// a line, perhaps that of a column.
func placeOf(s []byte) int {
	file := false
	for n, c := range s {
		switch {
		case c == ' ':
			return 0
		case c == '.', c == '/', c == '\\', c == '<', c == '(':
			file = true
		case c == ':' && file && n+1 < len(s) && text.IsDigit(s[n+1]):
			for at := digits(s[n+1:]); at > 0; at = digits(s[n+1:]) {
				if n += 1 + at; n+1 >= len(s) || s[n] != ':' {
					break
				}
			}
			return n
		}
	}
	return 0
}

// digits returns how many digits a text begins with.
func digits(s []byte) (n int) {
	for n < len(s) && text.IsDigit(s[n]) {
		n++
	}
	return n
}

// nameOf returns the length of the name that a text begins with.
func nameOf(s []byte) (n int) {
	for n < len(s) && isNamed(s[n]) {
		n++
	}
	return n
}

func isNamed(c byte) bool {
	return text.IsDigit(c) || (c|0x20)-'a' < 26 || c == '.' || c == '_' || c == '$'
}
