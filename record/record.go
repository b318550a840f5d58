// Package record defines one log record for all of blobtail: its levels, the grammar
// of service names, its canonical line, and the identity that every copy of it shares.
//
// A source gives raw JSON objects to a [Parser]: Scan validates one and
// remembers where its fields are, AppendLine writes its canonical line,
//
//	{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"...",...}
//
// with these four fields first, in this order, and the others after in the order
// they came. Records that are not JSON go through [Parser.Begin] part by part, and
// invalid ones through [Parser.AppendRejected]: nothing is dropped. A canonical line
// is compact, has one way only of escaping each character, and ends in its only
// newline. So a reader finds time and level at fixed places ([LineTime], [LineLevel])
// and searches for text in the stored bytes, without parsing JSON.
//
// The four fields have many names in the records of loggers: [KnownNames] is their order. A
// [Mapping] has the names of an operator or a sender, which come first. A value that cannot be
// the part is passed over, and [Parser.Why] tells of it. Times are read by package
// blobtail/record/times, levels by [ParseLevel].
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
