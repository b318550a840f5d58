package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// environ are the variables of a command: those of this process, but for blobtail's own, and the
// store of this try. extra come last.
func (t *try) environ(extra ...string) []string {
	var all []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BLOBTAIL_") && !strings.HasPrefix(v, "AZURE_STORAGE_") {
			all = append(all, v)
		}
	}
	for _, name := range []string{"ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING", "BLOB_ENDPOINT", "TABLE_ENDPOINT"} {
		all = append(all, "AZURE_STORAGE_"+name+"="+t.getenv("AZURE_STORAGE_"+name))
	}
	all = append(all, "BLOBTAIL_STORE="+t.spec(t.container), "BLOBTAIL_CONFIG="+filepath.Join(t.dir, "blobtail.yaml"))
	return append(all, extra...)
}

// spec is the store of a container for --store.
func (t *try) spec(container string) string { return "azure:" + t.who.account + "/" + container }

// configure writes the configuration of all commands; more is a section of it, or "".
func (t *try) configure(more string) error {
	return os.WriteFile(filepath.Join(t.dir, "blobtail.yaml"), []byte("tail: {prefix: "+t.tables+"}\n"+more), 0o600)
}

// command runs a command to its end.
func (t *try) command(ctx context.Context, extra []string, name string, args ...string) (stdout, stderr string, code int, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.o.bin, name), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &out, &errs, t.environ(extra...), t.dir
	apart(cmd)
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil
	}
	if err != nil {
		return "", "", -1, fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode(), ctx.Err()
}

// apart keeps the signals of a terminal from a command: this process decides when one ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// must runs a command that must exit with a code, and returns its output.
func (t *try) must(ctx context.Context, want int, name string, args ...string) (string, error) {
	out, errs, code, err := t.command(ctx, nil, name, args...)
	if err == nil && code != want {
		err = fmt.Errorf("%s %s: exit %d, want %d: %s", name, args[0], code, want, said(out, errs))
	}
	return out, err
}

// said is the part of an output that tells a failure: the problems, or the end.
func said(out, errs string) string {
	var problems []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "problem") {
			problems = append(problems, oneLine(line))
		}
	}
	text := strings.Join(append(problems, oneLine(errs)), " ")
	if most := 600; len(text) > most {
		text = text[:most] + " ..."
	}
	return text
}

// An ingester is a running process. A nil one does nothing.
type ingester struct {
	cmd           *exec.Cmd
	listen, admin string
	ended         chan struct{}
}

// start starts an ingester on the log directory of this try, and waits until it is ready.
func (t *try) start(ctx context.Context) (*ingester, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.o.bin, "ingest"), "--wal", filepath.Join(t.dir, "wal"),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flush-age", "1s", "--flush-max-age", "1s")
	cmd.Env, cmd.Dir = t.environ(), t.dir
	apart(cmd)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	i := &ingester{cmd: cmd, ended: make(chan struct{})}
	ready := make(chan [2]string, 1)
	var last string
	go func() {
		defer close(i.ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Message, Listen, Admin string }
			if last = lines.Text(); json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "ready" {
				ready <- [2]string{line.Listen, line.Admin}
			}
		}
		_ = cmd.Wait()
	}()
	select {
	case at := <-ready:
		i.listen, i.admin = at[0], at[1]
		return i, nil
	case <-i.ended:
		return nil, fmt.Errorf("ingest did not start: %s", last)
	case <-time.After(90 * time.Second):
		i.kill()
		return nil, fmt.Errorf("ingest is not ready after 90 s: %s", last)
	}
}

// kill kills the process, as kill -9 does, and waits for its end.
func (i *ingester) kill() {
	if i != nil {
		_ = i.cmd.Process.Kill()
		<-i.ended
	}
}

// stop ends the process as a service manager does.
func (i *ingester) stop() {
	if i == nil {
		return
	}
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.ended:
	case <-time.After(20 * time.Second):
		i.kill()
	}
}

// post sends a body, and returns the answer.
func post(ctx context.Context, url, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}

// flush returns when all records are in blobs.
func (i *ingester) flush(ctx context.Context) error {
	status, text, err := post(ctx, "http://"+i.admin+"/flush", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/flush: %d %s", status, text)
	}
	return err
}

// send sends records as NDJSON.
func (i *ingester) send(ctx context.Context, body string) error {
	status, text, err := post(ctx, "http://"+i.listen+"/ingest", body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("records are refused: %d %s", status, text)
	}
	return err
}
