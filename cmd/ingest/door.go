package main

import (
	"net"
	"net/url"
	"slices"

	"blobtail/internal/access"
	"blobtail/internal/config"
	"blobtail/internal/door"
	"blobtail/internal/loopback"
)

// newDoor returns the door of a listener. Everybody on this host may use a listener on
// loopback, and a browser there sends no proof of identity. So requests there have to name the
// ingester as it is known. Beyond loopback clients may have any name for it, unless the operator
// gave the names.
func (s *security) newDoor(c config.Config, l net.Listener, tokens *access.Tokens, sealed bool) *door.Guard {
	return door.New(door.Options{
		Tokens: tokens, Hosts: namesOf(c), AnyName: !loopback.Listener(l) && len(c.Access.Hosts) == 0, TLS: sealed,
		UnknownHost: "this ingester does not have the name of the request's Host header; the operator adds names with --host NAME (access.hosts)",
		OtherSite:   "a page of another site asks, and this ingester answers none",
		Refused:     s.refused, Log: s.log,
	})
}

// recordsDoor returns the door of the listener for records.
func (s *security) recordsDoor(c config.Config, l net.Listener) *door.Guard {
	return s.newDoor(c, l, s.tokens, c.TLS.Cert != "")
}

// operatorsDoor returns the door of the listener for operators. Other hosts are answered only
// if they have a token of the role operator. On loopback there are none.
func (s *security) operatorsDoor(c config.Config, l net.Listener) *door.Guard {
	tokens := s.tokens
	if loopback.Listener(l) {
		tokens = nil
	}
	return s.newDoor(c, l, tokens, false)
}

// namesOf are the names that the configuration has for this ingester.
func namesOf(c config.Config) []string {
	names := slices.Clone(c.Access.Hosts)
	for _, address := range []string{c.Ingest.Listen, c.Ingest.Admin} {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
			names = append(names, host)
		}
	}
	if u, err := url.Parse(c.Ingest.Advertise); err == nil && u.Host != "" {
		names = append(names, u.Host)
	}
	return names
}
