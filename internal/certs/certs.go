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
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/trust"
	"blobtail/internal/watch"
	"blobtail/storage/fsys"
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
	now   atomic.Pointer[loaded]
}

// loaded is the content of the files.
type loaded struct {
	config  *tls.Config
	clients []*x509.Certificate // authorities
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
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load().config, nil },
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
	var pair tls.Certificate
	certificate, err := fsys.Read(c.paths.Certificate)
	key, kerr := fsys.Read(c.paths.Key)
	if err = cmp.Or(err, kerr); err == nil {
		pair, err = tls.X509KeyPair(certificate, key)
	}
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.paths.Certificate, c.paths.Key, unread(err))
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	var clients []*x509.Certificate
	if c.paths.ClientCA != "" {
		if clients, err = trust.Read(c.paths.ClientCA); err != nil {
			return fmt.Errorf("authorities of clients: %w", err)
		}
		next.ClientCAs, next.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		for _, one := range clients {
			next.ClientCAs.AddCert(one)
		}
	}
	c.now.Store(&loaded{next, clients})
	until, note := pair.Leaf.NotAfter, c.log.Info()
	text := "certificate read"
	if time.Until(until) < soon {
		note, text = c.log.Warn(), "the certificate ends soon, or has ended"
	}
	note.Str("file", c.paths.Certificate).Strs("names", pair.Leaf.DNSNames).Time("until", until).Msg(text)
	return nil
}

// unread adds the fix to an error of reading a file.
func unread(err error) error {
	if strings.Contains(err.Error(), "private key does not match public key") { // crypto/tls has no value for it
		return fmt.Errorf("%w: they are of two pairs; give the key that was made with this certificate, or have both made anew (deploy/tls.sh)", err)
	}
	return fsys.WhyUnread(err, "correct the path, or make a certificate (deploy/tls.sh)")
}

// Named returns the reason why clients refuse the certificate under a name or an address.
func (c *Certs) Named(host string) error {
	err := c.now.Load().config.Certificates[0].Leaf.VerifyHostname(host)
	if other, ok := errors.AsType[x509.HostnameError](err); ok {
		return errors.New(trust.Misnamed(other))
	}
	return err
}

// Sound returns the reason why clients refuse the certificate at a time, or why the server
// refuses each certificate of a client; nil if none is known.
func (c *Certs) Sound(at time.Time) error {
	files := c.now.Load()
	pair := files.config.Certificates[0]
	if err := trust.Valid(pair.Leaf, at); err != nil {
		return fmt.Errorf("certificate %s: %w; clients refuse it: put a new one there", c.paths.Certificate, err)
	}
	for _, der := range pair.Certificate[1:] {
		link, err := x509.ParseCertificate(der)
		if err == nil && link.CheckSignatureFrom(link) != nil { // clients have the roots themselves
			err = trust.Valid(link, at)
		}
		if err != nil {
			return fmt.Errorf("certificate %s: one of the chain behind it: %w; clients refuse it: put a new chain there", c.paths.Certificate, err)
		}
	}
	for _, authority := range files.clients {
		if trust.Valid(authority, at) == nil {
			return nil
		}
	}
	if len(files.clients) > 0 {
		return fmt.Errorf("authorities of clients: %s: %w; no certificate of a client is accepted: put a new authority there", c.paths.ClientCA, trust.Valid(files.clients[0], at))
	}
	return nil
}
