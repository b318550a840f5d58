// Package meaning finds the head of a foreign record: its time, level, message and service. A source
// gives objects to a [Reader], Scan and then AppendLine, or records by parts, [Reader.Begin]; invalid
// ones go through [Reader.AppendRejected]: nothing is dropped.
//
// The four have many names in the records of loggers: [KnownNames] is their order, and package
// record/names has the tables. A [Mapping] has the names of an operator or a sender, which come first. A
// value that cannot be the part is passed over, and [Reader.Why] tells of it.
//
// A message that is a text, or JSON, is looked into for the time and the level that its record lacks,
// with [Defaults.Seeks].
package meaning

import (
	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
)

// The first names of the parts, and of the objects that may have members for them.
const (
	kindTime    = names.Ts
	kindLevel   = names.LevelObject
	kindMsg     = names.Msg
	kindService = names.ServiceObject
	kindParent  = names.Fields
)

// A Reader turns JSON objects and records by parts into canonical lines. It keeps its memory
// from one record to the next; only one goroutine may use it at a time.
type Reader struct {
	record.Scanner

	last     head // of the line that was appended last, for Why
	notes    notes
	day      record.DayCache
	times    times.Reader
	clock    record.Clock
	services services
	mapped   mapped
	parts    Parts
	seeker   seeker
}

// NewReader returns a Reader that is ready for use.
func NewReader() *Reader {
	p := &Reader{Scanner: *record.NewScanner(names.At)}
	p.parts.reader = p
	return p
}

// Scan is [record.Scanner.Scan], for [Reader.AppendLine].
func (p *Reader) Scan(src []byte) (n int, err error) {
	p.mapped.before = p.mapped.before[:0]
	n, err = p.Scanner.Scan(src)
	if err == nil && p.Found.Has(names.Realtime) {
		p.spreadJournal()
	}
	return n, err
}

func (p *Reader) found() *names.Set { return (*names.Set)(&p.Found) }
