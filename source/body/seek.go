package body

import (
	"bytes"

	"blobtail/record"
)

// A seeker looks for the level in the message of a record that names none: in a text, in a
// line of logfmt, in JSON, and in the message of that. All doors pass it, so that a line has
// the same level behind each.
type seeker struct {
	parser *record.Parser
	level  func(msg []byte) []byte // of seek, made once
	// main is the parser of the record, if there is a mapping.
	main *record.Parser
}

func newSeeker() *seeker {
	s := &seeker{parser: record.NewParser()}
	s.level = s.seek
	return s
}

// seek returns the level that a message shows, nil for none. It is valid until the next call.
func (s *seeker) seek(msg []byte) []byte {
	msg = bytes.TrimSpace(msg)
	if s.main != nil {
		if level := namedLevel(msg, s.main.NamesOfLevel()); level != nil {
			return level
		}
	}
	if len(msg) > 0 && msg[0] == '{' {
		if level, ok := s.object(msg); ok {
			return level
		}
	}
	level := TextLevel(msg)
	if level != nil || len(msg) == 0 || msg[len(msg)-1] != '}' {
		return level
	}
	// JSON behind a head, such as that of CRI.
	if at := bytes.IndexByte(msg[:min(len(msg), levelReach)], '{'); at > 0 {
		level, _ = s.object(msg[at:])
	}
	return level
}

// object returns the level of a message that is an object. ok is false if it is none.
func (s *seeker) object(msg []byte) (level []byte, ok bool) {
	if n, err := s.parser.Scan(msg); err != nil || n != len(msg) {
		return nil, false
	}
	if s.main != nil {
		if l := s.parser.MappedLevel(s.main); l != record.Other {
			return []byte(l.String()), true
		}
	}
	if level = s.parser.Level(); level != nil {
		level = record.TextOf(level)
		if record.ParseLevel(level) != record.Other {
			return level, true
		}
	}
	return TextLevel(s.parser.Message()), true
}
