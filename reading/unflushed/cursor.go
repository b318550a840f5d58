package unflushed

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// Cursor says how far a reader of the newest end has come. A person copies its text form
// from one command to the next: letters, digits, - and _.
//
// If logs have released the records after a position, a follower goes on by Last and says
// so. Then records in transit at the end of the other follower may be missing, and
// records from clocks that were ahead come again.
type Cursor struct {
	// Last is the greatest record emitted, in the order of records.
	Last record.Entry // without its line
	// Positions say how far the log of each ingester was read. They are exact, also for
	// late records, as long as the ingesters remember. None: not known.
	Positions live.Positions
}

const (
	cursorVersion = 1
	cursorFixed   = 1 + 8 + 16 + 4
	cursorEach    = 4 + 8
	cursorMost    = 1024 // ingesters; a question may not have more
)

var errCursor = errors.New("it is no cursor; `logquery tail -f` prints one when it ends")

// String is the text form.
func (c Cursor) String() string {
	b := make([]byte, 0, cursorFixed+cursorEach*len(c.Positions))
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Last.Time))
	b = append(b, c.Last.ID.Origin[:]...)
	b = binary.BigEndian.AppendUint32(b, c.Last.ID.Index)
	for _, id := range slices.Sorted(maps.Keys(c.Positions)) {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) != 4 || hex.EncodeToString(raw) != id {
			continue // not a valid ingester id; its records are found by their times
		}
		b = append(b, raw...)
		b = binary.BigEndian.AppendUint64(b, c.Positions[id])
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads the text form.
func ParseCursor(text string) (Cursor, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) < 1 {
		return Cursor{}, errCursor
	}
	if b[0] > cursorVersion && len(b) >= cursorFixed {
		return Cursor{}, fmt.Errorf("a newer version wrote it (form %d)", b[0])
	}
	if b[0] != cursorVersion || len(b) < cursorFixed || (len(b)-cursorFixed)%cursorEach != 0 || len(b) > cursorFixed+cursorMost*cursorEach {
		return Cursor{}, errCursor
	}
	c := Cursor{Positions: live.Positions{}}
	c.Last.Time = int64(binary.BigEndian.Uint64(b[1:]))
	copy(c.Last.ID.Origin[:], b[9:])
	c.Last.ID.Index = binary.BigEndian.Uint32(b[25:])
	for b = b[cursorFixed:]; len(b) > 0; b = b[cursorEach:] {
		c.Positions[hex.EncodeToString(b[:4])] = binary.BigEndian.Uint64(b[4:])
	}
	return c, nil
}
