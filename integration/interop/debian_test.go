package interop_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// debian returns the path of a file in the unpacked packages.
func debian(path ...string) string {
	return filepath.Join(append([]string{shared.tools, "debian"}, path...)...)
}

// libraries is the variable by which the unpacked programs find their libraries.
func libraries() string {
	arch, _ := filepath.Glob(debian("usr", "lib", "*-linux-gnu"))
	more, _ := filepath.Glob(debian("lib", "*-linux-gnu"))
	dirs := append(arch, more...)
	for _, d := range arch {
		dirs = append(dirs, filepath.Join(d, "systemd"))
	}
	return "LD_LIBRARY_PATH=" + strings.Join(append(dirs, debian("usr", "lib", "syslog-ng")), ":")
}

// versionOf returns a function that asks a program for its version.
func versionOf(path ...string) func(testing.TB) string {
	return func(t testing.TB) string {
		t.Helper()
		name := path[0]
		if len(path) > 1 {
			name = debian(path...)
		}
		found, err := exec.LookPath(name)
		if err != nil {
			missing(t, name+" is not installed: run make interop")
		}
		flag := "--version"
		if filepath.Base(name) == "rsyslogd" {
			flag = "-v"
		}
		cmd := exec.Command(found, flag)
		cmd.Env = append(testkit.Environ(), libraries())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %.500s", name, err, out)
		}
		return string(regexp.MustCompile(`\d+(\.\d+)+|\b\d{3}\b`).Find(out))
	}
}

