package record

import "fmt"

// Outcome is the result of a source's processing of a request. Two requests of one
// origin with different outcomes are not the same: another reading of a body, or
// another clock, accepts other records of it. The zero Outcome says that the origin
// alone is enough.
type Outcome struct {
	// Accepted and Rejected count the records of each kind, including expired ones.
	Accepted, Rejected uint32
	// Sum is a checksum of the accepted lines: of the time, length, service and place
	// of each, since the origin covers their bytes; 0: it is not known.
	Sum uint64
}

// Same reports whether the outcomes are the same, as far as both are known.
func (o Outcome) Same(p Outcome) bool {
	if o == (Outcome{}) || p == (Outcome{}) {
		return true
	}
	return o.Accepted == p.Accepted && o.Rejected == p.Rejected && (o.Sum == p.Sum || o.Sum == 0 || p.Sum == 0)
}

// EarlierError says that a request with this key and body came before, and that its
// records without their own times got another time than now. The caller gives them
// that time, and the request that origin, and submits it again: then they are the
// same records.
type EarlierError struct {
	Origin      Origin
	DefaultTime int64 // Unix nanoseconds
}

// Error includes the time for the records without times.
func (e *EarlierError) Error() string {
	return fmt.Sprintf("the request came before, as %s; its records without times got %s then", e.Origin, AppendTime(nil, e.DefaultTime))
}
