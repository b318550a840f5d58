package tailindex

import (
	"context"
	"time"
)

// Missed says that rows of a process were written, by their numbers, and have not
// been found for 10 s: lost, late, or of records far older than their arrival.
type Missed struct {
	Process string
	Rows    int
	// From and To are the arrivals of the rows before and after the gap.
	From, To time.Time
}

// Watch follows a service. It is of one goroutine.
type Watch struct {
	r *Reader
}

// Watch returns a watch of the rows of the service that arrive after a time.
func (r *Reader) Watch(service string, errs bool, after time.Time) *Watch { return &Watch{r: r} }

// Poll returns the rows that were not returned before, in order of arrival as far
// as it is known, and what is missing. Errors are as with [Reader.Newest]; rows
// that could not be read are not reported again, and after any other error
// nothing is lost: the next poll returns what this one would have.
func (w *Watch) Poll(ctx context.Context) (rows []Row, missed []Missed, err error) {
	return nil, nil, nil
}
