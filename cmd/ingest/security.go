package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/internal/access"
	"blobtail/internal/certs"
	"blobtail/internal/config"
)

// security has the tokens and the certificate of an ingester. All of it may be missing.
type security struct {
	tokens *access.Tokens // nil: everybody may do everything
	guard  *guard         // nil without tokens
	certs  *certs.Certs   // nil: plain HTTP
	peer   string         // the token for other ingesters, "" for none
	proxy  bool           // in front of the listener for records
	log    zerolog.Logger
}

// openSecurity reads the files of tokens and certificates.
func openSecurity(c config.Config, log zerolog.Logger, reg prometheus.Registerer) (s *security, err error) {
	failures := newFailures(reg)
	s = &security{proxy: c.Access.BehindProxy, log: part(log, "access")}
	if s.peer, err = config.Token(os.Getenv, "BLOBTAIL_PEER_TOKEN", c.Access.PeerTokenFile); err != nil {
		return nil, fmt.Errorf("token for other ingesters: %w", err)
	}
	if c.Access.Tokens != "" {
		if s.tokens, err = access.Open(c.Access.Tokens, s.log); err != nil {
			return nil, fmt.Errorf("read the tokens: %w", err)
		}
		s.tokens.Remember(filepath.Join(c.WALDir(), "services"))
		s.guard = &guard{s.tokens, failures, s.log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second})}
	}
	if c.TLS.Cert != "" {
		paths := certs.Paths{Certificate: c.TLS.Cert, Key: c.TLS.Key, ClientCA: c.TLS.ClientCA}
		if s.certs, err = certs.Open(paths, part(log, "tls")); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
	}
	return s, nil
}

// run reads the files again when they change, and at SIGHUP, until ctx ends. Without files
// SIGHUP ends the process, as it ends other programs when their terminal goes away.
func (s *security) run(ctx context.Context, group *errgroup.Group) {
	var reload []func() error
	if s.tokens != nil {
		group.Go(func() error { s.tokens.Run(ctx); return nil })
		reload = append(reload, s.tokens.Reload)
	}
	if s.certs != nil {
		group.Go(func() error { s.certs.Run(ctx); return nil })
		reload = append(reload, s.certs.Reload)
	}
	if len(reload) == 0 {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	group.Go(func() error {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
			case <-ctx.Done():
				return nil
			}
			for _, again := range reload {
				if err := again(); err != nil {
					s.log.Error().Err(err).Msg("SIGHUP: the file is not used; what was read before stays in force")
				}
			}
		}
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
	if s.certs != nil {
		return tls.NewListener(l, s.certs.Config())
	}
	return l
}

// addressed gives requests the address of the client of the proxy in front, if there is one.
// The proxy appends it to the header, so the entries before it may be lies.
func (s *security) addressed(next http.Handler) http.Handler {
	if !s.proxy {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 {
			last := all[len(all)-1]
			last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			if last != "" {
				r.RemoteAddr = net.JoinHostPort(forwarded(last), "0")
			}
		}
		next.ServeHTTP(w, r)
	})
}

// forwarded is the address in an entry of X-Forwarded-For. Some proxies add the port, and
// brackets. An entry that cannot be read stands for itself, cut: the proxy's own address
// would make one host of all its clients.
func forwarded(entry string) string {
	host := entry
	if h, _, err := net.SplitHostPort(entry); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(entry, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String()
	}
	const most = 64
	return strings.ToValidUTF8(entry[:min(most, len(entry))], "?")
}

// mayListen returns the reason not to serve an address that others than this host reach,
// with the ways out.
func mayListen(c config.Config, flag string, l net.Listener) error {
	if isLoopback(l) {
		return nil
	}
	return mayServe(c, flag, l.Addr().String())
}

// mayServe is mayListen for an address that others than this host reach.
func mayServe(c config.Config, flag, address string) error {
	if c.Access.Open {
		return nil
	}
	own := "--listen 127.0.0.1:8514"
	if flag == "--admin" {
		own = "--admin 127.0.0.1:8515"
	}
	switch {
	case c.Access.Tokens == "":
		return fmt.Errorf("%s %s is open to other hosts, and there are no tokens; make a file of tokens with `ingest token new` and give it as --tokens FILE, or listen on this host only (%s), or let everybody in with --open",
			flag, address, own)
	case flag == "--listen" && c.TLS.Cert == "" && !c.Access.BehindProxy:
		return errors.New(flag + " " + address + " is open to other hosts, and tokens would pass the network in the clear; give --tls-cert and --tls-key, or --behind-proxy if a proxy ends TLS, or --open if the network is safe")
	}
	return nil
}
