// Package body finds the records in a body: the bytes of an HTTP request or of a
// message, with one layer of compression around them or none.
//
// A source parses the header with [ParseForm], decompresses with a [Decompressor], and
// passes the decoded bytes to [Form.Decode]. That passes each record to a [Sink]: a JSON
// object unchanged, any other record by its parts. The sink of a source is a [Gatherer]:
// it makes canonical lines of the records and a [record.Request] of the lines. split.go
// and array.go find the records: strict lines, concatenated objects, an array, or text.
//
// A text is a record for each line, or for several: package trace knows which belong together.
// cri.go takes the heads of a container runtime off. Package text reads the time and the level of
// a line. Package meaning reads those of objects and of parts, and looks into a message by the same
// readers. A [Watch] is told of each record, and of the places that the parts of its head come from.
//
// A body that cannot be accepted is an [Error]; the source turns it into an answer. The
// package knows no protocol and counts no memory: a decompressor asks its caller for each
// larger buffer.
package body

import (
	"errors"
	"fmt"
	"strings"

	"blobtail/record"
)

const (
	// MaxWire is the length of the longest compressed body.
	MaxWire = 16 << 20
	// MaxDecoded is the length of the longest body, decompressed.
	MaxDecoded = 64 << 20
	// MaxRatio is how far a compressed body may expand beyond its first MiB.
	MaxRatio = 200
	// Spare is room behind the last byte, for Read to report the end.
	Spare = 512
)

// The kinds of an [Error] that a source distinguishes.
var (
	// ErrTooLarge says that a body is longer than the limit.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported says that the form of a body is not supported.
	ErrUnsupported = errors.New("not supported")
)

// An Error is the reason that nothing of a body is accepted, with an alternative.
// errors.Is finds its kind, if it has one.
type Error struct {
	Reason string
	kind   error
}

// Error returns the reason alone.
func (e *Error) Error() string { return e.Reason }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.kind }

func fail(kind error, format string, args ...any) error {
	return &Error{kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// Short cuts a text from a client to a length suitable for an answer, or for a line
// of our log.
func Short(s string) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(string(record.CutText([]byte(s), most)), "?") + "..."
}
