// Package formats reads the two kinds of logs that Azure itself keeps in blob storage, and
// makes canonical lines of them.
//
//   - [Classic] are the logs of Storage Analytics: lines of 30 or 38 fields between
//     semicolons (learn.microsoft.com, "Storage Analytics log format").
//   - [Resource] are the resource logs and the activity log of Azure Monitor: a JSON object
//     a line, or the older form of one object with an array of records.
//
// A [Splitter] cuts the bytes of a blob into entries. A [Translator] makes a line of an
// entry, or says why it is malformed. A malformed entry never takes the entries behind it
// along. The package opens nothing and knows no names of blobs.
package formats

// Kind is a format of logs.
type Kind uint8

// The kinds.
const (
	Classic Kind = iota
	Resource
)

// MalformedError is the reason that an entry has no line.
type MalformedError struct{ Reason string }

func (e *MalformedError) Error() string { return e.Reason }

// bom may be at the start of a blob.
const bom = "\xef\xbb\xbf"
