package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"blobtail/internal/access"
	"blobtail/internal/certs"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/storage/fsys"
)

// ownAddress is where serve listens unless told otherwise.
const ownAddress = "127.0.0.1:8516"

// grace is how long queries may go on when the server is told to end.
const grace = 10 * time.Second

// mostHeld is how many bytes of records wait on disk for an answer with the oldest first.
const mostHeld = 1 << 30

type serveCmd struct {
	Listen      string          `default:"127.0.0.1:8516" help:"Address to listen on (127.0.0.1:8516)." placeholder:"ADDRESS"`
	Tokens      string          `help:"File of tokens: who may read (ingest token)." placeholder:"FILE"`
	SessionKey  string          `help:"File with a key: logins on the page survive restarts, and hold at all servers with it." placeholder:"FILE"`
	TLSCert     string          `name:"tls-cert" help:"Certificate (PEM); read again when it changes." placeholder:"FILE"`
	TLSKey      string          `name:"tls-key" help:"Its key (PEM)." placeholder:"FILE"`
	BehindProxy bool            `help:"A proxy in front ends TLS, and names its client in X-Forwarded-For."`
	Host        []string        `sep:"none" help:"A name by which clients know this server; may be repeated." placeholder:"NAME"`
	CORS        string          `name:"cors" help:"A site whose pages may ask too, as https://app.example." placeholder:"ORIGIN"`
	Label       []string        `sep:"none" help:"A field of records that is a label of streams in Loki's API; may be repeated." placeholder:"FIELD"`
	Queries     int             `help:"How many queries run at once (4 for each CPU, at least 32); one client has half." placeholder:"N"`
	Tails       int             `help:"How many tails run at once (200); one client has half." placeholder:"N"`
	Timeout     config.Duration `help:"How long the server may work for a query (2m)." placeholder:"DURATION"`
	MaxBytes    config.Size     `default:"20GiB" help:"How many bytes of records a query may read (20GiB)." placeholder:"SIZE"`
}

// A server is one run of serve.
type server struct {
	a        *app
	c        *serveCmd
	log      zerolog.Logger
	tokens   *access.Tokens   // nil: everybody may read everything
	sessions *access.Sessions // nil without tokens
	certs    *certs.Certs     // nil: plain HTTP
	reader   *reading.Reader
	metrics  count.Registry
	guard    *door.Guard
	reads    *door.Reads
	ready    *readiness
}

func (c *serveCmd) run(ctx context.Context, a *app) (int, error) {
	a.lingers.Store(true)
	s := &server{a: a, c: c, log: cli.NewLog(a.env.stderr, a.env.errTTY)}
	if err := c.validate(a.config, a.flags.Server); err != nil {
		return 0, err
	}
	if err := s.openSecurity(); err != nil {
		return 0, &cli.UsageError{Err: err}
	}
	var err error
	s.reader, err = a.openReader(ctx, !a.config.LiveOff(), reading.OpenOptions{KeepIndexes: true, MaxRaw: int64(c.MaxBytes), MaxHeld: mostHeld})
	if err != nil {
		return 0, err
	}
	if err := lease.Older(ctx, a.store.Tables, a.config.Store.Name()); err != nil {
		return 0, err
	}
	s.ready = &readiness{store: a.store, log: s.log}
	s.reads = s.newDoor()
	s.show(&s.metrics)
	l, err := c.listen(s)
	if err != nil {
		return 0, err
	}
	if _, err := fsys.Temp(); err != nil {
		s.log.Warn().Err(err).Msg("reads with many records that are in no blob yet, or with a large limit, will fail")
	}
	return cli.OK, s.run(ctx, l)
}

// newDoor returns the doors in front of all handlers.
func (s *server) newDoor() *door.Reads {
	c := s.c
	s.guard = door.New(door.Options{
		Tokens: s.tokens, Sessions: s.sessions, Hosts: c.Host, CORS: c.CORS, TLS: s.certs != nil, Proxied: c.BehindProxy,
		UnknownHost: "this server does not have the name of the request's Host header; the operator adds names with --host NAME",
		OtherSite:   "a page of another site asks; the operator allows one with --cors ORIGIN",
		Form:        refuse, Log: s.log,
		Refused: door.NewRefused(&s.metrics, "blobtail_serve_refused_total", "Refused requests, by reason. crowded: too many at once; session: a login has ended.", "crowded", "session"),
	})
	return door.NewReads(door.ReadsOptions{
		Guard: s.guard, Route: routeOf, Queries: c.Queries, Tails: c.Tails, Deadline: time.Duration(c.Timeout), Metrics: &s.metrics, Log: s.log,
	})
}

