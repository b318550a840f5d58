package integration_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// The first five minutes of a user: ingest starts in an empty directory and curl
// sends one line. Then logquery shows it at once, in the same directory and without a
// flag.
func TestFirstMinutes(t *testing.T) {
	t.Parallel()
	u := &firstUser{t: t, dir: t.TempDir(), env: append(testkit.Environ(), "TZ=UTC")}
	listen := u.addresses()
	var ingest testkit.Process
	if err := ingest.Start(shared.parent, u.command("ingest")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ingest.End(syscall.SIGKILL); err != nil || t.Failed() {
			t.Logf("log of the ingester, %v:\n%s", err, ingest.Log())
		}
	})
	testkit.Until(t, "it listens", func() bool {
		c, err := net.DialTimeout("tcp", listen, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})

	begun := time.Now()
	u.curl("http://"+listen+"/ingest/web", "hello, is this thing on?")
	sent := time.Now()
	for _, args := range [][]string{{"web"}, {"tail", "web"}, {"web", "-n", "1"}, {"web", "--since", "1m"}, {"tail", "web", "--live", "off"}} {
		if args[len(args)-1] == "off" { // from the table, which has the line soon
			testkit.Until(t, "the table has the record", func() bool {
				out, _, _ := u.logquery(args...)
				return out != ""
			})
		}
		out, errs, code := u.logquery(args...)
		if code != 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, `"msg":"hello, is this thing on?"`) {
			t.Errorf("logquery %s exits %d: %q, %s", strings.Join(args, " "), code, out, errs)
		}
		if args[0] == "web" && len(args) == 1 {
			t.Logf("shown %v after curl began, %v after it ended", time.Since(begun).Round(time.Millisecond), time.Since(sent).Round(time.Millisecond))
		}
	}
	if out, errs, code := u.logquery("web", "--count"); code != 0 || strings.TrimSpace(out) != "1" {
		t.Errorf("--count exits %d: %q, %s", code, out, errs)
	}
	// After the ingester has ended, logquery reads the line from its last blob.
	if err := ingest.End(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"web"}, {"tail", "web"}} {
		if out, errs, code := u.logquery(args...); code != 0 || strings.Count(out, "\n") != 1 {
			t.Errorf("logquery %s after the end exits %d: %q, %s", strings.Join(args, " "), code, out, errs)
		}
	}
}

// firstUser has a directory and nothing else.
type firstUser struct {
	t   *testing.T
	dir string
	env []string
}

// addresses returns the address that ingest listens on: the default, or if that is in
// use on this host, another one named in the environment.
func (u *firstUser) addresses() (listen string) {
	free := func(address string) bool {
		l, err := net.Listen("tcp", address)
		if err == nil {
			l.Close()
		}
		return err == nil
	}
	if free("127.0.0.1:8514") && free("127.0.0.1:8515") {
		return "127.0.0.1:8514"
	}
	u.t.Log("the default ports are taken on this host")
	listen = freeAddress(u.t)
	u.env = append(u.env, "BLOBTAIL_LISTEN="+listen, "BLOBTAIL_ADMIN="+freeAddress(u.t))
	return listen
}

func (u *firstUser) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(shared.bin, name), args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	return cmd
}

func (u *firstUser) logquery(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	var out bytes.Buffer
	stderr, code = ran(u.t, u.command("logquery", args...), &out)
	return out.String(), stderr, code
}

// curl sends a line as curl -d does, with curl itself if it is installed.
func (u *firstUser) curl(url, line string) {
	u.t.Helper()
	var answer []byte
	path, err := exec.LookPath("curl")
	if err == nil {
		answer, err = exec.Command(path, "-sS", "--noproxy", "*", "-d", line, url).CombinedOutput()
	} else {
		var resp *http.Response
		if resp, err = http.Post(url, "application/x-www-form-urlencoded", strings.NewReader(line)); err == nil {
			answer, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
	}
	if err != nil || !strings.Contains(string(answer), `"accepted":1`) {
		u.t.Fatalf("curl: %s, %v", answer, err)
	}
}
