package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const root = "../../.."

// running is a try as a process.
type running struct {
	facts
	t      *testing.T
	cmd    *exec.Cmd
	bin    string
	tmp    string // its TMPDIR
	stderr bytes.Buffer
	ended  chan struct{}
}

// build puts the commands and the program into a folder.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"ingest", "logquery"} {
		if err := testkit.Build(root, bin, name); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "try"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// start starts a try, in an environment with settings of another installation, and waits until it
// is ready.
func start(t *testing.T, bin string, args ...string) *running {
	t.Helper()
	r := &running{t: t, bin: bin, tmp: t.TempDir(), ended: make(chan struct{})}
	r.cmd = exec.Command(filepath.Join(bin, "try"), append([]string{"-bin", bin, "-free", "-json", "-rate", "0"}, args...)...)
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.tmp, "BLOBTAIL_STORE=dir:/nowhere", "BLOBTAIL_TOKENS=/nowhere", "BLOBTAIL_CONFIG=/nowhere")
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended })
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- line
		rest, _ := io.ReadAll(stdout)
		if len(rest) > 0 {
			t.Errorf("more on stdout: %s", rest)
		}
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	if err := json.Unmarshal([]byte(testkit.Await(t, "a try is ready", lines)), &r.facts); err != nil {
		<-r.ended
		t.Fatalf("%v: %s", err, r.stderr.String())
	}
	return r
}

// wait returns the exit code.
func (r *running) wait() int {
	r.t.Helper()
	testkit.Await(r.t, "the end of a try", r.ended)
	return r.cmd.ProcessState.ExitCode()
}

// gone fails unless nothing is left of the try.
func (r *running) gone() {
	r.t.Helper()
	if left, err := os.ReadDir(r.tmp); err != nil || len(left) > 0 {
		r.t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	for name, pid := range r.Pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			r.t.Errorf("%s still runs: %v", name, err)
		}
	}
}

// query runs logquery on the server, and returns its output.
func (r *running) query(args ...string) string {
	r.t.Helper()
	out, code := r.logquery(append([]string{"--server", r.Serve, "-q"}, args...)...)
	if code > 1 { // 1: there are no such records
		r.t.Fatalf("logquery %q: exit %d", args, code)
	}
	return out
}

// logquery runs logquery, and returns its output and its exit code.
func (r *running) logquery(args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.bin, "logquery"), args...)
	out, err := cmd.Output()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		r.t.Logf("logquery %q: %s", args, exited.Stderr)
	} else if err != nil {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// count counts records.
func (r *running) count(args ...string) int {
	r.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(r.query(append(args, "--count")...)))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// same fails unless the server has the records of the history.
func (r *running) same() {
	r.t.Helper()
	for service, want := range r.History.Counts {
		got := map[string]int{}
		for line := range strings.Lines(r.query("hist", service, "--from", r.History.From.Format(layout), "--to", r.History.To.Format(layout), "--by", "1h", "-o", "json")) {
			var bucket struct{ Levels map[string]int }
			if err := json.Unmarshal([]byte(line), &bucket); err != nil {
				r.t.Fatal(err)
			}
			for l, n := range bucket.Levels { // hist has no level of 0 records
				got[l] += n
			}
		}
		if !maps.Equal(got, want) {
			r.t.Errorf("%s has %v, want %v", service, got, want)
		}
	}
}

const layout = time.RFC3339Nano

// The commands and the program are built once for these tests.
func TestTry(t *testing.T) {
	bin := build(t)
	for name, test := range map[string]func(*testing.T, string){"whole": whole, "death": death, "killed": killed, "kept": kept} {
		t.Run(name, func(t *testing.T) { test(t, bin) })
	}
}

// A try has the records that it says, with the incident, and more come. It ends without a trace.
func whole(t *testing.T, bin string) {
	r := start(t, bin, "-records", "20000", "-rate", "2000")
	if len(r.History.Counts) != 5 || r.History.Records != 20_000 || r.History.Blobs < 10_000 || r.History.Blobs >= 20_000 || time.Since(r.History.To) > 5*time.Minute {
		t.Errorf("the history: %+v", r.History)
	}
	r.same()
	r.incident()
	to := r.History.To.Format(layout)
	testkit.Until(t, "records of now come", func() bool { return r.count("*", "--from", to) > 1000 })

	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if code := r.wait(); code != done || r.stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, &r.stderr)
	}
	r.gone()
}

