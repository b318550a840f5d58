package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/internal/spelling"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/search"
	"blobtail/record"
	"blobtail/storage"
)

// problem is a refusal with the names that its form has beside the text.
type problem struct {
	*door.Refusal
	near   string // of services or parameters; the client may read it
	absent string // the service that is none
	at     search.Mistake
}

// Unwrap returns the refusal.
func (p *problem) Unwrap() error { return p.Refusal }

// badRequest is a mistake in the parameters.
func badRequest(format string, args ...any) *door.Refusal {
	return door.Refuse(http.StatusBadRequest, format, args...)
}

// Refuse answers a request with a refusal.
func Refuse(w http.ResponseWriter, f *door.Refusal) { write(w, &problem{Refusal: f}) }

// write answers with a problem.
func write(w http.ResponseWriter, p *problem) {
	detail := p.Reason
	if p.near != "" {
		detail += fmt.Sprintf("; is it %s?", p.near)
	}
	body, err := json.Marshal(form.Problem{
		Type: "about:blank", Title: cmp.Or(p.Title, http.StatusText(p.Status)), Status: p.Status, Detail: detail, Service: p.absent, Near: p.near,
		Line: p.at.Line, Column: p.at.Column,
	})
	if err != nil {
		panic(err) // texts and a number have JSON
	}
	p.Header(w.Header())
	w.Header().Set("Content-Type", form.Trouble)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone needs no answer
}

// fail answers a request with an error. It breaks the connection off if the client has gone, or
// the server ends: an empty answer would look like one without records.
func (c *call) fail(err error) {
	if errors.Is(c.r.Context().Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	write(c.w, c.explain(err))
}

// explain finds the status and the text of an error.
func (c *call) explain(err error) *problem {
	var (
		known   *problem
		refused *door.Refusal
		unnamed *reading.NoNameError
		buckets *reading.BucketsError
		service *reading.NoServiceError
		none    *reading.NoneChosenError
		blob    *reading.NoBlobError
		busy    *budget.BusyError
	)
	told := func(status int, text string) *problem {
		return &problem{Refusal: &door.Refusal{Status: status, Reason: text, Cause: err}}
	}
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return &problem{Refusal: refused}
	case errors.As(err, &unnamed):
		return told(http.StatusBadRequest, err.Error()+"; "+Prefix+"services lists them")
	case errors.As(err, &buckets):
		return told(http.StatusBadRequest, "by="+err.Error()+"; give a longer one, or from and to")
	case isMistake(err):
		p := told(http.StatusBadRequest, err.Error())
		if at, ok := errors.AsType[*search.Mistake](err); ok {
			p.at = *at
		}
		return p
	case errors.As(err, &service):
		return c.noService(service)
	case errors.As(err, &none):
		p := told(http.StatusNotFound, "logql: "+err.Error()+"; "+Prefix+"services lists them")
		p.Title = "No such service"
		return p
	case errors.As(err, &blob):
		p := told(http.StatusNotFound, err.Error()+"; "+Prefix+"blobs lists them")
		p.Title = "No such blob"
		return p
	case errors.As(err, &busy):
		p := told(http.StatusServiceUnavailable, err.Error())
		p.After = time.Second
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return told(http.StatusGatewayTimeout, "the query takes too long; ask for a shorter range, or fewer services")
	case errors.Is(err, storage.ErrUnauthorized):
		return told(http.StatusBadGateway, "the server may not read the store: "+err.Error())
	}
	return told(http.StatusBadGateway, err.Error())
}

// isMistake reports whether an error is of a question that no server answers.
func isMistake(err error) bool {
	return errors.As(err, new(*reading.ParamError)) || errors.As(err, new(*reading.AskError)) || errors.As(err, new(*reading.BadQueryError)) ||
		errors.As(err, new(*reading.TooLargeError)) || errors.As(err, new(*reading.MuchError)) || errors.As(err, new(*budget.Error))
}

// noService tells the likely meaning of a name that is no service for this client. It does
// the same work for one that the client may not read as for one that does not exist.
func (c *call) noService(none *reading.NoServiceError) *problem {
	e := &problem{Refusal: &door.Refusal{Status: http.StatusNotFound, Title: "No such service", Reason: none.Error(), Cause: none}, absent: none.Name}
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
		e.Reason += "; there is no service yet"
	case len(all) > most:
		e.Reason += fmt.Sprintf("; there are %s and %d more: %sservices", strings.Join(all[:most], ", "), len(all)-most, Prefix)
	case len(all) == 1:
		e.Reason += "; there is only " + all[0]
	default:
		e.Reason += "; there are " + strings.Join(all, ", ")
	}
	return e
}
