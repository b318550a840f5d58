// Package certs keeps the certificate of a TLS server up to date.
//
// [Open] reads the files, [Certs.Run] reads them again when they change, and [Certs.Reload]
// at a signal. [Certs.Config] is the configuration of a listener; each new connection gets
// the newest files. A certificate that cannot be used does not replace one that works.
//
// Clients may speak TLS 1.2 or later, and HTTP/1.1. With a file of authorities a client may
// show a certificate. It must be valid then; a client without one gets through, because it
// may have a token.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/watch"
)

// Paths are the files, in PEM.
type Paths struct {
	Certificate string // with the chain behind it
	Key         string
	ClientCA    string // authorities of client certificates; "": clients show none
}

// Certs are the files of a server. Any number of goroutines may use them.
type Certs struct {
	paths Paths
	log   zerolog.Logger
	files *watch.Files
	now   atomic.Pointer[tls.Config]
}

// soon is the time before the end of a certificate from which a warning is due.
const soon = 7 * 24 * time.Hour

// Open reads the files. The error names the file.
func Open(paths Paths, log zerolog.Logger) (*Certs, error) {
	watched := []string{paths.Certificate, paths.Key}
	if paths.ClientCA != "" {
		watched = append(watched, paths.ClientCA)
	}
	c := &Certs{paths: paths, log: log, files: watch.New(watched...)}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config is the configuration of a listener.
func (c *Certs) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
}

// Run reads the files when they have changed, until ctx ends.
func (c *Certs) Run(ctx context.Context) {
	c.files.Run(ctx, c.Reload, func(err error) {
		c.log.Error().Err(err).Msg("the changed certificate is not used; the one of before stays in force")
	})
}

// Reload reads the files now. After an error those of before stay in force.
func (c *Certs) Reload() error {
	pair, err := tls.LoadX509KeyPair(c.paths.Certificate, c.paths.Key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.paths.Certificate, c.paths.Key, err)
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if c.paths.ClientCA != "" {
		if next.ClientCAs, err = authorities(c.paths.ClientCA); err != nil {
			return err
		}
		next.ClientAuth = tls.VerifyClientCertIfGiven
	}
	c.now.Store(next)
	until, note := pair.Leaf.NotAfter, c.log.Info()
	text := "certificate read"
	if time.Until(until) < soon {
		note, text = c.log.Warn(), "the certificate ends soon, or has ended"
	}
	note.Str("file", c.paths.Certificate).Strs("names", pair.Leaf.DNSNames).Time("until", until).Msg(text)
	return nil
}

// authorities reads a file of certificates.
func authorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("authorities of clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authorities of clients: %s: %w", path, errors.New("it has no certificate in PEM"))
	}
	return pool, nil
}
