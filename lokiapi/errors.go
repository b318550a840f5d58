package lokiapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/logql"
	"blobtail/logql/metric"
	"blobtail/reading"
)

// statusGone is for a client that did not wait for its answer. It never sees it.
const statusGone = 499

// A refusal is the reason not to answer, with its status. Clients look for the words of Loki.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

// refused makes a refusal of a request that is not valid.
func refused(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// refusedQuery makes a refusal of a query that was parsed, and cannot be run. It has the place
// of a text that is wrong.
func (c *call) refusedQuery(err error) error {
	return refused("%v", logql.Locate(c.form.Get("query"), err))
}

// The words by which clients know a query that is too large.
const (
	tooManyBytes = "the query would read too many bytes (query: %s, limit: %s); consider adding more specific stream selectors or reduce the time range of the query"
	tooSlow      = "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed"
)

// explain returns the status and the text of an error.
func explain(err error) (status int, text string) {
	var refused *refusal
	var syntax *logql.Error
	var bad *reading.BadQueryError
	var numbers *metric.Error
	var large *reading.TooLargeError
	var made *budget.Error
	var busy *budget.BusyError
	switch {
	case errors.As(err, &refused):
		return refused.status, refused.text
	case errors.As(err, &syntax), errors.As(err, &bad), errors.As(err, &numbers):
		return http.StatusBadRequest, err.Error()
	case errors.As(err, &large):
		return http.StatusBadRequest, fmt.Sprintf(tooManyBytes, sizeText(large.Bytes), sizeText(large.Limit))
	case errors.As(err, &made):
		return http.StatusBadRequest, made.Error()
	case errors.As(err, &busy):
		return http.StatusServiceUnavailable, busy.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, tooSlow
	case errors.Is(err, context.Canceled):
		return statusGone, "the client has gone"
	}
	return http.StatusInternalServerError, "storage: " + err.Error()
}

// fail answers an error: one line of plain text.
func (c *call) fail(err error) {
	status, text := explain(err)
	sayPlain(c.w, status, text)
}

func sayPlain(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.Join(strings.Fields(text), " ") + "\n")) // the client may have gone
}

// notFound answers for a path that is not here. Grafana takes these words for a feature that
// is not supported.
func notFound(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("404 page not found\n"))
}

// refusePush tells a sender where records go.
func (c *call) refusePush() {
	c.w.Header().Set("Allow", "")
	sayPlain(c.w, http.StatusMethodNotAllowed, "logs are only read here: send them to an ingester, which listens on port 8514 unless it is told otherwise")
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
