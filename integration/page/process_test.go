package page_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"blobtail/internal/dev/testkit"
)

// process is a command of the product that can be ended and started again at its addresses.
type process struct {
	testkit.Process
	name  string // of the command
	args  []string
	env   []string
	dir   string
	probe string // a URL that answers 200 once it is ready; "": its first line on stdout says so
	first []byte // the first line on stdout, without a probe
}

// start starts the process, and waits until it is ready.
func (p *process) start() error {
	cmd := exec.Command(filepath.Join(shared.bin, p.name), p.args...)
	cmd.Env, cmd.Dir = append(environ(), p.env...), p.dir
	if p.probe != "" {
		if err := p.Start(shared.parent, cmd); err != nil {
			return err
		}
		return p.Ready(p.probe)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.Start(shared.parent, cmd); err != nil {
		return err
	}
	if p.first, err = bufio.NewReader(stdout).ReadBytes('\n'); err != nil {
		<-p.Exited
		return fmt.Errorf("%s has ended: %w: %s", p.name, err, p.Log())
	}
	return nil
}

// freeAddress is a free address of loopback.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ran is the result of a command.
type ran struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Code   int    `json:"code"`
}

// shell runs a line of sh as a person would who copied it from the page: the commands of the
// product are in the PATH.
func shell(ctx context.Context, dir, line string, env ...string) (ran, error) {
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(append(environ(), "PATH="+shared.bin+":"+os.Getenv("PATH")), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return ran{}, err
	}
	return ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}

// environ is the environment of all processes: the stories are told in UTC.
func environ() []string { return append(testkit.Environ(), "TZ=UTC") }

// post sends a body, and wants a 200.
func post(url string, body []byte, token string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.Header.Set("Content-Type", "application/x-ndjson"); !bytes.HasPrefix(body, []byte("{")) {
		r.Header.Set("Content-Type", "text/plain")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("POST %s: %s: %.300s", url, resp.Status, text)
	}
	return text, err
}
