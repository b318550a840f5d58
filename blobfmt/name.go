package blobfmt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// A Name is the place of a blob: its service, its period and its number.
type Name struct {
	Service string
	Period  time.Time // start of the period, UTC, whole minutes
	Number  int       // 1 to MaxNumber: lane * LaneSize + k, k counting from 1
}

const (
	// MaxNumber is the greatest number of a blob.
	MaxNumber = 999999
	// LaneSize is the count of numbers of each lane in a period.
	LaneSize = 10000
)

const (
	// The years that int64 nanoseconds can represent. A period may begin a little before
	// the first of them or end after the last.
	minYear = 1677
	maxYear = 2262

	periodLayout = "2006/01/02/1504/"
	suffix       = ".log"
	digits       = 6 // of the number
)

// String is the key of the blob, such as web/2026/11/20/1500/000001.log.
func (n Name) String() string {
	return fmt.Sprintf("%s%0*d%s", PeriodPrefix(n.Service, n.Period), digits, n.Number, suffix)
}

// PeriodPrefix is the common prefix of the keys of one service and period.
func PeriodPrefix(service string, period time.Time) string {
	return service + "/" + period.UTC().Format(periodLayout)
}

// Place is the first 64 bits of the SHA-256 of the name's [PeriodPrefix]. A blob has it in its
// metadata, so that a reader sees that someone has put the blob under another service or period.
func (n Name) Place() [8]byte {
	sum := sha256.Sum256([]byte(PeriodPrefix(n.Service, n.Period)))
	return [8]byte(sum[:])
}

// Check reports that a blob with the metadata m does not belong under the name.
func (n Name) Check(m Meta) error {
	if m.Place != [8]byte{} && m.Place != n.Place() {
		return errors.New("it was stored under another service or period, and someone has put it here")
	}
	return nil
}

// SameLane reports whether two blobs are of the same lane in the same period.
func (n Name) SameLane(m Name) bool {
	return n.Service == m.Service && n.Period.Equal(m.Period) && n.Number/LaneSize == m.Number/LaneSize
}

// ParseName is the strict inverse of [Name.String].
func ParseName(key string) (Name, error) {
	service, rest, _ := strings.Cut(key, "/")
	if !record.ValidStored(service) {
		return Name{}, fmt.Errorf("blob name %q: the service is not valid", key)
	}
	if len(rest) == len(periodLayout)+digits+len(suffix) {
		// time.Parse and Atoi are lenient about a few forms. The comparison below makes
		// this strict.
		period, err := time.Parse(periodLayout, rest[:len(periodLayout)])
		if err != nil || period.Year() < minYear || period.Year() > maxYear {
			return Name{}, fmt.Errorf("blob name %q: the period is not valid", key)
		}
		number, _ := strconv.Atoi(rest[len(periodLayout):][:digits]) // 0 for no number
		if n := (Name{Service: service, Period: period, Number: number}); number > 0 && n.String() == key {
			return n, nil
		}
	}
	return Name{}, fmt.Errorf("blob name %q: not of the form service/yyyy/mm/dd/hhmm/NNNNNN.log", key)
}
