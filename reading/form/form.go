// Package form has the answers of the reading API, version 1, as values of Go. The server
// (package api) writes them, and clients read them.
//
// A stream of records in the form "events" has one [Event] a line. All other answers are one
// object: [Services], [Count], [Histogram], [Facets], [Patterns], [Blobs], [Days], [Ingesters], [Whoami],
// [Found], [Parsed]. A failed request has a [Problem].
//
// Each answer that was made of records has an [Outcome]. It says whether anything is missing.
// Times are texts of RFC 3339 in UTC with nine digits of fraction, so that texts sort like
// times. Fields may be added later; none changes its meaning.
package form

import (
	"encoding/json"

	"blobtail/reading/search"
)

// Media types of answers.
const (
	JSON    = "application/json"
	Lines   = "application/x-ndjson"
	CSV     = "text/csv; charset=utf-8; header=present"
	SSE     = "text/event-stream"
	Trouble = "application/problem+json"
	Stored  = "application/zstd"
)

// MostHeld is the most records that a server holds for one answer. More than so many of the
// newest come with order=desc only, and more of the oldest with order=asc only.
const MostHeld = 100_000

// Trailers of a stream of lines or CSV. A server that sends them has sent everything.
const (
	TrailerComplete = "Blobtail-Complete" // 1, or 0 if something is missing
	TrailerMore     = "Blobtail-More"     // 1 if a limit left records out, or may have
	TrailerProblems = "Blobtail-Problems" // the reasons, in ASCII, with "; " between two
	TrailerWarnings = "Blobtail-Warnings" // those of Outcome, in ASCII, with "; " between two
	TrailerAbsent   = "Blobtail-Absent"   // the names of Outcome.Absent, in ASCII, with ", " between two
)

// Outcome says how a read went. The lists are never null.
type Outcome struct {
	// Complete says that nothing is missing.
	Complete bool `json:"complete"`
	// Problems are the reasons why something is missing.
	Problems []string `json:"problems"`
	// Warnings and Notes are facts for people. Nothing is missing because of them.
	Warnings []string `json:"warnings"`
	Notes    []string `json:"notes"`
	// Absent are the names of the request that are no service, beside others that are. A warning
	// says it too. Left out if there are none.
	Absent []string `json:"absent,omitempty"`
	Gaps   []Gap    `json:"gaps"`
	Cost   Cost     `json:"cost"`
}

// Gap is a span of time with more records than were found, both ends included.
type Gap struct {
	Service string `json:"service"`
	Records int    `json:"records"`
	// AtMost says that some of the records may not match the query.
	AtMost bool   `json:"at_most,omitempty"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Cost is the work of a read.
type Cost struct {
	Requests      int64 `json:"requests"` // for parts of blobs
	Bytes         int64 `json:"bytes"`    // of their answers
	BlobsListed   int64 `json:"blobs_listed"`
	BlobsOpened   int64 `json:"blobs_opened"`
	BlocksRead    int64 `json:"blocks_read"`
	BlocksSkipped int64 `json:"blocks_skipped"`
	// SkippedByIDs and SkippedByWords are among the skipped blocks.
	SkippedByIDs   int64 `json:"skipped_by_ids"`
	SkippedByWords int64 `json:"skipped_by_words"`
	// Copies are records that were found more than once, and are in the answer once.
	Copies int64 `json:"copies"`
	// Decoded are bytes of lines that were decoded.
	Decoded int64 `json:"decoded"`
}

// Event is one line of a stream of events, or one line of data of the tail. One field is set.
type Event struct {
	Record   *Record   `json:"record,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Absent is a name of the request that is no service, beside others that are.
	Absent string `json:"absent,omitempty"`
	// Warning is a fact that a reader must know; nothing is missing that was asked for.
	Warning string `json:"warning,omitempty"`
	Gap     *Gap   `json:"gap,omitempty"`
	Problem string `json:"problem,omitempty"`
	// End is the last line of a stream. A stream without it was cut off.
	End *End `json:"end,omitempty"`
}

// Record is a record with its identity.
type Record struct {
	// ID is <ns>-<origin, 32 hex digits>-<index>. It stays the same when blobs are compacted.
	ID string `json:"id"`
	// Line is the stored line, byte for byte, without its newline.
	Line json.RawMessage `json:"line"`
	// Anchor marks the record that the context was asked for.
	Anchor bool `json:"anchor,omitempty"`
}

// Progress says how far a stream has come.
type Progress struct {
	Read    string `json:"read,omitempty"` // the time of the last record, "" before the first
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"` // of the lines of these records
}

