package blobfmt

import "time"

// A Name is the place of a blob: whose logs, of which period, which one of them.
type Name struct {
	Service string
	Period  time.Time // start of the period, UTC, whole minutes
	Number  int       // 1 to MaxNumber: lane * LaneSize + k, k counting from 1
}

const (
	// MaxNumber is the greatest number that a blob can have.
	MaxNumber = 999999
	// LaneSize is how many numbers each lane has in a period.
	LaneSize = 10000
)

// String is the key of the blob, such as web/2026/11/20/1500/000001.log.
func (n Name) String() string { panic("todo") }

// ParseName is the strict inverse of [Name.String].
func ParseName(key string) (Name, error) { panic("todo") }

// PeriodPrefix is what the keys of one service and period begin with.
func PeriodPrefix(service string, period time.Time) string { panic("todo") }

// DayPrefix is what the keys of one service and day (UTC) begin with.
func DayPrefix(service string, day time.Time) string { panic("todo") }
