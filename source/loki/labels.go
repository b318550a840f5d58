package loki

import (
	"bytes"
	"fmt"
	"strconv"

	"blobtail/record/names"
)

// labels are those of a stream, with the indexes of the two that have a meaning.
type labels struct {
	source  []byte // the selector that they were read from; nil for other forms
	pairs   []names.Pair
	text    []byte // memory of values that had escapes
	level   names.Choice
	service names.Choice
	size    int // bytes of names and values
}

// clear forgets the labels.
func (l *labels) clear() {
	l.source, l.pairs, l.text, l.level, l.service, l.size = nil, l.pairs[:0], l.text[:0], names.Choice{}, names.Choice{}, 0
}

// find finds the labels with a meaning, when all are there.
func (l *labels) find() {
	l.level, l.service, l.size = names.BestLevel(l.pairs, names.OfLoki), names.BestService(l.pairs, names.OfLoki), 0
	for i := range l.pairs {
		l.size += len(l.pairs[i].Name) + len(l.pairs[i].Value)
	}
}

// selector reads the labels of a stream in the form {name="value", ...}, with the strings of
// Go. Most entries of a body are of one stream, so the same selector is not read again.
func (d *decoder) selector(s []byte) error {
	l := &d.stream
	if l.source != nil && bytes.Equal(l.source, s) {
		return nil
	}
	l.clear()
	rest := bytes.TrimSpace(s)
	if len(rest) < 2 || rest[0] != '{' || rest[len(rest)-1] != '}' {
		return fmt.Errorf("the labels of a stream are %.64q; want {name=\"value\"}", s)
	}
	rest = bytes.TrimSpace(rest[1 : len(rest)-1])
	for len(rest) > 0 {
		name, after, ok := bytes.Cut(rest, []byte("="))
		after = bytes.TrimLeft(after, " \t\r\n")
		if name = bytes.TrimSpace(name); !ok || len(name) == 0 {
			return fmt.Errorf("the labels of a stream have no name and = at %.64q", rest)
		}
		value, n := l.value(after)
		if n == 0 {
			return fmt.Errorf("the label %.64q has no value in quotes", name)
		}
		l.pairs = append(l.pairs, names.Pair{Name: d.names.Of(name), Value: value})
		rest = bytes.TrimLeft(after[n:], " \t\r\n")
		if len(rest) > 0 && rest[0] != ',' {
			return fmt.Errorf("the labels of a stream have no comma at %.64q", rest)
		}
		rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), " \t\r\n")
	}
	l.source = s
	l.find()
	return nil
}

// value reads a string of Go at the start of s, and returns its length with the quotes; 0 if
// there is none.
func (l *labels) value(s []byte) (value []byte, n int) {
	if len(s) < 2 || s[0] != '"' && s[0] != '`' {
		return nil, 0
	}
	plain := true
	for n = 1; n < len(s) && s[n] != s[0]; n++ {
		if s[n] == '\\' && s[0] == '"' {
			plain = false
			n++
		}
	}
	if n >= len(s) {
		return nil, 0
	}
	n++
	if plain {
		return s[1 : n-1], n
	}
	text, err := strconv.Unquote(string(s[:n]))
	if err != nil {
		return nil, 0
	}
	from := len(l.text)
	l.text = append(l.text, text...)
	return l.text[from:], n
}
