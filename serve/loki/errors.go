package loki

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/internal/units"
	"blobtail/logql"
	"blobtail/logql/metric"
	"blobtail/reading"
)

// statusGone is for a client that did not wait for its answer. It never sees it.
const statusGone = 499

// refused makes a refusal of a request that is not valid. Clients look for the words of Loki.
func refused(format string, args ...any) error {
	return door.Refuse(http.StatusBadRequest, format, args...)
}

// refusedQuery makes a refusal of a query that was parsed, and cannot be run. It has the place
// of a text that is wrong.
func (c *call) refusedQuery(err error) error {
	return refused("%v", logql.Locate(c.form.Get("query"), err))
}

// tooManyBytes are the words by which clients know a query that is too large.
const tooManyBytes = "the query would read too many bytes (query: %s, limit: %s); consider adding more specific stream selectors or reduce the time range of the query"

// explain returns the refusal that an error becomes.
func explain(err error) *door.Refusal {
	var refused *door.Refusal
	var syntax *logql.Error
	var bad *reading.BadQueryError
	var numbers *metric.Error
	var large *reading.TooLargeError
	var made *budget.Error
	var busy *budget.BusyError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &syntax), errors.As(err, &bad), errors.As(err, &numbers):
		return door.Refuse(http.StatusBadRequest, "%w", err)
	case errors.As(err, &large):
		return door.Refuse(http.StatusBadRequest, tooManyBytes, sizeText(large.Bytes), sizeText(large.Limit))
	case errors.As(err, &made):
		return door.Refuse(http.StatusBadRequest, "%w", made)
	case errors.As(err, &busy):
		return door.Refuse(http.StatusServiceUnavailable, "%w", busy)
	case errors.Is(err, context.DeadlineExceeded):
		return door.Refuse(http.StatusGatewayTimeout, door.TooSlow)
	case errors.Is(err, context.Canceled):
		return door.Refuse(statusGone, "the client has gone")
	}
	return door.Refuse(http.StatusInternalServerError, "storage: %w", err)
}

// fail answers an error.
func (c *call) fail(err error) { Refuse(c.w, explain(err)) }

// Refuse answers a request with a refusal: one line of plain text.
func Refuse(w http.ResponseWriter, f *door.Refusal) {
	one := *f
	one.Words = strings.Join(strings.Fields(cmp.Or(f.Words, f.Reason)), " ")
	one.Plain(w)
}

// notFound answers for a path that is not here. Grafana looks for the first words, and takes them
// for a feature that is not supported.
func (a *API) notFound(w http.ResponseWriter) {
	const text = "404 page not found; Loki's API has here: " + prefix + "%s, label/{name}/values, detected_field/{name}/values; below /json" + prefix + " the same over stored lines"
	door.Say(w, http.StatusNotFound, fmt.Sprintf(text, strings.Join(slices.Sorted(maps.Keys(a.routes)), ", ")))
}

// refusePush tells a sender where records go.
func (c *call) refusePush() {
	c.w.Header().Set("Allow", "")
	door.Say(c.w, http.StatusMethodNotAllowed, "logs are only read here: send them to an ingester, which listens on port 8514 unless it is told otherwise")
}

// incomplete returns the reason why an answer lacks something.
func incomplete(told *reading.Outcome) error {
	problems, blobs := told.Problems(), 0
	for _, err := range problems {
		if p := (*reading.Problem)(nil); errors.As(err, &p) {
			blobs++
		}
	}
	what := ""
	switch {
	case blobs == len(problems) && told.BlobsListed >= int64(blobs):
		what = fmt.Sprintf("%d of %d blobs could not be read: ", blobs, told.BlobsListed)
	case len(problems) > 1:
		what = fmt.Sprintf("%d parts could not be read, the first: ", len(problems))
	}
	return fmt.Errorf("incomplete: %s%w", what, problems[0])
}

func sizeText(n int64) string { return units.Size(n).String() }
