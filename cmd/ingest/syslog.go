package main

import (
	"context"
	"fmt"
	"net"

	"github.com/rs/zerolog"

	"blobtail/internal/certs"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/signpost"
	"blobtail/record/meaning"
	"blobtail/source/syslog"
)

// A syslogs is the source of syslog with its listener, and the means to end it. It is nil
// if none is configured, and its methods do nothing then.
type syslogs struct {
	source   *syslog.Source
	certs    *certs.Certs // nil without TLS
	listener net.Listener
	reading  context.Context
	end      context.CancelFunc // of reading
	ended    chan struct{}      // closed when no more records go to the buffer
}

// openSyslog listens for syslog. Connections wait until run accepts them.
func openSyslog(all config.Config, fields *meaning.Mapping, accept accepter, allow func(string) string, log zerolog.Logger, reg *count.Registry) (*syslogs, error) {
	c := all.Syslog
	if c.Listen == "" {
		return nil, nil
	}
	o, files, err := syslogOptions(c, log)
	if err != nil {
		return nil, fmt.Errorf("listen for syslog: %w", err)
	}
	o.Accept, o.AllowService, o.Fields, o.Metrics = accept, allow, fields, reg
	o.HTTP = scheme(all) + "://" + signpost.HostPort(all.Ingest.Listen, "HOST:0")
	l, err := door.Listen("--syslog", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for syslog: %w", err)
	}
	s := &syslogs{source: syslog.New(o), certs: files, listener: l, ended: make(chan struct{})}
	s.reading, s.end = context.WithCancel(context.Background())
	log.Info().Str("listen", l.Addr().String()).Bool("tls", o.TLS != nil).Msg("syslog is accepted")
	return s, nil
}

// syslogOptions returns the options for a configuration, and the certificates in them; nil
// without TLS.
func syslogOptions(c config.Syslog, log zerolog.Logger) (o syslog.Options, files *certs.Certs, err error) {
	o = syslog.Options{Service: c.Service, Services: c.Services, MaxConns: c.MaxConns, ClientCerts: c.ClientCA != "", Log: log}
	if o.Allow, err = c.Networks(); err != nil {
		return o, nil, err
	}
	if o.Zone, err = c.Location(); err != nil || c.Cert == "" {
		return o, nil, err
	}
	files, err = certs.Open(certs.Paths{Certificate: c.Cert, Key: c.Key, ClientCA: c.ClientCA}, log)
	if err == nil {
		o.TLS = files.Config()
	}
	return o, files, err
}

// run accepts messages until stop is called or ctx ends.
func (s *syslogs) run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer close(s.ended)
	defer context.AfterFunc(ctx, s.end)()
	if s.certs != nil {
		go s.certs.Run(s.reading)
	}
	return s.source.Run(s.reading, s.listener)
}

// stop ends run, and waits until it has returned, or ctx ends.
func (s *syslogs) stop(ctx context.Context) {
	if s == nil {
		return
	}
	s.end()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
}

// close ends listening, also if run was never called.
func (s *syslogs) close() {
	if s != nil {
		s.end()
		s.listener.Close()
	}
}
