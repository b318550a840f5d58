package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// grow writes the records to a file as JSON lines. The file is rotated twice: renamed, and then
// copied and truncated, when the client has read all of it.
func (r *run) grow(name string) {
	r.t.Helper()
	file := r.open(name)
	for i, s := range r.records {
		switch i {
		case len(r.records) / 3:
			testkit.Until(r.t, "the client reads the file", func() bool { return r.p.sawAtLeast(1) })
			if err := os.Rename(name, name+".1"); err != nil {
				r.t.Fatal(err)
			}
			file.Close()
			file = r.open(name)
		case len(r.records) / 3 * 2:
			testkit.Until(r.t, "the client has read the file", func() bool { return r.p.sawAtLeast(i) })
			whole, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name+".2", whole, 0o600)
			}
			if err == nil {
				err = os.Truncate(name, 0)
			}
			if err != nil {
				r.t.Fatal(err)
			}
		}
		if _, err := fmt.Fprintf(file, `{"time":%s,"level":"%s","msg":%s,"mark":"%s","n":%d}`+"\n", s.Nano, s.Level, quoted(s.Msg), s.Mark, s.N); err != nil {
			r.t.Fatal(err)
		}
		if i%20 == 19 {
			time.Sleep(r.pause())
		}
	}
	if err := file.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// open opens a file of a program, which appends to it.
func (r *run) open(name string) *os.File {
	r.t.Helper()
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	return file
}

// imfile runs rsyslogd beside a file that grows.
func imfile(r *run) map[string]bool {
	logs := filepath.Join(r.dir, "log")
	if err := os.Mkdir(logs, 0o700); err != nil {
		r.t.Fatal(err)
	}
	name, args := r.rsyslogd(r.render("rsyslog-imfile.conf", "127.0.0.1:0"))
	r.daemon(func() { r.grow(filepath.Join(logs, service+".log")) }, name, args...)
	return nil
}

// snippet is the block of docs/send/rsyslog.md that begins with a text.
func snippet(t *testing.T, begin string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(shared.root, "docs", "send", "rsyslog.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```conf\n"+begin)
	block, _, end := strings.Cut(rest, "\n```")
	if !ok || !end {
		t.Fatalf("the page has no block that begins with %s", begin)
	}
	return begin + block + "\n"
}

