package main

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/internal/doors"
)

// A door keeps browsers away from a listener: pages of a name that was turned to the address of
// the listener, and pages of other sites. It counts those that it refuses, and logs one a second.
type door struct {
	names    doors.Names
	sealed   bool // TLS is on the listener
	shut     bool // for all requests; else for those that only this host may make
	failures *prometheus.CounterVec
	log      zerolog.Logger
}

// newDoor returns the door of a listener. Everybody on this host may use a listener on loopback,
// and nothing shows the user of a browser. So requests there have to name the ingester as it is
// known. Beyond loopback clients may have any name for it, unless the operator gave the names.
func (s *security) newDoor(c config.Config, l net.Listener, sealed bool) *door {
	return &door{
		names: doors.NewNames(namesOf(c)...), sealed: sealed, shut: doors.IsLoopback(l) || len(c.Access.Hosts) > 0,
		failures: s.failures, log: s.log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
	}
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

// wrap puts the door in front of handlers. Paths of probes are outside of it.
func (d *door) wrap(next http.Handler, probes ...string) http.Handler {
	if !d.shut {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(probes, r.URL.Path) && d.refuses(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// here accepts only requests that this host makes, and no browser on it for another site.
func (d *door) here(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !doors.FromHere(r) {
			http.Error(w, r.URL.Path+" is answered on the host itself only", http.StatusForbidden)
			return
		}
		if !d.refuses(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a request comes from this host under a known name.
func (d *door) knows(r *http.Request) bool { return doors.FromHere(r) && d.names.Has(r) }

// refuses answers a request that may not pass, and reports whether it did.
func (d *door) refuses(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !d.names.Has(r):
		d.refuse(w, r, "host", http.StatusMisdirectedRequest, "this ingester does not have the name of the request's Host header; the operator adds names with --host NAME (access.hosts)")
	case doors.OfAnotherSite(r, d.sealed):
		d.refuse(w, r, "origin", http.StatusForbidden, "a page of another site asks, and this ingester answers none")
	default:
		return false
	}
	return true
}

func (d *door) refuse(w http.ResponseWriter, r *http.Request, reason string, status int, text string) {
	d.failures.WithLabelValues(reason).Inc()
	d.log.Warn().Str("reason", reason).Str("host", cut(r.Host)).Str("origin", cut(r.Header.Get("Origin"))).Str("remote", r.RemoteAddr).Msg("a request was not allowed")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.Error(w, text, status)
}

// cut is the part of a header that a line of the log has room for.
func cut(text string) string { return text[:min(len(text), 128)] }
