package buffer

import "time"

// Loss is temporary.
type Loss struct {
	Since, Until time.Time
	Records      int
}

// Lost is temporary.
func (b *Buffer) Lost() (Loss, bool) { return Loss{}, false }
