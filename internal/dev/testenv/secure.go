package testenv

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The identity in every token of [Token].
const (
	Tenant   = "00000000-0000-0000-0000-00000000007e"
	ObjectID = "00000000-0000-0000-0000-0000000000b1"
)

// Secure is [Env.Azurite] with an emulator that serves HTTPS, and accepts each token of
// [Token] as that of an identity that may do everything. Requests to it pass no queue.
func (e *Env) Secure(t testing.TB) *Azurite {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.secure == nil && e.err == nil {
		e.secure, e.stopSecure, e.err = startSecure()
	}
	var missing *missingError
	switch {
	case errors.As(e.err, &missing) && os.Getenv("CI") == "":
		t.Skip(e.err)
	case e.err != nil:
		t.Fatal(e.err)
	}
	e.secured++
	return account(accountName(e.secured%accounts), e.secure)
}

// startSecure starts an emulator with a certificate of its own.
func startSecure() (*ports, func(), error) {
	dir, err := os.MkdirTemp("", "azurite-tls-")
	if err != nil {
		return nil, nil, err
	}
	pair := &keyPair{certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	if err := pair.make(); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, stop, err := startAzurite(pair)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return p, func() { stop(); os.RemoveAll(dir) }, nil
}

// Certify returns a certificate for 127.0.0.1 and localhost, and the file by which a process
// trusts it (SSL_CERT_FILE).
func Certify(t testing.TB) (c tls.Certificate, file string) {
	t.Helper()
	dir := t.TempDir()
	pair := &keyPair{certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	err := pair.make()
	if err == nil {
		c, err = tls.LoadX509KeyPair(pair.certificate, pair.key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, pair.certificate
}

// keyPair are the files of a certificate that signs itself.
type keyPair struct{ certificate, key string }

func (k *keyPair) make() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "blobtail tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost", "*.blob.localhost", "*.table.localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(k.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(k.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// Transport trusts the certificate of the emulator. It sends each request to a name such as
// ACCOUNT.blob.localhost to this host.
func (a *Azurite) Transport(t testing.TB) *http.Transport {
	t.Helper()
	text, err := os.ReadFile(a.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	dialer := &net.Dialer{}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// Token returns an access token of the form that Entra ID gives for Azure Storage, valid from
// a minute before now on, for a time. Its signature is none.
func Token(now time.Time, valid time.Duration) string {
	part := func(v map[string]any) string {
		text, _ := json.Marshal(v) // a map of texts and numbers
		return base64.RawURLEncoding.EncodeToString(text)
	}
	issued := now.Add(-time.Minute).Unix()
	return part(map[string]any{"alg": "none", "typ": "JWT"}) + "." + part(map[string]any{
		"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/" + Tenant + "/",
		"iat": issued, "nbf": issued, "exp": now.Add(valid).Unix(), "oid": ObjectID, "tid": Tenant,
	}) + "." + base64.RawURLEncoding.EncodeToString([]byte("unsigned"))
}
