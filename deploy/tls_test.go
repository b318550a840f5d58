package deploy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// makeTLS runs tls.sh.
func makeTLS(t *testing.T, folder string, names ...string) {
	t.Helper()
	need(t, "bash", "openssl")
	if out, err := exec.Command("bash", append([]string{"tls.sh", folder}, names...)...).CombinedOutput(); err != nil {
		t.Fatalf("tls.sh: %v\n%s", err, out)
	}
}

// need skips the test where a program is missing, and fails it in CI.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
}

// TestTLS ensures that the certificate of tls.sh is good for its names, that a second
// one is of the same authority, and that the keys are for their owner alone.
func TestTLS(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "with a space")
	makeTLS(t, folder, "localhost", "127.0.0.1", "::1", "*.blobtail-peers.logs.svc")
	ca := []byte(read(t, filepath.Join(folder, "ca.crt")))
	first := read(t, filepath.Join(folder, "tls.crt"))
	makeTLS(t, folder, "localhost")
	if again := []byte(read(t, filepath.Join(folder, "ca.crt"))); !bytes.Equal(again, ca) {
		t.Error("the second call made another authority")
	}
	if read(t, filepath.Join(folder, "tls.crt")) == first {
		t.Error("the second call made no certificate")
	}
	makeTLS(t, folder, "localhost", "127.0.0.1", "::1", "*.blobtail-peers.logs.svc")
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("ca.crt has no certificate")
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "blobtail-ingest-3.blobtail-peers.logs.svc"} {
		for in, ok := range map[time.Duration]bool{time.Minute: true, 390 * 24 * time.Hour: true, 400 * 24 * time.Hour: false} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now().Add(in)})
			if (err == nil) != ok {
				t.Errorf("%s in %s: %v", name, in, err)
			}
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots}); err == nil {
		t.Error("it is good for names that were not given")
	}
	for name, want := range map[string]os.FileMode{".": 0o700, "ca.key": 0o600} {
		if f, err := os.Stat(filepath.Join(folder, name)); err != nil || f.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, f.Mode(), err)
		}
	}
}
