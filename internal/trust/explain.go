package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// refused is an error of TLS with words of ours.
type refused struct {
	text  string
	cause error
}

func (e *refused) Error() string { return e.text }
func (e *refused) Unwrap() error { return e.cause }

// Explain adds the remedy to the error of a request to a URL, if TLS is its reason. It returns
// other errors as they are, and false.
func (t *Trust) Explain(err error, at *url.URL) (explained error, ok bool) {
	var name x509.HostnameError
	if errors.As(err, &name) {
		return &refused{t.misnamed(name, chain(err)), err}, true
	}
	if hint := t.hint(err, at); hint != "" {
		return fmt.Errorf("%w; %s", err, hint), true
	}
	return err, false
}

// hint is the remedy for an error that is not about a name; "" if none is known.
func (t *Trust) hint(err error, at *url.URL) string {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		none    x509.SystemRootsError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown):
		return t.unknown(unknown.Cert)
	case errors.As(err, &none):
		return t.unknown(nil)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert.IsCA:
		return "that is an authority's certificate: get its new one, and give it as --ca FILE (tls.ca), unless this host's clock is wrong"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "who runs that server has to give it a new certificate, unless this host's clock is wrong"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "it speaks no TLS: write " + by("http", at)
	case at.Scheme == "http" && strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // an alert of TLS
		return speaksTLS(at)
	}
	return ""
}

// unknown is the remedy for a certificate of an authority that nobody here knows.
func (t *Trust) unknown(c *x509.Certificate) string {
	signer := ""
	if c != nil {
		signer = fmt.Sprintf(" %.80q", c.Issuer.String())
	}
	if t != nil && t.o.CA != "" {
		return fmt.Sprintf("neither %s nor this host has its authority%s: give the file that was made with that server's certificate as --ca (tls.ca)", t.o.CA, signer)
	}
	return fmt.Sprintf("give the certificate of its authority%s as --ca FILE (BLOBTAIL_CA, ca of a context, tls.ca; SSL_CERT_FILE=FILE for all programs)", signer)
}

// chain returns the certificates that a refused server sent behind its own.
func chain(err error) *x509.CertPool {
	pool := x509.NewCertPool()
	if sent, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		for _, one := range sent.UnverifiedCertificates[min(1, len(sent.UnverifiedCertificates)):] {
			pool.AddCert(one)
		}
	}
	return pool
}

// misnamed explains a certificate that does not have the name. behind are those that the server
// sent behind it.
func (t *Trust) misnamed(e x509.HostnameError, behind *x509.CertPool) string {
	text := Misnamed(e) + "; "
	all := names(e.Certificate)
	if len(all) == 0 {
		return text + "it needs one with that as a subjectAltName (deploy/tls.sh makes one)"
	}
	if t != nil && t.o.Name != "" {
		text += "give one of these names as --server-name (tls.server-name)"
	} else {
		text += "write one of these names in the URL (an ingester announces it by --advertise), or behind kubectl port-forward, a tunnel or an address say which one it has: --server-name " + strings.Replace(all[0], "*", "NAME", 1)
	}
	options := x509.VerifyOptions{Intermediates: behind}
	if t != nil {
		options.Roots = t.roots
	}
	var unknown x509.UnknownAuthorityError
	if _, err := e.Certificate.Verify(options); errors.As(err, &unknown) {
		text += "; then also " + t.unknown(e.Certificate)
	}
	return text
}

// Misnamed says which names a certificate has in place of one.
func Misnamed(e x509.HostnameError) string {
	all := names(e.Certificate)
	if len(all) == 0 {
		return fmt.Sprintf("its certificate has no name, so none for %s: a common name does not count", e.Host)
	}
	const most = 8
	listed := strings.Join(all[:min(most, len(all))], ", ")
	if len(all) > most {
		listed += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return fmt.Sprintf("its certificate is for %s, and not for %s", listed, e.Host)
}

// names are the names of a certificate: those of hosts first.
func names(c *x509.Certificate) []string {
	var all, wild []string
	for _, name := range c.DNSNames {
		name = fmt.Sprintf("%.100s", name) // the server chose it
		if strings.Contains(name, "*") {
			wild = append(wild, name)
		} else {
			all = append(all, name)
		}
	}
	all = append(all, wild...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// WantsTLS is the remedy if an answer over plain HTTP says that its server speaks TLS; else "".
// begin is the beginning of its body.
func WantsTLS(resp *http.Response, begin []byte, at *url.URL) string {
	if at.Scheme != "http" {
		return ""
	}
	if to, err := resp.Location(); err == nil && to.Scheme == "https" && to.Hostname() == at.Hostname() {
		return fmt.Sprintf("it sends to TLS: write https://%s", to.Host)
	}
	for _, said := range []string{"HTTP request to an HTTPS server", "HTTP request was sent to HTTPS port", "plain HTTP to an SSL-enabled server port"} {
		if resp.StatusCode == http.StatusBadRequest && strings.Contains(string(begin), said) {
			return speaksTLS(at)
		}
	}
	return ""
}

func speaksTLS(at *url.URL) string { return "it speaks TLS: write " + by("https", at) }

// by is a URL with another scheme.
func by(scheme string, at *url.URL) string {
	other := *at
	other.Scheme = scheme
	return other.String()
}
