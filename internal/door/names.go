package door

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"blobtail/internal/loopback"
)

// Names are the names by which clients know a server. The zero value has those that each
// server has: localhost, the addresses of loopback, and the address that a client is
// connected to.
type Names struct {
	more map[string]bool
}

// NewNames returns Names with more of them. A name may have a port, which does not matter.
func NewNames(more ...string) Names {
	n := Names{make(map[string]bool, len(more))}
	for _, name := range more {
		n.more[hostOf(name)] = true
	}
	return n
}

// Has reports whether the Host of a request is one of the names. If a name was turned to this
// address after its page was loaded, the page sends that name.
func (n Names) Has(r *http.Request) bool {
	host := hostOf(r.Host)
	if loopback.Host(host) || n.more[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && ip.Unmap() == local.AddrPort().Addr().Unmap()
}

// hostOf is the host of a Host header or an authority, without the port.
func hostOf(authority string) string {
	host := authority
	if h, _, err := net.SplitHostPort(authority); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// OfAnotherSite reports whether a page of another site has a browser send a request. Only a
// Bearer token shows that a program meant it: browsers add names and passwords that they
// remember to requests of any page, WebSockets too. sealed says that the server ends TLS
// itself, so that its own origin is https.
func OfAnotherSite(r *http.Request, sealed bool) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "bearer") {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin != "" && !own(origin, r, sealed) || r.Header.Get("Sec-Fetch-Site") == "cross-site"
}

// own reports whether an origin is that of the server, under the name of the request.
func own(origin string, r *http.Request, sealed bool) bool {
	u, err := url.Parse(origin)
	if err != nil || sealed && u.Scheme != "https" {
		return false
	}
	return u.Host != "" && strings.EqualFold(u.Host, r.Host)
}
