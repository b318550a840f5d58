package door

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"blobtail/internal/access"
)

// holder returns the token of a request, and the end of its session if it is known by that. The
// headers of a client count before a session, and a session before a certificate, which a
// browser may show by itself.
func (g *Guard) holder(r *http.Request) (*access.Token, time.Time, error) {
	if _, shown := access.CredentialsOf(r); shown || g.o.Sessions == nil {
		token, err := g.o.Tokens.Of(r)
		return token, time.Time{}, err
	}
	token, ends, denied := g.session(r)
	if denied == nil {
		return token, ends, nil
	}
	token, err := g.o.Tokens.Of(r)
	if errors.Is(err, access.ErrMissing) && !errors.Is(denied, access.ErrMissing) {
		err = denied
	}
	return token, time.Time{}, err
}

// session returns the token of the session of a request. A cookie counts only if a page of this
// server asks, or a person types the address.
func (g *Guard) session(r *http.Request) (*access.Token, time.Time, error) {
	cookies := r.CookiesNamed(g.cookieName(r))
	switch {
	case !g.ofOwnPage(r) || len(cookies) == 0 && r.Header.Get("Sec-Fetch-Site") != "same-origin":
		return nil, time.Time{}, access.ErrMissing
	case len(cookies) != 1: // with two, another server of the host has set one
		return nil, time.Time{}, &access.DeniedError{Err: access.ErrSession}
	}
	return g.o.Sessions.Of(cookies[0].Value)
}

// ofOwnPage reports whether no page of another origin has a browser send a request, be it of the
// same site, or of the one that the operator allows.
func (g *Guard) ofOwnPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || own(origin, r, g.o.TLS)
}

// sealed reports whether browsers reach the server over TLS.
func (g *Guard) sealed() bool { return g.o.TLS || g.o.Proxied }

// cookieName is the name of the cookie of a session. Over TLS browsers hold to the prefix: no other
// host has set it. Without TLS the server is on its own host, where others have other ports, and
// a browser sends the cookies of one port to all of them.
func (g *Guard) cookieName(r *http.Request) string {
	if g.sealed() {
		return "__Host-blobtail"
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		port = ""
	}
	return "blobtail-" + port
}

// Login begins a session of the holder of a token, ID.SECRET, that a person gives the page of this
// server, and sets its cookie. Without tokens it returns nil, and sets none.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, text string) (*access.Token, time.Time, *Refusal) {
	if f := g.mayLogin(r); f != nil || g.o.Tokens == nil {
		return nil, time.Time{}, f
	}
	token, value, ends, err := g.o.Sessions.Begin(text)
	if err != nil {
		f := g.unknown(r, err)
		f.OfPage = true
		f.Title = "Not logged in"
		if form, ok := errors.AsType[*access.FormError](err); ok {
			f.Reason = form.Fault + "; a token is ID.SECRET, as ingest token new prints it"
		}
		return nil, time.Time{}, f
	}
	if !token.MayReadAny() {
		return nil, time.Time{}, g.readsNone(r, token)
	}
	g.setCookie(w, r, value, int(access.SessionTime/time.Second))
	g.o.Log.Info().Str("token", token.ID).Str("remote", r.RemoteAddr).Time("ends", ends.UTC()).Msg("logged in")
	return token, ends, nil
}

// Logout takes the cookie of a session away from the browser of a person.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) *Refusal {
	if f := g.mayLogin(r); f != nil || g.o.Tokens == nil {
		return f
	}
	g.setCookie(w, r, "", -1)
	return nil
}

// mayLogin refuses pages of another origin, which would log a person in as somebody else.
func (g *Guard) mayLogin(r *http.Request) *Refusal {
	switch {
	case !g.ofOwnPage(r):
		return g.turned(r, &Refusal{Status: http.StatusForbidden, Code: "origin", Title: "Another site", Reason: "only the page of this server logs people in"})
	case g.o.Tokens != nil && g.o.Sessions == nil:
		return Refuse(http.StatusNotFound, "nobody logs in here; send a token with each request")
	}
	return nil
}

// setCookie sets the cookie of a session for so many seconds, for this host alone and for no
// script. A negative time takes it away.
func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(r), Value: value, Path: "/", MaxAge: seconds, Secure: g.sealed(), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}
