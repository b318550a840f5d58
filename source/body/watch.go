package body

import "blobtail/record"

// A Watch is told of the records of a body, in their order there. What it is given is valid until
// it returns.
type Watch func(Seen)

// Seen is a record that a decoder found.
type Seen struct {
	Raw      []byte // as received
	Rejected string // the reason for which it is rejected, "" if it is not
	Line     []byte // its canonical line, nil for a rejected one
	Stamp    record.Stamp
}
