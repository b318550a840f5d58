// Package loopback tells whether only this host takes part: as the host of a URL ([Host]), as
// the one that reaches a listener ([Listener]), and as the one that sends a request
// ([Request]).
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Host reports whether the host of a URL is this one: localhost, or an address of loopback.
func Host(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// Listener reports whether only this host reaches a listener.
func Listener(l net.Listener) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

// Request reports whether a request comes from this host.
func Request(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
