package door

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"time"
)

// clientGone is the status, in metrics and in the log, of a request after its client went away.
const clientGone = 499

// recovered answers for a handler that has panicked. If the answer has begun, it is cut off.
func (v *visit) recovered(a *answer, r *http.Request) {
	reason := recover()
	if reason == nil {
		return
	}
	if err, ok := reason.(error); ok && err == http.ErrAbortHandler { // the handler cuts its answer off
		v.panicked = true
		panic(reason)
	}
	stack := debug.Stack()
	if other, ok := reason.(interface{ Origin() (any, []byte) }); ok { // of a goroutine that the handler waited for
		reason, stack = other.Origin()
	}
	v.reads.o.Log.Error().Str("route", v.route.Name).Str("panic", fmt.Sprint(reason)).Bytes("stack", stack).Msg("a handler panicked")
	if a.begun {
		v.panicked = true
		panic(http.ErrAbortHandler)
	}
	a.status, a.held, a.query, a.swallow = 0, nil, nil, false
	a.refuse(r, &Refusal{Status: http.StatusInternalServerError, Title: "Internal error", Reason: "internal error; the log of the server has the reason"})
}

// end counts a request, and logs the line of a query.
func (v *visit) end(a *answer, r *http.Request) {
	status := cmp.Or(a.status, http.StatusOK)
	switch {
	case errors.Is(v.ended, errDeadline):
		status = http.StatusGatewayTimeout // the answer may have begun
	case v.ended != nil:
		status = http.StatusTooManyRequests
	case v.gone && a.hijacked == nil:
		status = clientGone
	case v.panicked && !a.begun:
		status = http.StatusInternalServerError // it was cut off before it began
	}
	took := time.Since(v.started)
	n, read := v.notes.read()
	v.reads.metrics.end(v.route, status, took, n)
	if v.route.Kind != Query && v.route.Kind != Tail || status == http.StatusUnauthorized || status == http.StatusMisdirectedRequest {
		return
	}
	id := ""
	if v.token != nil {
		id = v.token.ID
	}
	line := v.reads.o.Log.Info().Str("token", id).Str("client", r.RemoteAddr).Str("route", v.route.Name)
	if read {
		line = line.Strs("services", n.Services).Str("from", stamp(n.From)).Str("to", stamp(n.To))
	}
	complete := !n.Incomplete && (status < 300) && !v.panicked
	line.Int64("bytes", n.Bytes).Int64("records", n.Records).Int64("sent", a.bytes).Int("status", status).
		Float64("seconds", took.Seconds()).Bool("complete", complete).Msg("query")
}

// stamp is a bound of a range as the line of a query has it; "" is none.
func stamp(ns int64) string {
	if ns == math.MinInt64 || ns == math.MaxInt64 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}
