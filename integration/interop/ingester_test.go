package interop_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// An ingester is an ingest process that can be started again on its addresses, store and
// log.
type ingester struct {
	testkit.Process
	t      testing.TB
	dir    string
	listen string
	syslog string
	admin  string
	config string // lines of its configuration file
}

// newIngester makes an ingester with an empty store, and starts it.
func newIngester(t testing.TB, config func(*ingester) string) *ingester {
	t.Helper()
	ports := freePorts(t, 3)
	i := &ingester{t: t, dir: t.TempDir(), listen: ports[0], syslog: ports[1], admin: ports[2]}
	i.config = config(i)
	i.start()
	t.Cleanup(func() {
		i.Signal(syscall.SIGKILL)
		<-i.Exited
		if text := i.Log(); t.Failed() || strings.Contains(text, "panic:") {
			t.Errorf("log of the ingester:\n%s", text)
		}
	})
	return i
}

// freePorts returns free addresses of loopback.
func freePorts(t testing.TB, n int) (addrs []string) {
	t.Helper()
	ports, err := testenv.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		addrs = append(addrs, "127.0.0.1:"+port)
	}
	return addrs
}

func (i *ingester) store() string { return "dir:" + filepath.Join(i.dir, "store") }

// start starts the process and waits until it is ready.
func (i *ingester) start() {
	i.t.Helper()
	config := filepath.Join(i.dir, "blobtail.yaml")
	if err := os.WriteFile(config, []byte(i.config), 0o600); err != nil {
		i.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), "--config", config, "--store", i.store(), "--wal", filepath.Join(i.dir, "log"),
		"--listen", i.listen, "--admin", i.admin, "--lane", "0")
	cmd.Env, cmd.Dir = testkit.Environ(), i.dir
	err := i.Start(shared.parent, cmd)
	if err == nil {
		err = i.Ready("http://" + i.admin + "/readyz")
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

// stop ends the process by a signal and waits for its end.
func (i *ingester) stop(s syscall.Signal) {
	i.t.Helper()
	if err := i.End(s); err != nil {
		i.t.Fatal(err)
	}
}

// flush puts all accepted records into blobs.
func (i *ingester) flush() {
	i.t.Helper()
	testkit.Until(i.t, "all is flushed", func() bool {
		resp, err := http.Post("http://"+i.admin+"/flush?timeout=20s", "", nil)
		if err != nil {
			i.t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	})
}

// read returns the stored lines of all services that a glob matches.
func (i *ingester) read(glob string) []byte {
	i.t.Helper()
	cmd := exec.Command(filepath.Join(shared.bin, "logquery"), "--store", i.store(), "-u", glob, "-o", "json", "--from", "2026-01-01",
		"--if-any") // the first record may still be on its way
	cmd.Env = testkit.Environ()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := shared.start(cmd); err != nil {
		i.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing found
		i.t.Fatalf("logquery: %v: %s", err, errs.Bytes())
	}
	return out.Bytes()
}

// fill sends records of another service until the ingester refuses them.
func (i *ingester) fill(stop <-chan struct{}) (refused bool) {
	for {
		select {
		case <-stop:
			return false
		default:
		}
		// A new time makes a new request.
		body := strings.Repeat(`{"time":"`+time.Now().UTC().Format(time.RFC3339Nano)+`","msg":"`+strings.Repeat("fills the log ", 5000)+"\"}\n", 16)
		resp, err := http.Post("http://"+i.listen+"/ingest/"+filler, "application/x-ndjson", strings.NewReader(body))
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			return true
		}
	}
}
