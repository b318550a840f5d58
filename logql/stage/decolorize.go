package stage

import "bytes"

const escape = 0x1b

// A decolorizeStage takes the sequences that control terminals from a line.
type decolorizeStage struct{}

func (decolorizeStage) changes(string) bool { return false }
func (decolorizeStage) changesLine() bool   { return true }
func (decolorizeStage) mayFail() bool       { return false }

func (d decolorizeStage) before(n *need) step {
	if !n.line {
		return nil
	}
	return d
}

func (decolorizeStage) run(s *state) bool {
	line := s.text()
	if bytes.IndexByte(line, escape) < 0 {
		return true
	}
	at := len(s.arena)
	for len(line) > 0 {
		n := bytes.IndexByte(line, escape)
		if n < 0 {
			n = len(line)
		}
		s.arena = append(s.arena, line[:n]...)
		line = line[n:]
		line = line[sequence(line):]
	}
	s.setLine(s.arena[at:])
	return true
}

// sequence returns the length of the sequence at the start of a text, which begins with the
// character escape unless it is empty.
func sequence(text []byte) int {
	switch {
	case len(text) < 2:
		return len(text)
	case text[1] == '[': // parameters, and a letter
		n := 2
		for n < len(text) && text[n] >= ' ' && text[n] < '@' {
			n++
		}
		if n < len(text) && text[n] < 0x7f && text[n] >= '@' {
			n++
		}
		return n
	case text[1] == ']': // a command, until a bell or the end of a string
		for n := 2; n < len(text); n++ {
			if text[n] == '\a' {
				return n + 1
			}
			if text[n] == escape {
				if n+1 < len(text) && text[n+1] == '\\' {
					return n + 2
				}
				return n
			}
		}
		return len(text)
	case text[1] >= ' ' && text[1] < '0': // intermediates, and a character
		return min(3, len(text))
	case text[1] >= '0' && text[1] < 0x7f:
		return 2
	}
	return 1
}