// validate checks the flags, and takes missing ones from the configuration.
func (c *serveCmd) validate(of config.Config, server string) error {
	c.Tokens = cmp.Or(c.Tokens, of.Access.Tokens)
	c.SessionKey = cmp.Or(c.SessionKey, of.Access.SessionKey)
	if len(c.Host) == 0 {
		c.Host = of.Access.Hosts
	}
	if c.TLSCert == "" && c.TLSKey == "" {
		c.TLSCert, c.TLSKey = of.TLS.Cert, of.TLS.Key
	}
	switch {
	case server != "":
		return cli.Usagef("serve reads a store itself; leave out --server, and give --store")
	case of.Store.Logs():
		// Its reads tell late, and not by query, which hours they could not read.
		return cli.Usagef("serve is for blobtail's own stores; bring Azure's own logs into one with ingest import, or read them with logquery")
	case c.SessionKey != "" && c.Tokens == "":
		return cli.Usagef("--session-key is for servers with tokens, where people log in; give --tokens too, or leave it out (access.session-key of the configuration)")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return cli.Usagef("--tls-cert and --tls-key belong together; give both, or neither")
	case c.Queries < 0 || c.Tails < 0 || c.Timeout < 0:
		return cli.Usagef("--queries, --tails and --timeout must not be negative")
	}
	return c.validateNames()
}

// validateNames refuses names that no request can have, since they would silently do nothing.
func (c *serveCmd) validateNames() error {
	if c.CORS != "" {
		u, err := url.Parse(c.CORS)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || c.CORS != u.Scheme+"://"+strings.ToLower(u.Host) {
			return cli.Usagef("--cors: %q is no origin; browsers send a scheme and a host in lower case without a path, as https://app.example", c.CORS)
		}
	}
	for _, host := range c.Host {
		if !config.IsHost(host) {
			return cli.Usagef("--host: %q is no name of a host; want one as logs.example, without scheme and path", host)
		}
	}
	return nil
}

// openSecurity reads the files of tokens, of the key of sessions, and of certificates.
func (s *server) openSecurity() (err error) {
	if s.c.Tokens != "" {
		if s.tokens, err = access.Open(s.c.Tokens, s.log); err != nil {
			return fmt.Errorf("read the tokens: %w", err)
		}
		if s.sessions, err = access.OpenSessions(s.tokens, s.c.SessionKey, s.log); err != nil {
			return fmt.Errorf("read the key of sessions: %w", err)
		}
	}
	if s.c.TLSCert != "" {
		if s.certs, err = certs.Open(certs.Paths{Certificate: s.c.TLSCert, Key: s.c.TLSKey, ClientCA: s.a.config.TLS.ClientCA}, s.log); err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
	}
	return nil
}

// listen opens the address, unless others than this host reach it without a token.
func (c *serveCmd) listen(s *server) (net.Listener, error) {
	l, err := door.Listen("--listen", c.Listen)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	rules := door.Rules{Flag: "--listen", Own: ownAddress, Tokens: s.tokens != nil, Sealed: s.certs != nil, Proxy: c.BehindProxy}
	if err := rules.MayListen(l); err != nil {
		return nil, &cli.UsageError{Err: errors.Join(err, l.Close())}
	}
	return l, nil
}

// run serves until ctx ends. Then it accepts nothing more, drops the tails, and lets queries
// go on for the grace.
func (s *server) run(ctx context.Context, l net.Listener) error {
	scheme, at := "http", l.Addr().String()
	all := s.reads.Wrap(s.handlers())
	if s.c.BehindProxy {
		all = door.Addressed(all)
	}
	srv := s.reads.NewServer(all, s.log)
	l = door.FirstBytes(door.NewSockets(0, s.log).Watch(srv, l), s.certs != nil, s.log)
	if s.certs != nil {
		scheme, l = "https", tls.NewListener(l, s.certs.Config())
	}
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, failed := errgroup.WithContext(working)
	s.reload(working, group)
	group.Go(func() error { s.reader.Forget(working); return nil })
	group.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", at, err)
		}
		return nil
	})
	s.log.Info().Str("url", scheme+"://"+at).Stringer("store", s.a.config.Store).Bool("tokens", s.tokens != nil).
		Str("version", cli.Version()).Msg("listening")
	select {
	case <-ctx.Done():
		s.log.Info().Float64("grace_seconds", grace.Seconds()).Msg("stopping")
		last, done := context.WithTimeout(working, grace)
		defer done()
		if err := srv.Shutdown(last); err != nil {
			s.log.Warn().Err(err).Msg("queries were cut off")
		}
	case <-failed.Done():
	}
	end()
	srv.Close()
	return group.Wait()
}

// reload reads the files of tokens, keys and certificates again when they change, and at SIGHUP.
func (s *server) reload(ctx context.Context, group *errgroup.Group) {
	var again []func() error
	if s.tokens != nil {
		group.Go(func() error { s.tokens.Run(ctx); return nil })
		group.Go(func() error { s.sessions.Run(ctx); return nil })
		again = append(again, s.tokens.Reload, s.sessions.Reload)
	}
	if s.certs != nil {
		group.Go(func() error { s.certs.Run(ctx); return nil })
		again = append(again, s.certs.Reload)
	}
	group.Go(func() error {
		door.Reload(ctx, func(err error) {
			s.log.Error().Err(err).Msg("SIGHUP: the file is not used; what was read before stays in force")
		}, again...)
		return nil
	})
}

// Help has the examples of the verb.
func (serveCmd) Help() string {
	return `Examples:
  logquery serve
  logquery serve --listen :8516 --tokens tokens.yaml --tls-cert cert.pem --tls-key key.pem --host logs.example
  logquery serve --listen :8516 --tokens tokens.yaml --behind-proxy --label status

It answers Loki's API below /loki and /json, its own below /api/v1, and probes at /livez and /readyz. It keeps no state: any number may run. Each query is a line on stderr.`
}
