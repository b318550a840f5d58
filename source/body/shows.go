package body

import "blobtail/record"

// Shows returns a function that finds the level that a text shows, by the rules for the message of a
// record behind any door; [record.Other] for none. Only one goroutine may call it at a time.
func Shows() func(text []byte) record.Level {
	s := newSeeker()
	return func(text []byte) record.Level {
		_, l := s.seek(text, true)
		return l
	}
}
