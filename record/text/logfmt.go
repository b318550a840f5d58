package text

import (
	"bytes"
	"slices"
	"strings"

	"blobtail/record"
	"blobtail/record/times"
)

// logfmtLevel finds the value of level, lvl or severity in a line of logfmt. ok is false if
// the line is none: each word has to be a pair.
func logfmtLevel(line []byte) (word []byte, ok bool) {
	for p := (pairs{line: behindTime(line)}); ; {
		key, value, more := p.next()
		if !more {
			return nil, false
		}
		switch string(key) {
		case "level", "lvl", "severity":
			value = bytes.Trim(value, `"`)
			return value, len(value) > 0 && record.ParseLevel(value) != record.Other
		}
	}
}

// behindTime is a line without the blanks and the marks behind its time.
func behindTime(line []byte) []byte {
	for len(line) > 0 && (line[0] == ' ' || line[0] == '"' || line[0] == ']' || line[0] == ')') {
		line = line[1:]
	}
	return line
}

// pairs goes through the pairs of a line of logfmt.
type pairs struct {
	line []byte
	at   int
}

// next returns the next pair, behind blanks. more is false at the end, and at a word that is no pair.
func (p *pairs) next() (key, value []byte, more bool) {
	line, from := p.line, SkipBlanks(p.line, p.at)
	at := from
	for at < len(line) && line[at] > ' ' && line[at] != '=' && line[at] != '"' {
		at++
	}
	if at == from || at == len(line) || line[at] != '=' {
		return nil, nil, false
	}
	value = line[at+1 : at+1+logfmtValue(line[at+1:])]
	p.at = at + 1 + len(value)
	return line[from:at], value, true
}

// logfmtValue is the length of a value of logfmt, with its quotes.
func logfmtValue(s []byte) int {
	n := 0
	if len(s) > 0 && s[0] == '"' {
		for n = 1; n < len(s) && s[n] != '"'; n++ {
			if s[n] == '\\' {
				n++
			}
		}
		return min(n+1, len(s))
	}
	for n < len(s) && s[n] > ' ' {
		n++
	}
	return n
}

// NamedLevel returns the value of the first of some names, in lower case, in a line of logfmt with
// a level under it; nil for none. Each word of the line has to be a pair.
func NamedLevel(msg []byte, names []string) (word []byte) {
	if len(names) == 0 || bytes.IndexByte(msg, '=') < 0 {
		return nil
	}
	var r times.Reader
	var at Stamp
	at.Read(&r, withoutColours(msg[:LineEnd(msg, 0)]))
	line := behindTime(at.Rest)
	best := len(names)
	p := pairs{line: line}
	for {
		key, value, more := p.next()
		if !more {
			break
		}
		value = bytes.Trim(value, `"`)
		if place := slices.Index(names, strings.ToLower(string(key))); place >= 0 && place < best && record.ParseLevel(value) != record.Other {
			best, word = place, value
		}
	}
	if SkipBlanks(line, p.at) < len(line) { // a word that is no pair
		return nil
	}
	return word
}
