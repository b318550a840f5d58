package live

import (
	"fmt"

	"blobtail/record"
)

// maxAlike bounds the lines of one identity. There is one line for each service that a request
// wrote to.
const maxAlike = 64 << 20

// Copies finds the copies in records of several ingesters that come in order: a sender may have
// sent a request to more than one.
type Copies struct {
	// The lines of the last time and identity: mostly one, seldom more, of other services.
	last   record.Entry // Line is ours; nil: no record has come
	others map[string]bool
	alike  int
}

// Again reports whether a record has come before. The error says that too many lines have its
// identity.
func (c *Copies) Again(e *record.Entry) (bool, error) {
	if c.last.Line == nil || c.last.Compare(e) != 0 {
		c.last.Time, c.last.ID = e.Time, e.ID
		c.last.Line = append(c.last.Line[:0], e.Line...)
		clear(c.others)
		c.alike = 0
		return false, nil
	}
	if string(c.last.Line) == string(e.Line) || c.others[string(e.Line)] {
		return true, nil
	}
	if c.alike += len(e.Line); c.alike > maxAlike {
		return false, fmt.Errorf("more than %d bytes of lines with the identity %s %d", maxAlike, e.ID.Origin, e.ID.Index)
	}
	if c.others == nil {
		c.others = map[string]bool{}
	}
	c.others[string(e.Line)] = true
	return false, nil
}
