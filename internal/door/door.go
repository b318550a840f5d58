// Package door stands in front of the handlers of a server, for ingesters and for servers
// that people read from.
//
// A [Guard] knows the names and the tokens of one listener. [Guard.Wrap] puts it before
// handlers, and [Guard.Here] before those that only this host may use. It passes a request on
// or answers with a [Refusal], which it counts and logs. Each request passes these doors, in
// this order:
//
//	host      the address of the listener, a name of this host, or a name of the operator
//	origin    no page of another site asks with the rights of the reader's browser
//	token     from the header or a session, with the right that its [Kind] needs; handlers get
//	          it by [Token]
//
// [Reads] are the doors behind these, for a server that people read from:
//
//	body      read up to a limit, within a time
//	gate      so many queries at once, shared by their clients; the next ones wait a little
//	deadline  a query has so much work of the server; tails have none
//	budget    a query, or a tail, makes so many bytes at once (package budget)
//
// Behind them Reads compress the answer, bound each write, and answer for handlers that panic
// or run out of time. The reads of a handler are told by [Notes.Add]. They are in the line of
// the log that each query gets, and in the metrics.
//
// A [Refusal] is the one answer to a request that gets nothing else, also where a protocol
// refuses by itself. [Rules.MayListen] refuses an address that other hosts reach without
// tokens, [Addressed] gives requests the address of the client of a proxy in front, and
// [Reload] reads files again at SIGHUP.
//
// [Sockets] bound the connections of all listeners of a process.
//
// The package knows no record and no protocol. How much a token may send, and the services
// that it may read, are the matter of the handlers.
package door

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/count"
	"blobtail/internal/loopback"
)

// A Kind says which doors a request passes.
type Kind int

// The kinds of requests. A token must have the right to read something, unless the kind says
// otherwise.
const (
	Query    Kind = iota // reads the store: gate, deadline, a line in the log
	Tail                 // goes on until its client leaves: a gate of its own, no deadline
	Light                // costs nothing: no gate
	Operator             // for programs that watch the server: this host, or the role operator
	Asks                 // the handler itself asks for the token
	Probe                // for those that restart the server: no token, any host
	Public               // the same for everybody, also by a link on another site: no token, no origin
)

// Options are the settings of a [Guard]. The zero value lets each request of a known name in
// that no page of another site sends.
type Options struct {
	// Tokens has the rights of clients; nil: everybody may ask everything.
	Tokens *access.Tokens
	// Sessions are those of people who have logged in on the page of the server. Nil: nobody can.
	Sessions *access.Sessions
	// Hosts are names that the server has, besides localhost and its addresses.
	Hosts []string
	// AnyName says that clients may have any name for the server. Then hosts and origins matter
	// only where this host has more rights.
	AnyName bool
	// CORS is the origin of another site with pages that may ask, as "https://app.example"; "":
	// none.
	CORS string
	// TLS says that the server ends TLS itself. Then its own origin is https.
	TLS bool
	// Proxied says that a proxy is in front. Then no request is known to come from this host.
	Proxied bool

	// UnknownHost and OtherSite are the reasons that clients are told.
	UnknownHost, OtherSite string
	// Form answers a request with a refusal; nil: [Refusal.Plain].
	Form func(w http.ResponseWriter, r *http.Request, f *Refusal)
	// Refused counts refusals by their code, see [NewRefused].
	Refused count.Counters
	Log     zerolog.Logger
}

// NewRefused makes the counters of refusals. It serves the codes of each Guard, and more, from
// the start.
func NewRefused(reg *count.Registry, name, help string, more ...string) count.Counters {
	c := reg.Counters(name, help, "reason")
	for _, code := range append([]string{"missing", "unknown", "secret", "expired", "forbidden", "host", "origin"}, more...) {
		c.With(code)
	}
	return c
}

// Guard allows or refuses the requests to one listener. Its methods may be called at once.
type Guard struct {
	o      Options
	names  Names
	denied zerolog.Logger // one line a second
	pages  zerolog.Logger // likewise
}

// New returns a Guard. It opens nothing.
func New(o Options) *Guard {
	one := func() zerolog.Logger { return o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}) }
	return &Guard{o: o, names: NewNames(o.Hosts...), denied: one(), pages: one()}
}

// Wrap puts the doors in front of handlers. kind tells the kind of the requests of a path.
func (g *Guard) Wrap(kind func(path string) Kind, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := kind(r.URL.Path)
		if kind != Probe && !g.o.AnyName {
			if f := g.page(r, kind); f != nil {
				g.refuse(w, r, f)
				return
			}
		}
		token, ends, f := g.admit(r, kind)
		if f != nil {
			g.refuse(w, r, f)
			return
		}
		if token != nil {
			r = r.WithContext(context.WithValue(r.Context(), key{}, &visit{token: token, ends: ends}))
		}
		next.ServeHTTP(w, r)
	})
}

