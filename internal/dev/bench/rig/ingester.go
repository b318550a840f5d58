package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Ingester is a running ingester.
type Ingester struct {
	Process
	Listen, Admin string
	log           *tail
}

// tail has the last lines that a process wrote.
type tail struct {
	lines []string
	ended chan struct{}
}

func (t *tail) String() string { <-t.ended; return strings.Join(t.lines, "\n") }

// StartIngester starts an ingester on free ports and waits until it is ready.
func StartIngester(ctx context.Context, program string, env []string, args ...string) (*Ingester, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the main thread, to which main is locked
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Ingester{Process: Process{cmd}, log: &tail{ended: make(chan struct{})}}
	ready := make(chan Ingester, 1)
	go s.log.read(stderr, ready)
	select {
	case r := <-ready:
		s.Listen, s.Admin = r.Listen, r.Admin
		return s, nil
	case <-s.log.ended:
	case <-time.After(time.Minute):
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil, fmt.Errorf("%s did not start: %s", program, s.log)
}

// read reads the log to its end and tells the addresses of its line "ready".
func (t *tail) read(from io.Reader, ready chan<- Ingester) {
	defer close(t.ended)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var r struct{ Message, Listen, Admin string }
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Message == "ready" {
			ready <- Ingester{Listen: r.Listen, Admin: r.Admin}
		}
		if t.lines = append(t.lines, lines.Text()); len(t.lines) > 10 {
			t.lines = t.lines[1:]
		}
	}
}

// Flush returns when all records are in blobs.
func (s *Ingester) Flush() error {
	r, err := http.Post("http://"+s.Admin+"/flush", "", nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("/flush: %s: %s", r.Status, text)
	}
	return err
}

// Profile writes a CPU profile of the next seconds.
func (s *Ingester) Profile(seconds int, name string) error {
	r, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.Admin, seconds))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("profile: %s: %s", r.Status, text)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// Stop ends the ingester as its service manager would.
func (s *Ingester) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.log.ended // Wait closes the pipe of the log
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("ingester: %w: %s", err, s.log)
	}
	return nil
}
