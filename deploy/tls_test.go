package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// makeTLS runs tls.sh by the shell of the host, and returns what it prints.
func makeTLS(t *testing.T, folder string, names ...string) string {
	t.Helper()
	need(t, "sh", "openssl")
	out, err := exec.Command("sh", append([]string{"tls.sh", folder}, names...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tls.sh: %v\n%s", err, out)
	}
	return string(out)
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

// TestTLS ensures that the certificate of tls.sh is good for its names and for this host, that a
// second one is of the same authority, that the names that it drops are printed, and that the
// folder is for its owner alone.
func TestTLS(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "with a space")
	said := makeTLS(t, folder, "logs.example.com", "10.0.0.4", "*.blobtail-peers.logs.svc", "fd00::7")
	ca, crt := filepath.Join(folder, "ingest", "ca.crt"), filepath.Join(folder, "ingest", "tls.crt")
	if !strings.Contains(said, crt+": for logs.example.com, ") || !strings.Contains(said, ", localhost, 127.0.0.1, ::1, until ") || !strings.Contains(said, ca+": its authority") || strings.Contains(said, "dropped") {
		t.Errorf("it prints\n%s", said)
	}
	authority, first := []byte(read(t, ca)), read(t, crt)
	if said := makeTLS(t, folder, "logs.example.com", "localhost"); !strings.Contains(said, "this call does not name them: 10.0.0.4, *.blobtail-peers.logs.svc, ") {
		t.Errorf("with fewer names it prints\n%s", said)
	}
	if again := []byte(read(t, ca)); !bytes.Equal(again, authority) {
		t.Error("the second call made another authority")
	}
	if read(t, crt) == first {
		t.Error("the second call made no certificate")
	}
	makeTLS(t, folder, "logs.example.com", "10.0.0.4", "*.blobtail-peers.logs.svc")
	if said := makeTLS(t, folder); !strings.Contains(said, "for logs.example.com, 10.0.0.4, *.blobtail-peers.logs.svc, localhost, 127.0.0.1, ::1, until") || strings.Contains(said, "dropped") {
		t.Errorf("without names it prints\n%s", said)
	}
	pair, err := tls.LoadX509KeyPair(crt, filepath.Join(folder, "ingest", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("ca.crt has no certificate")
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "10.0.0.4", "logs.example.com", "blobtail-ingest-3.blobtail-peers.logs.svc"} {
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
	for name, want := range map[string]os.FileMode{".": 0o700, "authority/ca.key": 0o600, "ingest": 0o755, "ingest/tls.key": 0o644} {
		if f, err := os.Stat(filepath.Join(folder, name)); err != nil || f.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, f.Mode(), err)
		}
	}
	left, err := filepath.Glob(filepath.Join(folder, "authority", "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("it leaves %v", left)
	}
}

// TestTLSMistakes ensures that tls.sh refuses what is no name, and makes nothing then.
func TestTLSMistakes(t *testing.T) {
	need(t, "sh", "openssl")
	for name, want := range map[string]string{
		"https://logs.example.com": "is no name", "logs.example.com:8514": "has a port", "": "is no name", "a,DNS:b": "is no name", "1.2.3.4.5": "is no address", "999.1.1.1": "is no address", "12.5": "is no address", "--help": "is no name", "1:2:x": "openssl failed",
	} {
		folder := filepath.Join(t.TempDir(), "new")
		out, err := exec.Command("sh", "tls.sh", folder, name).CombinedOutput()
		if _, none := os.Stat(filepath.Join(folder, "ingest", "tls.crt")); err == nil || none == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
	}
	for _, args := range [][]string{{}, {filepath.Join(t.TempDir(), "new")}} {
		if out, err := exec.Command("sh", append([]string{"tls.sh"}, args...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "deploy/tls.sh FOLDER NAME...") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// running is an ingester that the test runs.
type running struct {
	records, admin string // addresses
}

// start runs an ingester on free ports of this host, with more settings in env, and waits
// until it is ready. The test stops it.
func start(t *testing.T, bin string, env ...string) running {
	t.Helper()
	ports := routePorts(t)
	r := running{fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])}
	cmd := exec.Command(bin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(slices.Clone(env), "BLOBTAIL_LISTEN="+r.records, "BLOBTAIL_ADMIN="+r.admin,
		"BLOBTAIL_ADVERTISE=https://"+r.records, "BLOBTAIL_FLUSH_MAX_AGE=1h")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	testkit.Until(t, "the ingester is ready", func() bool { return curl(t, "http://"+r.admin+"/readyz") == "200" })
	return r
}

// curl returns the status that curl gets, "000" if it gets none.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "curl", append([]string{"-s", "-o", os.DevNull, "-w", "%{http_code}"}, args...)...).Output()
	return string(out)
}

// newToken makes a token in a file and returns it.
func newToken(t *testing.T, bin, file string, args ...string) string {
	t.Helper()
	made, err := exec.Command(bin, slices.Concat([]string{"token", "new"}, args, []string{"--file", file})...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(made))
}