// End is the last event of a stream.
type End struct {
	Outcome
	Range *Range `json:"range,omitempty"` // of records
	// More says that a limit left records out, or may have.
	More    bool  `json:"more"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Unflushed are the records of the answer that are in no blob.
	Unflushed int64 `json:"unflushed"`
	// Examined are the records of the blobs that the read looked at.
	Examined int64 `json:"examined"`
	// Higher are records that only their level excludes, since it is above the wanted one. It
	// is a lower bound.
	Higher int64 `json:"higher"`
}

// Services lists services.
type Services struct {
	Services []Service `json:"services"`
	Outcome
	Range *Range `json:"range,omitempty"`
}

// Service sums up the records of a service.
type Service struct {
	Name  string `json:"name"`
	Blobs int    `json:"blobs"`
	// Records and Bytes are of blobs: the records, and the bytes of their lines.
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Stored is the bytes of the blobs; 0 if a range was asked for.
	Stored int64 `json:"stored"`
	// Unflushed are records in no blob. A record that was stored meanwhile may count in both.
	Unflushed int64 `json:"unflushed"`
	// Estimated says that a range cuts blobs, so that their records count in part, or that some of
	// the unflushed records may count as stored too: blobs have times as late as theirs.
	Estimated bool `json:"estimated,omitempty"`
	// Levels are all records by level; levels without records are left out.
	Levels map[string]int64 `json:"levels"`
	First  string           `json:"first"`
	Last   string           `json:"last"`
	// System says that ingesters write the service themselves, as _rejected.
	System bool `json:"system"`
}

// Count is the number of records of a query.
type Count struct {
	Records   int64 `json:"records"`
	Unflushed int64 `json:"unflushed"` // of them, those in no blob
	Outcome
	Range    *Range `json:"range,omitempty"`
	Examined int64  `json:"examined"`
	Higher   int64  `json:"higher"`
}

// Histogram has the numbers of records by time.
type Histogram struct {
	// By is the length of a bucket, as 1m or 1d. Days and weeks are those of the zone.
	By       string `json:"by"`
	Timezone string `json:"timezone"`
	// Split names the property by which buckets are divided: level or service, a field, or two fields
	// with a comma between them.
	Split string `json:"split"`
	// Values are the most frequent values of the split, in all buckets, the most frequent first; nil
	// if all levels or services have counts.
	Values []Share `json:"values,omitzero"`
	// Capped says that there are more different values than are counted at once. Short is left out if
	// Values are right all the same. Else each number may lack so many records, at most, which are
	// among the others, and so may a value that is not there.
	Capped bool  `json:"capped,omitempty"`
	Short  int64 `json:"short,omitempty"`
	// First and Last are the times of the first and the last record of the blobs that the
	// query touches, with any level and text; "" if there is none.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
	// Buckets are those with records, in order.
	Buckets []Bucket `json:"buckets"`
	Outcome
	Range    *Range `json:"range,omitempty"`
	Examined int64  `json:"examined"`
	Higher   int64  `json:"higher"`
}

// Bucket is a stretch of time.
type Bucket struct {
	Time  string `json:"t"` // its start
	Total int64  `json:"total"`
	// Counts are the records by level or service, or by the keys of the values; those without records
	// are left out.
	Counts map[string]int64 `json:"counts"`
	// Others are the records with other values; left out if there are none.
	Others int64 `json:"others,omitempty"`
}

// Share is a value of a split, or a pair of them.
type Share struct {
	// Key is its name in counts, "a / b" of a pair. Each value has another one.
	Key string `json:"key"`
	// Values are texts as they are, and any other value as JSON; cut at 256 bytes. Types are theirs, ""
	// for a field that records do not have.
	Values  []string `json:"values"`
	Types   []string `json:"types"`
	Records int64    `json:"records"`
}

// Range is the range of times of a request that named some, as since=1h does.
type Range struct {
	// From is the first time, and To the first one that is too new; left out if that end is open.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Now is the time of the server that relative times were of.
	Now string `json:"now"`
}

// Parsed is what a question says, before anything is read.
type Parsed struct {
	Range *Range `json:"range,omitempty"` // none if a time has a mistake
	// Line has all values of q as one, as it is printed, and Terms are its parts.
	Line  string        `json:"line"`
	Index string        `json:"index"` // its terms that choose levels and services
	Terms []search.Term `json:"terms"`
	Notes []string      `json:"notes"`
	// LogQL is the question for Grafana. Lacks says what it leaves out.
	LogQL string   `json:"logql"`
	Lacks []string `json:"lacks,omitempty"`
	// Word is the one at the end of what is typed.
	Word    *search.Word `json:"word,omitempty"`
	Mistake *Mistake     `json:"mistake,omitempty"`
}

// Mistake is why a question would be refused.
type Mistake struct {
	Parameter string `json:"parameter"`
	Line      string `json:"line,omitempty"` // the value of q, and the place in it
	Column    int    `json:"column,omitempty"`
	Text      string `json:"text"`
}

// Found is one record.
type Found struct {
	Record
	Service string `json:"service"`
	// Previous and Next are the ids of the records of the service before and after it, "" at
	// an end.
	Previous string `json:"previous,omitempty"`
	Next     string `json:"next,omitempty"`
	Outcome
}

// Facets are the fields of records with their most frequent values.
type Facets struct {
	Basis  Basis   `json:"basis"`
	Fields []Field `json:"fields"`
	More   bool    `json:"more,omitempty"` // there are others, which were left out
	Outcome
	Range *Range `json:"range,omitempty"`
}

// Basis says which records the values were taken from.
type Basis struct {
	Records int64 `json:"records"`
	// Of is the number of all records of the query; absent if it is not known.
	Of *int64 `json:"of,omitempty"`
	// Newest says that the records are the newest of the query, not all of them.
	Newest bool `json:"newest"`
}

// Field is a field of records.
type Field struct {
	Name string `json:"name"`
	// Type is int, float, string, bool, null, object or array, or mixed for several of them.
	Type string `json:"type"`
	// Present are the records that have the field.
	Present int64 `json:"present"`
	// Distinct are its different values. Capped says that there are more, which were not
	// counted.
	Distinct int  `json:"distinct"`
	Capped   bool `json:"capped"`
	// Exact says that all records of the query were counted, not those of the basis.
	Exact  bool    `json:"exact,omitempty"`
	Values []Value `json:"values"`
}

// Value is a value of a field.
type Value struct {
	// Value is a text as it is, and any other value as JSON. It is cut at 256 bytes.
	Value string `json:"value"`
	Count int64  `json:"count"`
	// Types are those that the value has in the records: a text may look like a number.
	Types []string `json:"types,omitempty"`
}

// Days sums up the days of services.
type Days struct {
	Days []Day `json:"days"`
	Outcome
}

// Day sums up the records of a service and a day in UTC.
type Day struct {
	Service string `json:"service"`
	Day     string `json:"day"` // as 2026-11-20
	Blobs   int    `json:"blobs"`
	Total
}

// Total sums up records, as in [Service].
type Total struct {
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`
	Stored    int64  `json:"stored"`
	Unflushed int64  `json:"unflushed"`
	First     string `json:"first"`
	Last      string `json:"last"`
}

