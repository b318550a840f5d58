package readapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/spelling"
	"blobtail/readapi/form"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/storage"
)

// requestError is the reason why a request has no answer.
type requestError struct {
	status int
	title  string // "": that of the status
	detail string
	near   string // of services, the client may read it
	absent string // the service that is none
	cause  error
}

func (e *requestError) Error() string { return e.detail }
func (e *requestError) Unwrap() error { return e.cause }

// badRequest is a mistake in the parameters.
func badRequest(format string, args ...any) *requestError {
	err := fmt.Errorf(format, args...)
	return &requestError{status: http.StatusBadRequest, detail: err.Error(), cause: errors.Unwrap(err)}
}

// fail answers a request with an error. It breaks the connection off if the client has gone, or
// the server ends: an empty answer would look like one without records.
func (c *call) fail(err error) {
	if errors.Is(c.r.Context().Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	e := c.explain(err)
	if e.near != "" {
		e.detail += fmt.Sprintf("; is it %s?", e.near)
	}
	body, err := json.Marshal(form.Problem{
		Type: "about:blank", Title: cmp.Or(e.title, http.StatusText(e.status)), Status: e.status, Detail: e.detail, Service: e.absent, Near: e.near,
	})
	if err != nil {
		panic(err) // texts and a number have JSON
	}
	if e.status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	c.w.Header().Set("Content-Type", form.Trouble)
	c.w.WriteHeader(e.status)
	_, _ = c.w.Write(append(body, '\n')) // a client that has gone needs no answer
}

// explain finds the status and the text of an error.
func (c *call) explain(err error) *requestError {
	var (
		known   *requestError
		unnamed *reading.NoNameError
		buckets *reading.BucketsError
		service *reading.NoServiceError
		none    *reading.NoneChosenError
		blob    *reading.NoBlobError
		busy    *budget.BusyError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &unnamed):
		return &requestError{status: http.StatusBadRequest, detail: err.Error() + "; " + Prefix + "services lists them"}
	case errors.As(err, &buckets):
		return &requestError{status: http.StatusBadRequest, detail: "by=" + err.Error() + "; give a longer one, or from and to"}
	case isMistake(err):
		return &requestError{status: http.StatusBadRequest, detail: err.Error()}
	case errors.As(err, &service):
		return c.noService(service)
	case errors.As(err, &none):
		return &requestError{status: http.StatusNotFound, title: "No such service", detail: "logql: " + err.Error() + "; " + Prefix + "services lists them"}
	case errors.As(err, &blob):
		return &requestError{status: http.StatusNotFound, title: "No such blob", detail: err.Error() + "; " + Prefix + "blobs lists them"}
	case errors.As(err, &busy):
		return &requestError{status: http.StatusServiceUnavailable, detail: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &requestError{status: http.StatusGatewayTimeout, detail: "the query takes too long; ask for a shorter range, or fewer services"}
	case errors.Is(err, storage.ErrUnauthorized):
		return &requestError{status: http.StatusBadGateway, detail: "the server may not read the store: " + err.Error()}
	}
	return &requestError{status: http.StatusBadGateway, detail: err.Error()}
}

// isMistake reports whether an error is of a question that no server answers.
func isMistake(err error) bool {
	return errors.As(err, new(*reading.ParamError)) || errors.As(err, new(*reading.AskError)) || errors.As(err, new(*reading.BadQueryError)) ||
		errors.As(err, new(*reading.TooLargeError)) || errors.As(err, new(*reading.MuchError)) || errors.As(err, new(*budget.Error))
}

// noService tells the likely meaning of a name that is no service for this client. It does
// the same work for one that the client may not read as for one that does not exist.
func (c *call) noService(none *reading.NoServiceError) *requestError {
	e := &requestError{status: http.StatusNotFound, title: "No such service", detail: none.Error(), absent: none.Name}
	all, err := c.store.Names(c.r.Context())
	if err != nil {
		return e // it is a help only
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s[0] == '_' })
	if !strings.ContainsAny(none.Name, `*?[\`) {
		e.near = spelling.Near(record.FoldService(none.Name), all)
	}
	const most = 10
	switch {
	case e.near != "":
	case len(all) == 0:
		e.detail += "; there is no service yet"
	case len(all) > most:
		e.detail += fmt.Sprintf("; there are %s and %d more: %sservices", strings.Join(all[:most], ", "), len(all)-most, Prefix)
	case len(all) == 1:
		e.detail += "; there is only " + all[0]
	default:
		e.detail += "; there are " + strings.Join(all, ", ")
	}
	return e
}