// TestFilesOfThePage runs rsyslog by the snippet of docs/send/rsyslog.md, on a file that is there
// before it: with stack traces, JSON, a rotation, and restarts of rsyslog and of the ingester.
func TestFilesOfThePage(t *testing.T) {
	if shared.mode != "quick" && shared.mode != "all" {
		t.Skip("BLOBTAIL_INTEROP is not set: see make interop")
	}
	versionOf("usr", "sbin", "rsyslogd")(t) // or skip
	t.Parallel()
	r := &run{t: t, c: &client{}, fault: plain, dir: t.TempDir()}
	r.i = newIngester(t, r.config)
	r.p = newProxy(t, r.i.listen, true)
	host, port, _ := net.SplitHostPort(r.p.addr)
	logs := filepath.Join(r.dir, "shop")
	config := filepath.Join(r.dir, "rsyslog.conf")
	text := snippet(t, `global(workDirectory="/var/spool/rsyslog" maxMessageSize`)
	for old, now := range map[string]string{"/var/spool/rsyslog": r.dir, "/var/log/shop/": logs + "/", "logs.example.com": host, `"8514"`: `"` + port + `"`} {
		if !strings.Contains(text, old) {
			t.Errorf("the snippet has no %s", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.Mkdir(logs, 0o700)); err != nil {
		t.Fatal(err)
	}
	name, cart := filepath.Join(logs, "shop.log"), filepath.Join(logs, "cart.log")
	write := func(name, text string) {
		file := r.open(name)
		defer file.Close()
		if _, err := io.WriteString(file, text); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(n int) {
		testkit.Until(t, fmt.Sprint(n, " records"), func() bool {
			r.i.flush()
			return bytes.Count(r.i.read("*"), []byte("\n")) >= n
		})
	}
	write(name, "2026-11-10 15:04:05,1 INFO old\n2026-11-10 15:04:06,1 ERROR failed\njava.io.IOException: disk\n\tat a.B.c(B.java:7)\nCaused by: x\n\tat a.B.d(B.java:9)\n")
	write(cart, `{"time":"2026-11-10T15:04:07.1Z","level":"warn","msg":"json"}`+"\n")
	program, args := r.rsyslogd(config)
	r.daemonUntil(func(<-chan struct{}) {
		stored(3)
		if err := os.Rename(name, name+".1"); err != nil {
			t.Fatal(err)
		}
		write(name, "2026-11-10 15:04:08,1 INFO new file\n")
		stored(4)
		r.i.stop(syscall.SIGKILL)
		write(name, "2026-11-10 15:04:09,1 INFO the ingester is away\n")
		time.Sleep(time.Second)
		r.i.start()
		stored(5)
	}, program, args...)
	write(name, "2026-11-10 15:04:10,1 INFO rsyslog is away\n")
	r.daemonUntil(func(<-chan struct{}) { stored(6) }, program, args...)

	var got []string
	for line := range bytes.Lines(r.i.read("*")) {
		var m struct{ TS, Level, Service, Msg, File string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %q %s", m.TS[17:21], m.Level, m.Service, m.Msg, filepath.Base(m.File)))
	}
	slices.Sort(got)
	if want := []string{
		`05.1 info shop "2026-11-10 15:04:05,1 INFO old" shop.log`,
		`06.1 error shop "2026-11-10 15:04:06,1 ERROR failed\njava.io.IOException: disk\n\tat a.B.c(B.java:7)\nCaused by: x\n\tat a.B.d(B.java:9)" shop.log`,
		`07.1 warn cart "{\"time\":\"2026-11-10T15:04:07.1Z\",\"level\":\"warn\",\"msg\":\"json\"}" cart.log`,
		`08.1 info shop "2026-11-10 15:04:08,1 INFO new file" shop.log`,
		`09.1 info shop "2026-11-10 15:04:09,1 INFO the ingester is away" shop.log`,
		`10.1 info shop "2026-11-10 15:04:10,1 INFO rsyslog is away" shop.log`,
	}; !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSystemdCat has two programs print into a journal, which is uploaded: each line has the time
// at which it was printed, and the service is the name that systemd-cat gives.
func TestSystemdCat(t *testing.T) {
	if shared.mode != "quick" && shared.mode != "all" {
		t.Skip("BLOBTAIL_INTEROP is not set: see make interop")
	}
	const journald = "/lib/systemd/systemd-journald"
	upload := debian("lib", "systemd", "systemd-journal-upload")
	for _, name := range []string{journald, upload, "systemd-cat", "journalctl", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		t.Skip("no mount namespace can be made: ", err)
	}
	t.Parallel()
	r := &run{t: t, c: &client{}, fault: plain, dir: t.TempDir()}
	r.i = newIngester(t, r.config)
	script := filepath.Join(shared.root, "integration", "interop", "clients", "systemd-cat.sh")
	cmd := r.command("unshare", "-m", "--propagation", "private", "--kill-child", "-f", "bash", script, "http://"+r.i.listen, journald, "env", libraries(), upload)
	if err := r.waitFor(cmd, time.Minute); err != nil {
		t.Fatalf("%v\n%s", err, r.output.String())
	}
	r.i.flush()
	var got []string
	var times []time.Time
	for line := range bytes.Lines(r.i.read("*")) {
		var m struct {
			TS                  time.Time
			Level, Service, Msg string
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Service == "nightly" || m.Service == "job" {
			got = append(got, fmt.Sprintf("%s %s %s", m.Service, m.Level, m.Msg))
			times = append(times, m.TS)
		}
	}
	if want := []string{"nightly error ERROR first", "nightly info second", "job info out", "job info err"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q\n%s", got, want, r.output.String())
	}
	if apart := times[1].Sub(times[0]); apart < 500*time.Millisecond {
		t.Errorf("the lines are %s apart, and were printed a second apart", apart)
	}
}
