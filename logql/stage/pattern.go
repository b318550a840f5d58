package stage

import (
	"bytes"
	"fmt"

	"blobtail/logql"
)

// A pattern is a line with named parts: "GET <path> took <_>".
type pattern struct{ parts []part }

// A part is a literal, or a capture with a name. "_" is a capture without a label.
type part struct {
	literal []byte // nil for a capture
	name    string
}

// newPattern takes a pattern apart. The parser has checked the captures.
func newPattern(text string) (*pattern, error) {
	p := &pattern{}
	for i, one := range logql.Parts(text) {
		if one.Name != "" && i > 0 && p.parts[i-1].literal == nil {
			return nil, fmt.Errorf("<%s> follows another capture; put a text between them", one.Name)
		}
		part := part{name: one.Name}
		if one.Name == "" {
			part.literal = []byte(one.Text)
		}
		p.parts = append(p.parts, part)
	}
	return p, nil
}

// fits reports whether the pattern matches a whole line. A capture has at least one byte, and
// ends where the text behind it is found first.
func (p *pattern) fits(line []byte) bool {
	for i := range p.parts {
		lit := p.parts[i].literal
		if lit == nil {
			if len(line) == 0 {
				return false
			}
			continue
		}
		if i == 0 {
			if !bytes.HasPrefix(line, lit) {
				return false
			}
			line = line[len(lit):]
			continue
		}
		at := bytes.Index(line[1:], lit)
		if at < 0 {
			return false
		}
		line = line[1+at+len(lit):]
	}
	return len(line) == 0 || len(p.parts) > 0 && p.parts[len(p.parts)-1].literal == nil
}
