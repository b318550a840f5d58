package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	counts "blobtail/internal/count"
	"blobtail/internal/dev/testkit"
)

// place is a store and the environment for reaching it.
type place struct {
	store string
	env   []string
}

// dirStore returns a place in a fresh directory.
func dirStore(t testing.TB) (place, string) {
	root := filepath.Join(t.TempDir(), "store")
	return place{store: "dir:" + root}, root
}

// ingester is a running ingest process.
type ingester struct {
	testkit.Process
	t       testing.TB
	listen  string // base URLs, known once it is ready or has logged that it is not
	admin   string
	started time.Time
	startup time.Duration // from start to ready, once it is ready
	ready   chan struct{} // closed once it has logged that
	unready chan struct{} // closed when it has logged that it is not ready yet
}

// launch starts an ingester and does not wait for it. Its log is printed if the test
// fails. It is killed at the end of the test at the latest.
func launch(t testing.TB, at place, wal string, flags ...string) *ingester {
	t.Helper()
	return launchBy(t, nil, at, wal, flags...)
}

// launchBy starts an ingester by a command that replaces itself with the one that its
// arguments end in; nil: no such command.
func launchBy(t testing.TB, by []string, at place, wal string, flags ...string) *ingester {
	t.Helper()
	p := &ingester{t: t, ready: make(chan struct{}), unready: make(chan struct{}), started: time.Now()}
	p.Each = p.line
	args := slices.Concat(by, []string{filepath.Join(shared.bin, "ingest"),
		"--store", at.store, "--wal", wal, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--lane", "0"}, flags)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(testkit.Environ(), at.env...)
	cmd.Dir = t.TempDir()
	if err := p.Start(shared.parent, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		p.looked()
		if t.Failed() {
			t.Logf("log of ingester %d (%v):\n%s", cmd.Process.Pid, cmd.ProcessState, p.Log())
		}
	})
	return p
}

// looked fails the test if the log has a panic, a data race or a fatal error.
func (p *ingester) looked() {
	if err := p.Sound(); err != nil {
		p.t.Error(err)
	}
}

// forget drops the log of an ended process if it has no errors: of many processes,
// only the last logs are of interest, and those that explain a loss.
func (p *ingester) forget() {
	p.looked()
	if !p.t.Failed() && !strings.Contains(p.Log(), `"level":"error"`) {
		p.Forget()
	}
}

// start starts an ingester, and waits until it accepts records and readers can ask it.
func start(t testing.TB, at place, wal string, flags ...string) *ingester {
	t.Helper()
	p := startApart(t, at, wal, flags...)
	p.announced()
	return p
}

// startApart starts an ingester that cannot be announced now, or need not be, and waits until
// it accepts records. A log that held some makes it ready before it is announced.
func startApart(t testing.TB, at place, wal string, flags ...string) *ingester {
	t.Helper()
	p := launch(t, at, wal, flags...)
	if err := p.waitReady(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line finds the addresses of the process.
func (p *ingester) line(line []byte) {
	var l struct{ Message, Listen, Admin string }
	if json.Unmarshal(line, &l) != nil || p.startup > 0 || l.Message != "ready" && l.Message != "listening, not ready" {
		return
	}
	if p.listen == "" {
		p.listen, p.admin = "http://"+l.Listen, "http://"+l.Admin
	}
	if l.Message == "ready" {
		p.startup = time.Since(p.started)
		close(p.ready)
	} else {
		close(p.unready)
	}
}

// announced waits until the row of the ingester is that of this start. Before that readers ask
// it where its last start was, and their reads are incomplete.
func (p *ingester) announced() {
	p.t.Helper()
	testkit.Until(p.t, "the ingester is announced", func() bool {
		all, err := p.metrics()
		return err == nil && all[`blobtail_heartbeat_total{result="written"}`] > 0
	})
}

func (p *ingester) waitReady() error {
	select {
	case <-p.ready:
		return nil
	case <-p.Exited:
		return fmt.Errorf("the ingester ended before it was ready: %v", p.Cmd.ProcessState)
	case <-time.After(testkit.Patience):
		return fmt.Errorf("the ingester is not ready after %v", testkit.Patience)
	}
}

// allowed raises a limit for a slow or busy machine: by twenty starts, each as long
// as this easy one's.
func (p *ingester) allowed(limit time.Duration) time.Duration { return limit + 20*p.startup }

// late reports whether something took longer than a limit, which is raised as by allowed:
// for the machine at this easy start, or as it is now.
func (p *ingester) late(took, limit time.Duration) bool {
	p.t.Helper()
	if took <= p.allowed(limit) {
		return false
	}
	at, _ := dirStore(p.t)
	now := start(p.t, at, p.t.TempDir())
	now.kill()
	return took > now.allowed(limit)
}

// kill ends the process as a power failure would, and waits for the end.
func (p *ingester) kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}

// stop ends it with SIGTERM and returns its exit code and the time that took.
func (p *ingester) stop() (code int, took time.Duration) {
	p.t.Helper()
	begun := time.Now()
	if err := p.End(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.Cmd.ProcessState.ExitCode(), time.Since(begun)
}

// leave is stop for an ingester that must have said that it ends, for which it has 2 s. If
// a busy store takes longer, again starts it on its log, and it ends once more.
func (p *ingester) leave(again func() *ingester) (code int) {
	p.t.Helper()
	testkit.Until(p.t, "the others are told that it ends", func() bool {
		code, _ = p.stop()
		if !strings.Contains(p.Log(), "the others are not told that this ingester ends") {
			return true
		}
		p = again()
		return false
	})
	return code
}

// answer is the answer of /ingest.
type answer struct {
	Accepted, Rejected, Expired int
	Duplicate                   bool
	Errors                      []struct {
		Index  int
		Reason string
	}
	Error string
}

// post sends a body, with headers as name, value, name, value.
func (p *ingester) post(path string, body []byte, headers ...string) (int, answer, http.Header, error) {
	return post(http.DefaultClient, p.listen+path, body, headers...)
}

func post(c *http.Client, url string, body []byte, headers ...string) (int, answer, http.Header, error) {
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return 0, answer{}, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, answer{}, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, answer{}, nil, err
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return resp.StatusCode, a, resp.Header, fmt.Errorf("answer %.200q: %w", text, err)
	}
	return resp.StatusCode, a, resp.Header, nil
}

// mustPost sends a body that has to be accepted whole.
func (p *ingester) mustPost(path string, body []byte, headers ...string) answer {
	p.t.Helper()
	code, a, _, err := p.post(path, body, headers...)
	if err != nil || code != http.StatusOK || a.Rejected > 0 {
		p.t.Fatalf("POST %s: %d %+v, %v", path, code, a, err)
	}
	return a
}

// flushed is the answer of /flush.
type flushed struct {
	Flushed     bool
	BatchesLeft int `json:"batches_left"`
	RecordsLeft int `json:"records_left"`
	Error       string
}

func (p *ingester) flush(query string) (int, flushed, error) {
	resp, err := http.Post(p.admin+"/flush"+query, "", nil)
	if err != nil {
		return 0, flushed{}, err
	}
	defer resp.Body.Close()
	var f flushed
	text, err := io.ReadAll(resp.Body)
	if err == nil && json.Unmarshal(text, &f) != nil {
		err = errors.New(string(text))
	}
	return resp.StatusCode, f, err
}

// mustFlush puts all acknowledged records into blobs. It takes as long as each two minutes
// put some there.
func (p *ingester) mustFlush() {
	p.t.Helper()
	for left := math.MaxInt; ; {
		code, f, err := p.flush("?timeout=120s")
		switch {
		case err == nil && code == http.StatusOK && f.Flushed:
			return
		case err != nil || f.RecordsLeft >= left:
			p.t.Fatalf("flush: %d %+v, %v", code, f, err)
		}
		left = f.RecordsLeft
	}
}

// metric reads a plain counter or gauge.
func (p *ingester) metric(name string) float64 {
	p.t.Helper()
	all, err := p.metrics()
	if err != nil {
		p.t.Fatal(err)
	}
	v, ok := all[name]
	if !ok {
		p.t.Fatalf("no metric %s", name)
	}
	return v
}

// metrics returns all plain counters and gauges.
func (p *ingester) metrics() (map[string]float64, error) {
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return counts.Read(text), nil
}

// logquery runs a query and returns its output and its exit code.
func logquery(t testing.TB, at place, args ...string) (stdout []byte, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	stderr, code = logqueryTo(t, &out, at, args...)
	return out.Bytes(), stderr, code
}

// logqueryTo runs a query that writes to out.
func logqueryTo(t testing.TB, out io.Writer, at place, args ...string) (stderr string, code int) {
	t.Helper()
	limit := testkit.Patience
	if each, long := torture(t); long {
		limit += each
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.bin, "logquery"), append([]string{"--store", at.store, "-u"}, args...)...)
	cmd.Env = append(testkit.Environ(), at.env...)
	return ran(t, cmd, out)
}

// ran runs a command to its end, with its stdout in out.
func ran(t testing.TB, cmd *exec.Cmd, out io.Writer) (stderr string, code int) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	if _, exited := errors.AsType[*exec.ExitError](cmd.Wait()); !exited && !cmd.ProcessState.Success() {
		t.Fatalf("%s: %v", cmd, cmd.ProcessState)
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}

// tooSlow reports whether a read was incomplete (3) or failed (5) because a store, or an
// ingester, did not answer in time, as happens on a busy machine.
func tooSlow(stderr string, code int) bool {
	return (code == 3 || code == 5) && strings.Contains(stderr, "context deadline exceeded")
}

// answered runs logquery again while the machine is too slow for it.
func answered(t testing.TB, at place, args ...string) (stdout []byte, stderr string, code int) {
	t.Helper()
	testkit.Until(t, "logquery has its answers in time", func() bool {
		stdout, stderr, code = logquery(t, at, args...)
		return !tooSlow(stderr, code)
	})
	return stdout, stderr, code
}

// query runs a logquery that must find something.
func query(t testing.TB, at place, args ...string) []byte {
	t.Helper()
	out, errs, code := answered(t, at, args...)
	if code != 0 {
		t.Fatalf("logquery %s exits %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// count returns the output of logquery --count.
func count(t testing.TB, at place, args ...string) int {
	t.Helper()
	out, errs, code := answered(t, at, append(args, "--count", "--if-any")...)
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || code > 1 || (code == 1) != (n == 0) {
		t.Fatalf("logquery --count %s: %q, exit code %d: %s", strings.Join(args, " "), out, code, errs)
	}
	return n
}

// config writes a configuration file and returns the flag that names it.
func config(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blobtail.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + path
}

// impatient returns a client with a short timeout that shares no connections.
func impatient() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 4,
		DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext,
	}}
}
