package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/internal/access"
	"blobtail/internal/certs"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/trust"
)

// security has the tokens and the certificate of an ingester. All of it may be missing.
type security struct {
	tokens *access.Tokens // nil: everybody may do everything
	certs  *certs.Certs   // nil: plain HTTP
	peer   string         // the token for other ingesters, "" for none
	trust  *trust.Trust   // of other ingesters
	levels *levels        // of acknowledgement
	// newcomers limits the services of all doors.
	newcomers *newcomers
	proxy     bool // in front of the listener for records
	log       zerolog.Logger

	refused count.Counters // requests that were turned away, by reason
}

// newRefused makes the counters of requests that were turned away.
func newRefused(reg *count.Registry) count.Counters {
	return door.NewRefused(reg, "blobtail_auth_failures_total",
		"Requests without the right to do what they ask, by reason. The log of the ingester has the address.", "limit")
}

// openSecurity reads the files of tokens and certificates.
func openSecurity(c config.Config, log zerolog.Logger, reg *count.Registry) (s *security, err error) {
	s = &security{proxy: c.Access.BehindProxy, log: part(log, "access"), refused: newRefused(reg)}
	if s.peer, err = config.Token(os.Getenv, "BLOBTAIL_PEER_TOKEN", c.Access.PeerTokenFile); err != nil {
		return nil, fmt.Errorf("token for other ingesters: %w", err)
	}
	if s.trust, err = believed(c.TLS); err != nil {
		return nil, err
	}
	if c.Access.Tokens != "" {
		if s.tokens, err = access.Open(c.Access.Tokens, s.log); err != nil {
			return nil, fmt.Errorf("read the tokens: %w", err)
		}
		s.tokens.Remember(filepath.Join(c.WALDir(), "services"))
	}
	if s.levels, err = newLevels(c); err != nil {
		return nil, err
	}
	if c.TLS.Cert != "" {
		paths := certs.Paths{Certificate: c.TLS.Cert, Key: c.TLS.Key, ClientCA: c.TLS.ClientCA}
		if s.certs, err = certs.Open(paths, part(log, "tls")); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
	}
	return s, nil
}

// advertised returns the reason why readers and other ingesters get no answer at the URL that the
// ingester announces: the certificate of its own listener has another name. Behind a proxy it has
// the proxy's.
func advertised(c config.Config, files *certs.Certs) error {
	at, err := url.Parse(c.Ingest.Advertise)
	if err != nil || at.Host == "" || files == nil || c.Access.BehindProxy {
		return nil // the configuration is checked elsewhere
	}
	if at.Scheme == "http" {
		return fmt.Errorf("ingest.advertise %s: the listener for records speaks TLS; write https://%s", at, at.Host)
	}
	if err := files.Named(cmp.Or(c.TLS.ServerName, at.Hostname())); err != nil {
		return fmt.Errorf("ingest.advertise %s: %w, so readers and other ingesters refuse it; advertise one of its names, or have a certificate made for that one; or set tls.server-name (--server-name) for all of them", at, err)
	}
	return nil
}

// believed says which ingesters are believed over TLS.
func believed(c config.TLS) (*trust.Trust, error) {
	return trust.New(trust.Options{CA: c.CA, Name: c.ServerName}, time.Now())
}

// run reads the files again when they change, and at SIGHUP, until ctx ends.
func (s *security) run(ctx context.Context, group *errgroup.Group) {
	var reload []func() error
	group.Go(func() error { s.newcomers.limit.Run(ctx); return nil })
	if s.tokens != nil {
		group.Go(func() error { s.tokens.Run(ctx); return nil })
		reload = append(reload, s.tokens.Reload)
	}
	if s.certs != nil {
		group.Go(func() error { s.certs.Run(ctx); return nil })
		reload = append(reload, s.certs.Reload)
	}
	group.Go(func() error {
		door.Reload(ctx, func(err error) {
			s.log.Error().Err(err).Msg("SIGHUP: the file is not used; what was read before stays in force")
		}, reload...)
		return nil
	})
}

// scheme is that of the URL of the listener for records.
func scheme(c config.Config) string {
	if c.TLS.Cert != "" {
		return "https"
	}
	return "http"
}

// wrap puts TLS on the listener for records.
func (s *security) wrap(l net.Listener) net.Listener {
	l = door.FirstBytes(l, s.certs != nil, s.log)
	if s.certs != nil {
		return tls.NewListener(l, s.certs.Config())
	}
	return l
}

// addressed gives requests the address of the client of the proxy in front, if there is one.
func (s *security) addressed(next http.Handler) http.Handler {
	if !s.proxy {
		return next
	}
	return door.Addressed(next)
}

// mayListen returns the reason not to serve an address that others than this host reach,
// with the ways out.
func mayListen(c config.Config, flag string, l net.Listener) error {
	return doorRules(c, flag).MayListen(l)
}

// mayServe is mayListen for an address that others than this host reach.
func mayServe(c config.Config, flag, address string) error {
	return doorRules(c, flag).MayServe(address)
}

// doorRules are those of a listener. No token passes that of the operators but theirs.
func doorRules(c config.Config, flag string) door.Rules {
	r := door.Rules{
		Flag: flag, Own: "127.0.0.1:8514", Opens: true,
		Tokens: c.Access.Tokens != "", Sealed: c.TLS.Cert != "", Proxy: c.Access.BehindProxy, Open: c.Access.Open,
	}
	if flag == "--admin" {
		r.Own, r.Sealed = "127.0.0.1:8515", true
	}
	return r
}
