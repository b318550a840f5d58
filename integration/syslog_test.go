package integration_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// syslogAt is the address at which an ingester accepts syslog.
func syslogAt(t testing.TB, p *ingester) (host, port string) {
	t.Helper()
	for line := range strings.Lines(p.Log()) {
		var l struct{ Message, Listen string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Message == "syslog is accepted" {
			host, port, err := net.SplitHostPort(l.Listen)
			if err != nil {
				t.Fatal(err)
			}
			return host, port
		}
	}
	t.Fatal("the ingester accepts no syslog")
	return "", ""
}

// takes waits until the ingester has taken so many records. To count them by logquery over and
// over would take much time from rsyslog.
func (p *ingester) takes(t testing.TB, n int) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("%d records are taken", n), func() bool { return p.metric("blobtail_buffer_records_total") >= float64(n) })
}

// program finds a program, or skips the test.
func program(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		missing(t, "there is no "+name+"; install the package "+pkg)
	}
	return path
}

// Lines that logger of util-linux sends in each of its forms are stored as they were sent.
func TestSyslogLogger(t *testing.T) {
	t.Parallel()
	logger := program(t, "logger", "bsdutils")
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--syslog", "127.0.0.1:0")
	host, port := syslogAt(t, p)
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("message %d of logger, with \"quotes\" and \t tabs", i))
	}
	sent := 0
	for service, form := range map[string][]string{
		"lines-5424":   nil,
		"lines-3164":   {"--rfc3164"},
		"counted-5424": {"--octet-count"},
		"counted-3164": {"--octet-count", "--rfc3164"},
	} {
		cmd := exec.Command(logger, append([]string{"-n", host, "-P", port, "-T", "-t", service, "-p", "local3.err"}, form...)...)
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", cmd.Args, err, out)
		}
		sent += len(lines)
		p.takes(t, sent)
		testkit.Until(t, "all lines of "+service+" are stored", func() bool { return count(t, at, service) >= len(lines) })
		if got := string(query(t, at, service, "-o", "raw")); got != strings.Join(lines, "\n")+"\n" {
			t.Errorf("%s: stored %d bytes: %.200q", service, len(got), got)
		}
		if n := count(t, at, service, "--level", "error", "--where", `facility == "local3"`); n != len(lines) {
			t.Errorf("%s: %d errors of local3", service, n)
		}
	}
	if code, _ := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := count(t, at, "*"); n != 4*len(lines) {
		t.Errorf("%d records after the end", n)
	}
}

// forwarder starts rsyslogd. It follows a file and sends the lines to an ingester.
// Settings are lines for all of it, and options are those of the action.
func forwarder(t testing.TB, file, service, host, port, options string, settings ...string) {
	t.Helper()
	daemon := program(t, "rsyslogd", "rsyslog")
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsyslog.conf")
	text := fmt.Sprintf(`global(workDirectory=%q)
module(load="imfile")
%sinput(type="imfile" file=%q tag="%s:" reopenOnTruncate="on")
action(type="omfwd" target=%q port=%q protocol="tcp" action.resumeRetryCount="-1" action.resumeInterval="1" queue.type="LinkedList" %s)
`, dir, strings.Join(settings, ""), file, service, host, port, options)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "-n", "-f", conf, "-i", filepath.Join(dir, "pid"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := time.AfterFunc(testkit.Patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		ended.Stop()
		if t.Failed() {
			t.Logf("rsyslogd: %s", out.Bytes())
		}
	})
}

// numbered makes lines to be sent.
func numbered(from, n int) (text string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("line %06d of a file that rsyslog follows", from+i))
	}
	return strings.Join(lines, "\n") + "\n", lines
}

// Lines that rsyslog forwards by omfwd, in both framings and formats, are stored as they
// were sent.
func TestSyslogRsyslog(t *testing.T) {
	t.Parallel()
	program(t, "rsyslogd", "rsyslog")
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--syslog", "127.0.0.1:0")
	host, port := syslogAt(t, p)
	text, lines := numbered(0, 20_000)
	dir := t.TempDir()
	for service, options := range map[string]string{
		"lines-3164":   `template="RSYSLOG_TraditionalForwardFormat"`,
		"lines-iso":    `template="RSYSLOG_ForwardFormat"`,
		"counted-5424": `template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"`,
		"nul-5424":     `template="RSYSLOG_SyslogProtocol23Format" TCP_FrameDelimiter="0"`,
	} {
		file := filepath.Join(dir, service+".log")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		forwarder(t, file, service, host, port, options)
	}
	p.takes(t, 4*len(lines))
	for _, service := range []string{"lines-3164", "lines-iso", "counted-5424", "nul-5424"} {
		testkit.Until(t, "all lines of "+service+" are stored", func() bool { return count(t, at, service) >= len(lines) })
		got := strings.Split(strings.TrimSpace(string(query(t, at, service, "-o", "raw"))), "\n")
		if !slices.Equal(got, lines) {
			t.Errorf("%s: %d lines are stored, %d were sent", service, len(got), len(lines))
		}
	}
}

