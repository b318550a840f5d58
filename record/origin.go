package record

import (
	"encoding/hex"
	"time"
)

// Origin is where a record came from.
type Origin [16]byte

// IsZero reports whether o is the zero origin.
func (o Origin) IsZero() bool { return o == Origin{} }

// String returns o as 32 hex digits.
func (o Origin) String() string { return hex.EncodeToString(o[:]) }

func KeyTime(key string) (ms int64, ok bool) { panic("todo") }
func KeyOrigin(client, key string, part int, earliest int64, hasEarliest bool) Origin {
	panic("todo")
}
func BodyOrigin(client, path string, part int, body []byte, earliest int64) Origin { panic("todo") }
func LogOrigin(createdMs int64, random [5]byte, offset uint64) Origin              { panic("todo") }
func StreamOrigin(created time.Time, stream string, seq uint64) Origin             { panic("todo") }