// Here accepts only requests that this host makes, and no browser on it for another site.
func (g *Guard) Here(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.o.Proxied || !loopback.Request(r) {
			g.refuse(w, r, &Refusal{Status: http.StatusForbidden, Reason: r.URL.Path + " is answered on the host itself only"})
			return
		}
		if f := g.page(r, Operator); f != nil {
			g.refuse(w, r, f)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, f *Refusal) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" {
		ofPage := *f
		ofPage.OfPage = true
		f = &ofPage
	}
	if g.o.Form == nil {
		f.Plain(w)
		return
	}
	g.o.Form(w, r, f)
}

// page refuses pages of other sites, and a page with a name that was turned to the address of the
// server.
func (g *Guard) page(r *http.Request, kind Kind) *Refusal {
	if f := g.host(r); f != nil || kind == Public {
		return f
	}
	return g.origin(r)
}

// host refuses names that are not the server's.
func (g *Guard) host(r *http.Request) *Refusal {
	if g.names.Has(r) {
		return nil
	}
	return g.turned(r, &Refusal{Status: http.StatusMisdirectedRequest, Code: "host", Title: "Unknown host", Reason: g.o.UnknownHost})
}

// origin refuses requests that a page of another site has a browser send, unless the
// operator allows that site.
func (g *Guard) origin(r *http.Request) *Refusal {
	if g.allows(r) || !OfAnotherSite(r, g.o.TLS) {
		return nil
	}
	return g.turned(r, &Refusal{Status: http.StatusForbidden, Code: "origin", Title: "Another site", Reason: g.o.OtherSite})
}

// allows reports whether a page of the site that the operator allows sends a request.
func (g *Guard) allows(r *http.Request) bool {
	return g.o.CORS != "" && r.Header.Get("Origin") == g.o.CORS
}

// turned counts and logs a request of a browser.
func (g *Guard) turned(r *http.Request, f *Refusal) *Refusal {
	cut := func(text string) string { return text[:min(len(text), 128)] }
	g.o.Refused.With(f.Code).Inc()
	g.pages.Warn().Str("reason", f.Code).Str("host", cut(r.Host)).Str("origin", cut(r.Header.Get("Origin"))).Str("remote", r.RemoteAddr).Msg(notAllowed)
	return f
}

// admit returns the token of a request that has the right of its kind, and the end of its session.
// The token is nil if none is needed.
func (g *Guard) admit(r *http.Request, kind Kind) (*access.Token, time.Time, *Refusal) {
	var none time.Time
	switch {
	case g.o.Tokens == nil, kind == Probe, kind == Asks, kind == Public:
		return nil, none, nil
	case kind == Operator && !g.o.Proxied && loopback.Request(r) && g.names.Has(r):
		return nil, none, nil
	}
	token, ends, err := g.holder(r)
	if err != nil {
		return nil, none, g.unknown(r, err)
	}
	if kind == Operator && token.Role != access.Operator {
		return nil, none, g.Forbid(r, token, "token %s has not the role operator", token.ID)
	}
	if kind != Operator && !token.MayReadAny() {
		return nil, none, g.readsNone(r, token)
	}
	return token, ends, nil
}

// readsNone is the refusal of a token that may read nothing.
func (g *Guard) readsNone(r *http.Request, token *access.Token) *Refusal {
	return g.Forbid(r, token, "token %s may read no service", token.ID)
}

// Token returns the token of a request with any right. There must be tokens.
func (g *Guard) Token(r *http.Request) (*access.Token, *Refusal) {
	token, _, err := g.holder(r)
	if err != nil {
		return nil, g.unknown(r, err)
	}
	return token, nil
}

// unknown is the refusal of a request without a valid token.
func (g *Guard) unknown(r *http.Request, err error) *Refusal {
	id := ""
	if denied, ok := errors.AsType[*access.DeniedError](err); ok {
		id = denied.ID
	}
	f := &Refusal{Status: http.StatusUnauthorized, Code: access.Reason(err), Title: "No token", Reason: access.Told(err), Cause: err}
	g.Deny(r, f.Code, id, err)
	return f
}

// Forbid makes the refusal of a request because its token lacks a right. It counts and logs it.
func (g *Guard) Forbid(r *http.Request, token *access.Token, format string, args ...any) *Refusal {
	f := Refuse(http.StatusForbidden, format, args...)
	f.Code, f.Title = "forbidden", "Not allowed"
	g.Deny(r, f.Code, token.ID, f)
	return f
}

// Deny counts and logs a request that is not allowed. id is that of an existing token, or "".
func (g *Guard) Deny(r *http.Request, code, id string, err error) {
	g.o.Refused.With(code).Inc()
	line := g.denied.Warn()
	if errors.Is(err, access.ErrSession) { // a page that somebody opens to log in
		line = g.denied.Info()
	}
	// Not the path: some clients write their key into it.
	line.Err(err).Str("reason", code).Str("token", id).Str("remote", r.RemoteAddr).Msg(notAllowed)
}

const notAllowed = "a request was not allowed"
