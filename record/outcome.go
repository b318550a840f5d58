package record

import "fmt"

// Outcome is what a source made of a request. Two requests of one origin whose
// outcomes differ are not the same: another reading of a body, or another clock,
// accepts other records of it. The zero Outcome says that the origin alone tells.
type Outcome struct {
	// Accepted and Rejected count the records of each kind, before those that have
	// expired are left out.
	Accepted, Rejected uint32
	// Sum is a checksum of the accepted lines: of the time, length, service and place
	// of each, since the origin tells of their bytes; 0: it is not known.
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
// records without times of their own got another time than now. Give them that time,
// the request that origin, and hand it over again: they are the same records then.
type EarlierError struct {
	Origin      Origin
	DefaultTime int64 // Unix nanoseconds
}

// Error says what the records without times have to get.
func (e *EarlierError) Error() string {
	return fmt.Sprintf("the request came before, as %s; its records without times got %s then", e.Origin, AppendTime(nil, e.DefaultTime))
}
