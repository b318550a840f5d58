package reading

import (
	"blobtail/newest"
	"blobtail/newest/live"
	"blobtail/query"
)

// Words of a question and its answer. They have their homes in the packages below the door, so
// that these need not know it. Code that reads takes them from here.
type (
	// Range is a half open span of times.
	Range = query.Range
	// LevelSet is a set of levels; the zero value means all of them.
	LevelSet = query.LevelSet
	// Mode selects the unflushed records of a read.
	Mode = newest.Mode
	// Matcher decides about single lines, and finds texts in them.
	Matcher = query.Matcher

	// Outcome says how a read went.
	Outcome = query.Outcome
	// Gap is a span of time with more records than were found.
	Gap = query.Gap
	// NoServiceError says that nothing is stored under a name or a glob.
	NoServiceError = query.NoServiceError
	// NoBlobError says that nothing is stored under a key, or that its day has expired.
	NoBlobError = query.NoBlobError
	// BadQueryError is the reason why a question is invalid.
	BadQueryError = query.BadQueryError
	// TooLargeError says that a read had to decode more than it may.
	TooLargeError = query.TooLargeError
	// Problem is a part of the store that could not be read.
	Problem = query.Problem
	// NoAnswerError is the problem of an ingester without an answer.
	NoAnswerError = live.NoAnswerError

	// Bucket has the numbers of records of each level in a stretch of time.
	Bucket = query.Bucket
	// Buckets divide all times for a histogram.
	Buckets = query.Buckets
	// Total sums up some blobs.
	Total = query.Total
	// Volume sums up the records of a service by metadata.
	Volume = query.Volume
	// Neighbours are the records next to a place in the order of records.
	Neighbours = query.Neighbours
	// Explanation tells how much a read would fetch.
	Explanation = query.Explanation
	// Finding and Verified tell how a check of blobs went.
	Finding  = query.Finding
	Verified = query.Verified

	// Cursor says how far a follower has come.
	Cursor = newest.Cursor
	// Report tells a follower of missing or late records.
	Report = newest.Report
)

// Ends of a [Range] that are open.
const (
	Oldest = query.Oldest
	Newest = query.Newest
)

// Modes of a read.
const (
	Auto = newest.Auto // unflushed records too, if an ingester can be asked
	Off  = newest.Off  // blobs only
	Only = newest.Only // no blobs
)

// LiveOff begins the warnings of reads that ask no ingester. BlobsAlone is that of mode [Off].
const (
	LiveOff    = newest.LiveOff
	BlobsAlone = newest.BlobsAlone
)

// Always is the range of all times.
func Always() Range { return query.Always() }

// ParseLevels parses a list of levels, such as "error,critical" or "warn+".
func ParseLevels(text string) (LevelSet, error) { return query.ParseLevels(text) }

// ParseServices returns the services that texts of users name, for [Ask.Services].
func ParseServices(texts []string) []string { return query.ParseServices(texts) }

// ParseCursor reads the text form of a cursor.
func ParseCursor(text string) (Cursor, error) { return newest.ParseCursor(text) }
