package reading

import (
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
)

// Words of a question and its answer. They have their homes in the packages below the door, so
// that these need not know it. Code that reads takes them from here.
type (
	// Range is a half open span of times.
	Range = blobs.Range
	// LevelSet is a set of levels; the zero value means all of them.
	LevelSet = blobs.LevelSet
	// Mode selects the unflushed records of a read.
	Mode = unflushed.Mode
	// Matcher decides about single lines, and finds texts in them.
	Matcher = blobs.Matcher

	// Outcome says how a read went.
	Outcome = blobs.Outcome
	// Gap is a span of time with more records than were found.
	Gap = blobs.Gap
	// NoServiceError says that nothing is stored under a name or a glob.
	NoServiceError = blobs.NoServiceError
	// NoBlobError says that nothing is stored under a key, or that its day has expired.
	NoBlobError = blobs.NoBlobError
	// BadQueryError is the reason why a question is invalid.
	BadQueryError = blobs.BadQueryError
	// TooLargeError says that a read had to decode more than it may.
	TooLargeError = blobs.TooLargeError
	// Problem is a part of the store that could not be read.
	Problem = blobs.Problem
	// NoAnswerError is the problem of an ingester without an answer.
	NoAnswerError = live.NoAnswerError

	// Bucket has the numbers of records of each level in a stretch of time.
	Bucket = blobs.Bucket
	// Buckets divide all times for a histogram.
	Buckets = blobs.Buckets
	// Total sums up some blobs.
	Total = blobs.Total
	// Volume sums up the records of a service by metadata.
	Volume = blobs.Volume
	// Neighbours are the records next to a place in the order of records.
	Neighbours = blobs.Neighbours
	// Explanation tells how much a read would fetch.
	Explanation = blobs.Explanation
	// Finding and Verified tell how a check of blobs went.
	Finding  = blobs.Finding
	Verified = blobs.Verified

	// Cursor says how far a follower has come.
	Cursor = unflushed.Cursor
	// Report tells a follower of missing or late records.
	Report = unflushed.Report
)

// Ends of a [Range] that are open.
const (
	Oldest = blobs.Oldest
	Newest = blobs.Newest
)

// Modes of a read.
const (
	Auto = unflushed.Auto // unflushed records too, if an ingester can be asked
	Off  = unflushed.Off  // blobs only
	Only = unflushed.Only // no blobs
)

// LiveOff begins the warnings of reads that ask no ingester. BlobsAlone is that of mode [Off].
const (
	LiveOff    = unflushed.LiveOff
	BlobsAlone = unflushed.BlobsAlone
)

// Always is the range of all times.
func Always() Range { return blobs.Always() }

// ParseLevels parses a list of levels, such as "error,critical" or "warn+".
func ParseLevels(text string) (LevelSet, error) { return blobs.ParseLevels(text) }

// ParseServices returns the services that texts of users name, for [Ask.Services].
func ParseServices(texts []string) []string { return blobs.ParseServices(texts) }

// ParseCursor reads the text form of a cursor.
func ParseCursor(text string) (Cursor, error) { return unflushed.ParseCursor(text) }