// incident fails unless the commands that are printed tell of the incident.
func (r *running) incident() {
	t, i := r.t, r.Incident
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var told [3]string
	for n, line := range r.Look {
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
		stdout, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if told[n] += lines.Text() + "\n"; strings.Contains(line, " tail -f ") && strings.Contains(lines.Text(), i.Message) {
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != interrupted {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n := strings.Count(told[1], i.Message); n == 0 || !strings.Contains(told[1], i.Before) || !strings.Contains(told[2], i.Message) || !strings.Contains(told[0], `"error":`) {
		t.Errorf("the commands tell:\n%s", strings.Join(told[:], "\n"))
	}
	from, deploy := r.History.From.Format(layout), i.Deploy.Format(layout)
	if n := r.count("*", "--from", from, "--to", deploy, "-F", i.Message); n != 0 {
		t.Errorf("%d records with the new message before the deploy", n)
	}
	for text, want := range map[string]int{i.Message: i.Errors, i.Before: i.Warnings} {
		if n := r.count("*", "--from", deploy, "--to", r.History.To.Format(layout), "-F", text); n != want || n == 0 {
			t.Errorf("%d records with %q, want %d", n, text, want)
		}
	}
	of := strings.Split(r.query("*", "--from", deploy, "--where", `request_id == "`+i.Request+`"`, "-o", "json"), "\n")
	at := slices.IndexFunc(of, func(line string) bool { return strings.Contains(line, i.Message) })
	if len(of)-1 != i.Records || at < 1 || !strings.Contains(of[at-1], i.Before) {
		t.Errorf("the first failed request has the records %q; the facts are %+v", of, i)
	}
}

// If a process ends by itself, the try says so, with the end of its log, and ends.
func death(t *testing.T, bin string) {
	for _, name := range []string{"ingest", "serve"} {
		r := start(t, bin, "-records", "500")
		if err := syscall.Kill(r.Pids[name], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code, said := r.wait(), r.stderr.String(); code != failed || !strings.Contains(said, name+" ended by itself (signal: killed)") || !strings.Contains(said, `"level":"info"`) {
			t.Errorf("exit %d: %s", code, said)
		}
		r.gone()
	}
}

// A try that is killed takes its processes with it.
func killed(t *testing.T, bin string) {
	r := start(t, bin, "-records", "500")
	_ = r.cmd.Process.Kill()
	r.wait()
	testkit.Until(t, "the processes of a killed try end", func() bool {
		return errors.Is(errors.Join(syscall.Kill(r.Pids["ingest"], 0)), syscall.ESRCH) && errors.Is(errors.Join(syscall.Kill(r.Pids["serve"], 0)), syscall.ESRCH)
	})
}

// A folder with a name is kept, with all records in blobs, and not used twice. The words are for
// people then.
func kept(t *testing.T, bin string) {
	dir := filepath.Join(t.TempDir(), "kept")
	r := start(t, bin, "-records", "500", "-dir", dir, "-tokens")
	nobody, code := r.logquery("--server", r.Serve, "payments")
	t.Setenv("BLOBTAIL_TOKEN", r.Tokens["one"])
	if n := r.count("*", "--from", r.History.From.Format(layout)); n == 0 || n >= 500 || nobody != "" || code < 2 {
		t.Errorf("one token reads %d records, and nobody %q with exit %d", n, nobody, code)
	}
	t.Setenv("BLOBTAIL_TOKEN", r.Tokens["all"])
	if n := r.count("*", "--from", r.History.From.Format(layout)); n != 500 {
		t.Errorf("the other token reads %d records", n)
	}
	_ = r.cmd.Process.Signal(os.Interrupt)
	if code = r.wait(); code != done || !strings.Contains(r.stderr.String(), r.Store) {
		t.Errorf("exit %d: %s", code, &r.stderr)
	}
	r.gone()
	if out, _ := r.logquery("--store", r.Store, "--live", "off", "*", "--from", r.History.From.Format(layout), "--count", "-q"); out != "500\n" {
		t.Errorf("blobs have %q records", out)
	}

	again := exec.CommandContext(t.Context(), filepath.Join(bin, "try"), "-bin", bin, "-free", "-dir", dir)
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "is not empty") {
		t.Errorf("the same folder again: %v\n%s", err, out)
	}
}

// The usage of flags, and the commands alone.
func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"-commands", done, "tail -f '*'"},
		{"-records 0", usage, "-records"},
		{"-incident 3h", usage, "-incident"},
		{"-at yesterday", usage, "-at"},
		{"-bin /nowhere", failed, "make build"},
		{"more", usage, ""},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(tt.args), &out, &out); code != tt.code || !strings.Contains(out.String(), tt.says) {
			t.Errorf("try %s: %d %s", tt.args, code, &out)
		}
	}
}
