package otlp

import (
	"blobtail/record"
	"blobtail/source/tokens"
)

// A cursor reads the texts and values of requests too.
type cursor struct{ tokens.Cursor }

// text reads the text of a string into the memory of s if it has escapes. The text of any
// other value is its JSON, of null nothing.
func (c *cursor) text(s *set) []byte {
	switch c.Next() {
	case '"':
	case 'n':
		c.Skip()
		return nil
	default:
		return c.raw(s)
	}
	inside, escaped := c.Quoted()
	return s.unescaped(inside, escaped)
}

// raw returns the JSON of a value.
func (c *cursor) raw(s *set) []byte {
	t := c.Skip()
	if len(t) > record.MaxRecord {
		s.tooLong()
		return nil
	}
	return t
}

// unescaped returns the text of a string.
func (s *set) unescaped(inside []byte, escaped bool) []byte {
	switch {
	case len(inside) > record.MaxRecord || escaped && len(s.text) > record.MaxRecord:
		s.tooLong()
		return nil
	case !escaped:
		return inside
	}
	from := len(s.text)
	s.text = record.AppendUnescaped(s.text, inside)
	return s.text[from:]
}
