// Package trust says which servers a client of TLS believes: those with certificates of the
// host's authorities, and of authorities in a file besides; and which name a certificate must
// have if that is not the host of the URL.
//
// [New] reads the file. [Trust.Config] is for each transport of the client, and
// [Trust.Explain] says what a person can do about a server that was refused. There is no way
// to believe every server: a client shows its token to each server that it believes.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"blobtail/storage/fsys"
)

// Options are the settings of a client. The zero value believes what the host believes.
type Options struct {
	// CA is the path of certificates in PEM, of authorities that are believed besides those of
	// the host; "": there are none.
	CA string
	// Name is the name, or the address, that each certificate must have; "": the host of the URL.
	Name string
}

// Trust is what a client believes. nil is the Trust of no options. Any number of goroutines
// may use it.
type Trust struct {
	o     Options
	roots *x509.CertPool // nil: those of the host
}

// New reads the file of the options. The authorities in it that are not valid at a time count
// for nothing, and it is an error if all of them are so.
func New(o Options, at time.Time) (*Trust, error) {
	if o == (Options{}) {
		return nil, nil
	}
	if strings.ContainsAny(o.Name, "/@*? ") || portBehind(o.Name) {
		return nil, fmt.Errorf("--server-name (tls.server-name): %.80q is no name in a certificate; want one such as logs.example.com, without scheme, port and wildcard", o.Name)
	}
	t := &Trust{o: o}
	if o.CA == "" {
		return t, nil
	}
	all, err := Read(o.CA)
	if err == nil {
		err = someValid(all, at)
	}
	if err != nil {
		return nil, fmt.Errorf("authorities of servers (--ca, tls.ca): %w", err)
	}
	if t.roots, err = x509.SystemCertPool(); err != nil {
		t.roots = x509.NewCertPool() // the host has none
	}
	for _, one := range all {
		t.roots.AddCert(one)
	}
	return t, nil
}

// portBehind reports whether a name has a port behind it, and is no address of IPv6.
func portBehind(name string) bool {
	return strings.Count(name, ":") == 1 || strings.Contains(name, "]:")
}

// someValid returns the reason why none of the certificates is valid at a time.
func someValid(all []*x509.Certificate, at time.Time) (err error) {
	for _, one := range all {
		if err = Valid(one, at); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w, so it proves no server; get the new one from whoever made it (deploy/tls.sh makes one)", err)
}

// Config is the configuration of TLS of a client; nil if it is that of the host.
func (t *Trust) Config() *tls.Config {
	if t == nil {
		return nil
	}
	// An HTTPS proxy in front has to have the same name.
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.roots, ServerName: t.o.Name}
}

// Valid returns the reason why a certificate is not valid at a time.
func Valid(c *x509.Certificate, at time.Time) error {
	switch {
	case at.After(c.NotAfter):
		return fmt.Errorf("it ended at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case at.Before(c.NotBefore):
		return fmt.Errorf("it begins at %s only (is this host's clock right?)", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// Read reads a file of certificates in PEM. It leaves out those that cannot be read if there are
// others. The error says what the file has in their place.
func Read(path string) (all []*x509.Certificate, err error) {
	text, err := fsys.Read(path)
	if err != nil {
		return nil, fsys.WhyUnread(err, "correct the path, to the file with the certificate of the authority (deploy/tls.sh makes it as ca.crt)")
	}
	var other string
	var unread error
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			other = block.Type
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			unread = err
			continue
		}
		all = append(all, one)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, fmt.Errorf("%s: %w", path, noCertificate(text, other, unread, path))
}

// noCertificate says what a file has in place of certificates: a block of another type, one that
// cannot be read, or no block at all.
func noCertificate(text []byte, other string, unread error, path string) error {
	const want = "it has no certificate in PEM"
	_, der := x509.ParseCertificate(text)
	switch {
	case unread != nil:
		return fmt.Errorf("its certificate cannot be read: %w; get the file anew", unread)
	case strings.HasSuffix(other, "PRIVATE KEY"):
		return errors.New(want + " but a private key; give the certificate that belongs to it, and keep the key to yourself")
	case other == "CERTIFICATE REQUEST" || other == "NEW CERTIFICATE REQUEST":
		return errors.New(want + " but the request for one; give the certificate that the authority made")
	case other == "TRUSTED CERTIFICATE" || der == nil:
		form := ""
		if der == nil {
			form = "-inform der "
		}
		return fmt.Errorf("%s; this makes one: openssl x509 %s-in %s -out ca.pem", want, form, path)
	case other != "":
		return fmt.Errorf("%s but a block of type %.40q; give the authority's certificate", want, other)
	case strings.Contains(string(text), "-----BEGIN "):
		return errors.New(want + " that is whole: the line -----END CERTIFICATE----- is missing, or a line is damaged; get the file anew")
	}
	return errors.New(want + "; a certificate begins with the line -----BEGIN CERTIFICATE-----")
}
