// Package record defines one log record for all of blobtail: its levels, the grammar
// of service names, its canonical line, and the identity that every copy of it shares.
//
// The canonical line of a record is
//
//	{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"...",...}
//
// with these four fields first, in this order, and the others after in the order
// they came. A [Scanner] checks a JSON object and remembers where its fields are; [Parts] are a
// record that is none. Package blobtail/record/meaning finds the four among them and writes the line.
// It is compact, has one way only of escaping each character, and ends in its only
// newline. So a reader finds time and level at fixed places ([LineTime], [LineLevel])
// and searches for text in the stored bytes, without parsing JSON. Levels are read by [ParseLevel].
//
// A [Request] carries such lines to the log, which makes them durable. Its [Origin],
// with an index, is the identity of each of its records: a function of the request
// alone, so that readers recognise the copies from retries.
//
// The package does no I/O and knows neither protocols nor blobs.
package record

const (
	// MaxRecord is the length in bytes of the longest JSON object that is accepted, and
	// of the parts of a record together.
	MaxRecord = 1 << 20
	// MaxDepth is how deep objects and arrays may be nested; the record itself
	// is at depth 1.
	MaxDepth = 64
	// MaxRejected is the length of the stored part of a rejected line.
	MaxRejected = 256 << 10
)