// render writes a configuration of configs/ with the addresses of the run, and returns its
// path.
func (r *run) render(name, input string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.root, "integration", "interop", "configs", name))
	if err != nil {
		r.t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(r.p.addr)
	_, inputPort, _ := net.SplitHostPort(input)
	path := filepath.Join(r.dir, name)
	out := strings.NewReplacer("@HOST@", host, "@PORT@", port, "@INPUT@", inputPort, "@DIR@", r.dir).Replace(string(text))
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// daemon runs a program while its records are fed to it, and until all of them are
// delivered, or none has been for a while.
func (r *run) daemon(feed func(), name string, args ...string) {
	r.t.Helper()
	r.daemonUntil(func(ended <-chan struct{}) { feed(); r.quiet(ended) }, name, args...)
}

// daemonUntil runs a program as long as a function, which is told when it has ended.
func (r *run) daemonUntil(during func(ended <-chan struct{}), name string, args ...string) {
	r.t.Helper()
	cmd := r.command(name, args...)
	cmd.Env = append(cmd.Env, libraries())
	if err := shared.start(cmd); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // a signal ends it
	}()
	during(ended)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// quiet waits until all records are delivered, or none has been for 30 s, or the program
// has ended.
func (r *run) quiet(ended <-chan struct{}) {
	before, since := -1, time.Now()
	for time.Since(since) < 30*time.Second {
		select {
		case <-ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
		n := len(r.p.believed())
		if n == len(r.records) {
			return
		}
		if n != before {
			before, since = n, time.Now()
		}
	}
}

// number returns the number of a level in syslog.
func priority(level string) int {
	return map[string]int{"debug": 7, "info": 6, "warn": 4, "error": 3}[level]
}

// feed sends the records to a syslog daemon, as RFC 5424 with counted octets.
func (r *run) feed(addr string) {
	r.t.Helper()
	c, err := net.Dial("tcp", addr)
	for begun := time.Now(); err != nil; c, err = net.Dial("tcp", addr) {
		if time.Since(begun) > 30*time.Second {
			r.t.Fatalf("the daemon does not listen: %v\n%.2000s", err, r.output.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	defer c.Close()
	for i, s := range r.records {
		at := time.Unix(0, s.at).UTC().Format("2006-01-02T15:04:05.000000Z")
		text := fmt.Sprintf("<%d>1 %s web-1 %s 42 - - %s", 8+priority(s.Level), at, service, s.Msg)
		if _, err := fmt.Fprintf(c, "%d %s", len(text), text); err != nil {
			r.t.Fatal(err)
		}
		if i%20 == 19 {
			time.Sleep(r.pause())
		}
	}
}

// rsyslog runs rsyslogd by a configuration.
func rsyslog(config string) func(*run) map[string]bool {
	return func(r *run) map[string]bool {
		input := freePorts(r.t, 1)[0]
		name, args := r.rsyslogd(r.render(config, input))
		r.daemon(func() { r.feed(input) }, name, args...)
		return nil
	}
}

// rsyslogd is the command that runs rsyslogd by a file.
func (r *run) rsyslogd(config string) (name string, args []string) {
	modules, _ := filepath.Glob(debian("usr", "lib", "*-linux-gnu", "rsyslog"))
	return debian("usr", "sbin", "rsyslogd"), []string{"-n", "-f", config, "-i", filepath.Join(r.dir, "pid"), "-M", strings.Join(modules, ":")}
}

// syslogNG runs syslog-ng by a configuration.
func syslogNG(config string) func(*run) map[string]bool {
	return func(r *run) map[string]bool {
		input := freePorts(r.t, 1)[0]
		in := func(name string) string { return filepath.Join(r.dir, name) }
		r.daemon(func() { r.feed(input) }, debian("usr", "sbin", "syslog-ng"), "--foreground", "--no-caps", "--cfgfile", r.render(config, input),
			"--module-path", debian("usr", "lib", "syslog-ng", "3.38"), "--persist-file", in("persist"), "--pidfile", in("pid"), "--control", in("ctl"))
		return nil
	}
}

// logger runs the logger of util-linux.
func logger(r *run) map[string]bool {
	host, port, _ := net.SplitHostPort(r.p.addr)
	cmd := r.command("logger", "--server", host, "--port", port, "--tcp", "--octet-count", "--rfc5424=notq", "--tag", service, "--prio-prefix", "--size", "200000")
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer in.Close()
		for i, s := range r.records {
			if _, err := fmt.Fprintf(in, "<%d>%s\n", 8+priority(s.Level), s.Msg); err != nil {
				return // logger has given up
			}
			if i%20 == 19 {
				time.Sleep(r.pause())
			}
		}
	}()
	if err := r.waitFor(cmd, 2*time.Minute); err != nil {
		fmt.Fprintln(&r.output, "logger:", err)
	}
	return nil
}

// journal makes a journal of the records, and uploads it. systemd starts the uploader again
// when it fails; so does this.
func journal(r *run) map[string]bool {
	var export bytes.Buffer
	for _, s := range r.records {
		fmt.Fprintf(&export, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=0123456789abcdef0123456789abcdef\n", s.at/1000, 1000*(s.N+1))
		fmt.Fprintf(&export, "PRIORITY=%d\n_HOSTNAME=web-1\nSYSLOG_IDENTIFIER=%s\nMARK=%s\nN=%d\n", priority(s.Level), service, s.Mark, s.N)
		if !strings.Contains(s.Msg, "\n") {
			fmt.Fprintf(&export, "MESSAGE=%s\n\n", s.Msg)
			continue
		}
		export.WriteString("MESSAGE\n")
		length := uint64(len(s.Msg))
		for range 8 {
			export.WriteByte(byte(length))
			length >>= 8
		}
		fmt.Fprintf(&export, "%s\n\n", s.Msg)
	}
	in, out := filepath.Join(r.dir, "in.export"), filepath.Join(r.dir, "remote.journal")
	if err := os.WriteFile(in, export.Bytes(), 0o600); err != nil {
		r.t.Fatal(err)
	}
	remote := r.command(debian("lib", "systemd", "systemd-journal-remote"), "-o", out, in)
	remote.Env = append(remote.Env, libraries())
	if err := r.waitFor(remote, time.Minute); err != nil {
		r.t.Fatalf("systemd-journal-remote: %v: %s", err, r.output.String())
	}
	for range 20 {
		upload := r.command(debian("lib", "systemd", "systemd-journal-upload"), "--url="+r.url(), "--file="+out, "--follow=no", "--save-state="+filepath.Join(r.dir, "state"))
		upload.Env = append(upload.Env, libraries())
		if err := r.waitFor(upload, time.Minute); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	return nil
}

// us wants the message as it is, and the time in µs; the number is in the message.
func us(s *sent) want {
	return want{msg: s.Msg, level: s.Level, from: s.at / 1000 * 1000, to: s.at / 1000 * 1000}
}

// debianClients are the shippers of Debian.
func debianClients() []*client {
	const resent = "the client does not know what arrived before the connection broke"
	const unsure = "syslog has no answers"
	noAnswers := map[fault]string{lost: unsure}
	return []*client{
		{name: "rsyslog omelasticsearch", version: versionOf("usr", "sbin", "rsyslogd"), wire: "`_bulk`", ship: rsyslog("rsyslog-elasticsearch.conf"), want: us, textOnly: true,
			twice: "the client sends the records of a failed batch again one by one"},
		{name: "rsyslog imfile", version: versionOf("usr", "sbin", "rsyslogd"), wire: "`_bulk`", ship: imfile, want: exact,
			twice: "the client sends the records of a failed batch again one by one"},
		{name: "rsyslog omfwd", version: versionOf("usr", "sbin", "rsyslogd"), wire: "syslog RFC 5424, TCP", ship: rsyslog("rsyslog-omfwd.conf"), want: us, textOnly: true, raw: true,
			twice: resent, lossy: unsure, without: noAnswers},
		{name: "syslog-ng http(), Loki", version: versionOf("usr", "sbin", "syslog-ng"), wire: "Loki JSON", ship: syslogNG("syslog-ng-loki.conf"), want: us, textOnly: true},
		{name: "syslog-ng http(), bulk", version: versionOf("usr", "sbin", "syslog-ng"), wire: "`_bulk`", ship: syslogNG("syslog-ng-bulk.conf"), want: us, textOnly: true},
		{name: "syslog-ng http(), NDJSON", version: versionOf("usr", "sbin", "syslog-ng"), wire: "`/ingest`, NDJSON", ship: syslogNG("syslog-ng-ingest.conf"), want: us, textOnly: true},
		{name: "syslog-ng syslog()", version: versionOf("usr", "sbin", "syslog-ng"), wire: "syslog RFC 5424, TCP", ship: syslogNG("syslog-ng-syslog.conf"), want: us, textOnly: true, raw: true,
			twice: resent, lossy: unsure, without: noAnswers},
		{name: "systemd-journal-upload", version: versionOf("lib", "systemd", "systemd-journal-upload"), wire: "journal export", ship: journal, stream: true,
			want: func(s *sent) want { w := us(s); w.n = true; return w }},
		{name: "logger", version: versionOf("logger"), wire: "syslog RFC 5424, TCP", ship: logger, textOnly: true, oneLine: true, raw: true, lossy: "the client ends when the connection breaks", twice: resent, without: noAnswers,
			// It stamps records itself.
			want: func(s *sent) want { w := us(s); w.from, w.to = 0, time.Now().UnixNano(); return w }},
	}
}
