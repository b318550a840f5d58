package httpguard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/doors"
)

// host refuses names that are not the server's.
func (g *Guard) host(_ *answer, r *http.Request, v *visit) *refusal {
	if v.route.Kind == Probe || g.names.Has(r) {
		return nil
	}
	g.counts.refuse("host")
	return &refusal{status: http.StatusMisdirectedRequest, title: "Unknown host",
		detail: "this server does not have the name of the request's Host header; the operator adds names with --host NAME"}
}

// origin refuses requests that a page of another site has a browser send, unless the
// operator allows that site.
func (g *Guard) origin(a *answer, r *http.Request, v *visit) *refusal {
	if v.route.Kind == Probe {
		return nil
	}
	origin := r.Header.Get("Origin")
	if g.o.CORS != "" {
		a.Header().Add("Vary", "Origin")
	}
	if g.o.CORS != "" && origin == g.o.CORS {
		g.allow(a, r)
		return nil
	}
	if !doors.OfAnotherSite(r, g.o.TLS) {
		return nil
	}
	g.counts.refuse("origin")
	return &refusal{status: http.StatusForbidden, title: "Another site",
		detail: "a page of another site asks; the operator allows one with --cors ORIGIN"}
}

// allow adds the headers by which a browser gives the answer to a page of the allowed site.
// It answers the question that a browser sends before the request.
func (g *Guard) allow(a *answer, r *http.Request) {
	h := a.Header()
	h.Set("Access-Control-Allow-Origin", g.o.CORS)
	h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate, Blobtail-Complete, Blobtail-More, Blobtail-Problems, Blobtail-Warnings, Blobtail-Absent")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-Loki-Response-Encoding-Flags, X-Query-Tags")
	h.Set("Access-Control-Max-Age", "600")
	a.WriteHeader(http.StatusNoContent)
}

// token refuses requests without a token that is valid and may read something.
func (g *Guard) token(_ *answer, r *http.Request, v *visit) *refusal {
	if g.o.Tokens == nil || v.route.Kind == Probe {
		return nil
	}
	if v.route.Kind == Operator && !g.o.Proxied && doors.FromHere(r) {
		return nil
	}
	token, err := g.o.Tokens.Of(r)
	if err != nil {
		id := ""
		if denied, ok := errors.AsType[*access.DeniedError](err); ok {
			id = denied.ID
		}
		g.deny(r, access.Reason(err), id, err)
		return &refusal{status: http.StatusUnauthorized, title: "No token", detail: access.Told(err)}
	}
	v.token = token
	switch {
	case v.route.Kind == Operator && token.Role != access.Operator:
		err = fmt.Errorf("token %s has not the role operator", token.ID)
	case v.route.Kind != Operator && !token.MayReadAny():
		err = fmt.Errorf("token %s may read no service", token.ID)
	default:
		return nil
	}
	g.deny(r, "forbidden", token.ID, err)
	return &refusal{status: http.StatusForbidden, title: "Not allowed", detail: err.Error()}
}

// deny counts and logs a request that may not do what it asks. id is that of an existing
// token, or "".
func (g *Guard) deny(r *http.Request, reason, id string, err error) {
	g.counts.refuse(reason)
	// Not the path: some clients write their key into it.
	g.denied.Warn().Err(err).Str("reason", reason).Str("token", id).Str("remote", r.RemoteAddr).Msg("a request was not allowed")
}

const (
	maxBody  = 1 << 20
	bodyWait = 30 * time.Second
)

// body reads the body of a request, so that a client that sends it slowly keeps nothing busy.
func (g *Guard) body(a *answer, r *http.Request, _ *visit) *refusal {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	_ = a.rc.SetReadDeadline(time.Now().Add(bodyWait)) // a test's recorder has none
	text, err := io.ReadAll(http.MaxBytesReader(a.w, r.Body, maxBody))
	_ = a.rc.SetReadDeadline(time.Time{})
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return &refusal{status: http.StatusRequestEntityTooLarge, title: "Body too long", detail: "the body is longer than 1 MiB"}
	}
	if err != nil {
		return &refusal{status: http.StatusRequestTimeout, title: "Body not read", detail: "the body did not come whole within 30 s"}
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return nil
}
