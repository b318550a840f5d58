package main

import (
	"context"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/newest"
	"blobtail/query"
)

// place is where the reading verbs read from: a store with its ingesters (storePlace), or a
// server that reads one for others (serverPlace). The verbs parse flags, print and judge. So
// both places give the same output.
type place interface {
	// name is the user's name for the place.
	name() string
	// look takes a view of the records of a query. Records that are acknowledged before the
	// call are in it, as far as the mode allows.
	look(ctx context.Context, q query.Query, mode newest.Mode) (view, error)
	// tail passes the newest records to print, oldest first, as [newest.Reader.Tail] does.
	tail(ctx context.Context, q query.Query, print func(lines []byte) error) (query.Summary, *newest.Report, error)
	// follow goes on with what comes in, as [newest.Reader.Follow] does.
	follow(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error)
	// holds reports whether a service that is in no blob exists.
	holds(ctx context.Context, service string) bool
	// held names services in no blob, and services names those in blobs, for hints.
	held(ctx context.Context) []string
	services(ctx context.Context) ([]string, error)
	// ingesters lists the rows of the ingesters, with the time to judge them by. unread is
	// the error of unreadable rows, next to the readable ones.
	ingesters(ctx context.Context) (rows []heartbeat.Ingester, now time.Time, unread, err error)
	// body is a stored blob, as [query.Reader.Body] returns it.
	body(ctx context.Context, key string) (body []byte, warning, err error)
}

// A view is a place as one read sees it. The queries of its methods are the one of
// [view.query], or parts of that.
type view interface {
	query() query.Query
	report() *newest.Report
	close()

	// lines passes the lines of a query to emit, as [query.Plan.Read] does. All records have
	// the fields only, and may have others; nil: all of them.
	lines(ctx context.Context, q query.Query, only []string, emit func(lines []byte) error) (query.Summary, error)
	count(ctx context.Context, q query.Query) (int64, query.Summary, error)
	// histogram counts by time and level, in buckets of a length. cut checks the length by
	// the times of the first and the last record, and chooses one if by is 0.
	histogram(ctx context.Context, q query.Query, by time.Duration, cut cutter) ([]query.Bucket, query.Summary, error)
	// list sums up blobs, as [query.Reader.List] does.
	list(ctx context.Context, q query.Query, day time.Time) ([]query.Total, query.Summary, error)
	// explain tells what lines would fetch.
	explain(ctx context.Context, q query.Query) (query.Explanation, query.Summary, error)
}

// A cutter returns the buckets for records from first to last, in ns; any is false if there
// are none.
type cutter func(first, last int64, any bool) (query.Buckets, error)