// The ingester is restarted in order while rsyslog sends. rsyslog sees that the connection
// is closed, and goes on with the next one. Syslog promises no more than this: no line comes
// twice, and those that were on the way may be missing.
func TestSyslogRestart(t *testing.T) {
	t.Parallel()
	program(t, "rsyslogd", "rsyslog")
	at, _ := dirStore(t)
	wal := t.TempDir()
	address := freeAddress(t)
	p := start(t, at, wal, "--syslog", address)
	host, port := syslogAt(t, p)
	file := filepath.Join(t.TempDir(), "app.log")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	forwarder(t, file, "app", host, port, `template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"`)
	const rounds, each = 200, 50
	written := make(chan error, 1)
	go func() {
		for i := range rounds {
			text, _ := numbered(i*each, each)
			if _, err := f.WriteString(text); err != nil {
				written <- err
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		written <- nil
	}()
	p.takes(t, 1)
	if code, _ := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p = start(t, at, wal, "--syslog", address)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	_, lines := numbered(0, rounds*each)
	last, before := lines[len(lines)-1], -1.0
	testkit.Until(t, "the last line is stored", func() bool {
		n := p.metric("blobtail_buffer_records_total")
		more := n > before
		before = n
		return more && count(t, at, "app", "-F", last) == 1
	})
	got := strings.Split(strings.TrimSpace(string(query(t, at, "app", "-o", "raw"))), "\n")
	once := slices.Compact(slices.Sorted(slices.Values(got)))
	if len(once) != len(got) {
		t.Errorf("%d lines are stored twice", len(got)-len(once))
	}
	t.Logf("%d of %d lines are stored after a restart", len(once), len(lines))
	// They were on the way when the connection was closed: the later a busy machine wakes rsyslog,
	// the more.
	if missing := len(lines) - len(once); missing > 10*each {
		t.Errorf("%d lines are missing; the connection was closed in order", missing)
	}
}

// While the log is full, rsyslog waits; then all lines are stored.
func TestSyslogFullLog(t *testing.T) {
	t.Parallel()
	program(t, "rsyslogd", "rsyslog")
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--syslog", "127.0.0.1:0",
		config(t, "flush: {size: 256KiB, age: 1s, max-age: 2s}\nlog: {segment: 1MiB, soft: 1MiB, max: 1MiB}\n"))
	host, port := syslogAt(t, p)
	text, lines := numbered(0, 40_000)
	file := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	forwarder(t, file, "app", host, port, `template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"`)
	p.takes(t, len(lines))
	testkit.Until(t, "all lines are stored", func() bool { return count(t, at, "app") >= len(lines) })
	if n := p.metric("blobtail_syslog_full_total"); n == 0 {
		t.Error("the log was never full")
	}
	got := strings.Split(strings.TrimSpace(string(query(t, at, "app", "-o", "raw"))), "\n")
	if !slices.Equal(got, lines) {
		t.Errorf("%d lines are stored, %d were sent", len(got), len(lines))
	}
}

// rsyslog sends over TLS, with a certificate that the ingester requires. Its other driver,
// gtls, loses one message in some ten thousand, with openssl s_server at the other end too.
func TestSyslogTLS(t *testing.T) {
	t.Parallel()
	program(t, "rsyslogd", "rsyslog")
	if found, _ := filepath.Glob("/usr/lib/*/rsyslog/lmnsd_ossl.so"); len(found) == 0 {
		missing(t, "rsyslog has no TLS; install the package rsyslog-openssl")
	}
	at, _ := dirStore(t)
	files := certificates(t)
	p := start(t, at, t.TempDir(), config(t, fmt.Sprintf("syslog: {listen: '127.0.0.1:0', cert: %q, key: %q, client-ca: %q}\n",
		files["server.pem"], files["server.key"], files["ca.pem"])))
	host, port := syslogAt(t, p)
	text, lines := numbered(0, 5000)
	file := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	forwarder(t, file, "app", host, port, `StreamDriver="ossl" StreamDriverMode="1" StreamDriverAuthMode="x509/certvalid"`+
		` template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"`,
		fmt.Sprintf("global(defaultNetstreamDriverCAFile=%q defaultNetstreamDriverCertFile=%q defaultNetstreamDriverKeyFile=%q)\n",
			files["ca.pem"], files["client.pem"], files["client.key"]))
	p.takes(t, len(lines))
	testkit.Until(t, "all lines are stored", func() bool { return count(t, at, "app") >= len(lines) })
	if got := strings.Split(strings.TrimSpace(string(query(t, at, "app", "-o", "raw"))), "\n"); !slices.Equal(got, lines) {
		t.Errorf("%d lines are stored, %d were sent", len(got), len(lines))
	}
}

// certificates makes an authority, and certificates of it for a server on loopback and for a
// client. The paths are by name.
func certificates(t testing.TB) map[string]string {
	t.Helper()
	dir, paths := t.TempDir(), map[string]string{}
	write := func(name, kind string, der []byte) {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		form := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if ca == nil {
			form.IsCA, form.KeyUsage, form.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
			ca, caKey = form, key
		}
		der, err := x509.CreateCertificate(rand.Reader, form, ca, &key.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".pem", "CERTIFICATE", der)
		write(name+".key", "EC PRIVATE KEY", private)
	}
	return paths
}
