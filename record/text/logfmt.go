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
	at := 0
	for at < len(line) && (line[at] == '"' || line[at] == ']' || line[at] == ')') { // behind a time
		at++
	}
	for p := (pairs{line: line, at: at}); ; {
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

// pairs goes through the pairs of a line of logfmt.
type pairs struct {
	line []byte
	at   int
}

// next returns the next pair. more is false at the end, and at a word that is no pair.
func (p *pairs) next() (key, value []byte, more bool) {
	line := p.line
	key, at := pairKey(line, p.at)
	if key == nil {
		return nil, nil, false
	}
	value = line[at : at+logfmtValue(line[at:])]
	p.at = at + len(value)
	return key, value, true
}

// isPair reports whether a line begins with a pair of logfmt.
func isPair(line []byte) bool {
	key, _ := pairKey(line, 0)
	return key != nil
}

// pairKey returns the key of the pair of logfmt behind the blanks at a place, and where its value
// begins; nil for none.
func pairKey(line []byte, at int) (key []byte, value int) {
	at = SkipBlanks(line, at)
	from := at
	for at < len(line) && line[at] > ' ' && line[at] != '=' && line[at] != '"' {
		at++
	}
	if at == from || at == len(line) || line[at] != '=' {
		return nil, 0
	}
	return line[from:at], at + 1
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
	line := bytes.TrimLeft(at.Rest, `"])`) // behind a time
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
