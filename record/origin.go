package record

import "encoding/hex"

// Origin identifies the source of a record: 48 bits of Unix milliseconds, big endian,
// then 80 bits that distinguish origins of the same millisecond. With an index it
// identifies a record. It is a function of the request, or of the request's place in
// the log or stream, so every copy has the same one. Origins are ordered as bytes.
type Origin [16]byte

// IsZero reports whether o is the zero origin.
func (o Origin) IsZero() bool { return o == Origin{} }

// String returns o as 32 hex digits.
func (o Origin) String() string { return hex.EncodeToString(o[:]) }