// Blobs lists blobs.
type Blobs struct {
	Blobs []Blob `json:"blobs"`
	// Unflushed are the records of the same days that are in no blob.
	Unflushed int64 `json:"unflushed"`
	Outcome
}

// Blob is a blob. Its records may be of times within one hour.
type Blob struct {
	Name    string `json:"name"`
	Service string `json:"service"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`  // of lines
	Stored  int64  `json:"stored"` // of the blob
	First   string `json:"first"`
	Last    string `json:"last"`
}

// Ingesters lists the ingesters of the store: running ones first, then silent ones, then those
// that have stopped.
type Ingesters struct {
	Ingesters []Ingester `json:"ingesters"`
	Time      string     `json:"time"` // of the store, to judge them by
	Complete  bool       `json:"complete"`
	Problems  []string   `json:"problems"`
}

// Ingester is one of them.
type Ingester struct {
	ID      string `json:"id"`
	State   string `json:"state"` // live, silent or stopped
	Lane    int    `json:"lane"`
	Host    string `json:"host"`
	Address string `json:"address"`
	Version string `json:"version"`
	Started string `json:"started"`
	At      string `json:"at"` // when it was last heard of
	// Oldest is when its oldest record that is in no blob arrived.
	Oldest    string  `json:"oldest_unflushed,omitempty"`
	Unflushed float64 `json:"unflushed_seconds"` // since then
	// Holds is the state that it has announced: holding, idle or stopped.
	Holds     string `json:"holds"`
	StoreID   string `json:"store_id,omitempty"`
	LostSince string `json:"lost_since,omitempty"`
	LostUntil string `json:"lost_until,omitempty"`
	// Floor is a time that no record is before that it holds and that is in no blob.
	Floor string `json:"floor,omitempty"`
}

// Whoami has the rights of a token's holder, and the facts of the server.
type Whoami struct {
	ID      string   `json:"id,omitempty"` // of the token; "" if the server asks for none
	Read    []string `json:"read"`         // globs of services
	Expires string   `json:"expires,omitempty"`
	Limits  string   `json:"limits,omitempty"`
	// SessionEnds is the end of the session, if a cookie stands for the token.
	SessionEnds string `json:"session_ends,omitempty"`
	Version     string `json:"version"` // of the server
	Time        string `json:"time"`    // of the store
}

// Problem is the body of a failed request (RFC 9457).
type Problem struct {
	Type   string `json:"type"` // about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says where the mistake is, with a remedy.
	Detail string `json:"detail"`
	// Service is the name or glob in the request under which the client finds nothing.
	Service string `json:"service,omitempty"`
	// Line is the value of q with the mistake, and Column its place in characters, from 1.
	Line   string `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Near is a service or a parameter that was probably meant.
	Near string `json:"near,omitempty"`
}
