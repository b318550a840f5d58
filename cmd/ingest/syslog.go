package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/source/syslog"
)

// A syslogs is the source of syslog with its listener, and the means to end it. It is nil
// if none is configured, and its methods do nothing then.
type syslogs struct {
	source   *syslog.Source
	listener net.Listener
	reading  context.Context
	end      context.CancelFunc // of reading
	ended    chan struct{}      // closed when no more records go to the buffer
}

// openSyslog listens for syslog. Connections wait until run accepts them.
func openSyslog(c config.Syslog, accept accepter, log zerolog.Logger, reg prometheus.Registerer) (*syslogs, error) {
	if c.Listen == "" {
		return nil, nil
	}
	o, err := syslogOptions(c)
	if err != nil {
		return nil, fmt.Errorf("listen for syslog: %w", err)
	}
	o.Accept, o.Log, o.Metrics = accept, log, reg
	l, err := listen("--syslog", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for syslog: %w", err)
	}
	s := &syslogs{source: syslog.New(o), listener: l, ended: make(chan struct{})}
	s.reading, s.end = context.WithCancel(context.Background())
	log.Info().Str("listen", l.Addr().String()).Bool("tls", o.TLS != nil).Msg("syslog is accepted")
	return s, nil
}

func syslogOptions(c config.Syslog) (o syslog.Options, err error) {
	o = syslog.Options{Service: c.Service, Services: c.Services, MaxConns: c.MaxConns, ClientCerts: c.ClientCA != ""}
	if o.Allow, err = c.Networks(); err != nil {
		return o, err
	}
	if o.Zone, err = c.Location(); err != nil {
		return o, err
	}
	if c.Cert != "" {
		o.TLS, err = syslogTLS(c)
	}
	return o, err
}

// syslogTLS reads the certificates.
func syslogTLS(c config.Syslog) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.Cert, c.Key, err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.ClientCA == "" {
		return t, nil
	}
	text, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("authorities of senders: %w", err)
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !t.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authorities of senders: %s: %w", c.ClientCA, errors.New("it has no certificate in PEM"))
	}
	return t, nil
}

// run accepts messages until stop is called or ctx ends.
func (s *syslogs) run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer close(s.ended)
	defer context.AfterFunc(ctx, s.end)()
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
