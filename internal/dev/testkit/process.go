package testkit

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs, and may be started again. Its log is what all its runs said on
// stderr.
type Process struct {
	// Each is called with each line of the log; nil: there is no call.
	Each func(line []byte)
	// Cmd is the command of the last start, and Exited is closed when it has ended.
	Cmd    *exec.Cmd
	Exited chan struct{}

	mu   sync.Mutex
	log  bytes.Buffer
	part []byte // of a line
}

// Start starts a command. It ends with the tests of a parent at the latest.
func (p *Process) Start(parent *Parent, cmd *exec.Cmd) error {
	cmd.Stderr = p
	if err := parent.Start(cmd); err != nil {
		return err
	}
	exited := make(chan struct{})
	p.Cmd, p.Exited = cmd, exited
	go func() {
		_ = cmd.Wait() // its state tells how it has ended
		close(exited)
	}()
	return nil
}

// Write implements [io.Writer]: it takes the log.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.log.Write(b)
	p.mu.Unlock()
	for p.part = append(p.part, b...); p.Each != nil; {
		line, rest, ok := bytes.Cut(p.part, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.part = rest
		p.Each(line)
	}
	p.part = nil
	return len(b), nil
}

// Log is the log so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Forget drops the log.
func (p *Process) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Reset()
}

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// Ready waits until a URL answers 200.
func (p *Process) Ready(url string) error {
	return Poll(p.Cmd.Path+" is ready", func() (bool, error) {
		if p.Gone() {
			return false, fmt.Errorf("%s has ended: %s", p.Cmd.Path, p.Log())
		}
		resp, err := http.Get(url)
		if err != nil {
			return false, nil
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
}

// Signal sends a signal. The process may have ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.Cmd.Process.Signal(s) }

// End sends a signal, and waits until the process has ended.
func (p *Process) End(with syscall.Signal) error {
	p.Signal(with)
	select {
	case <-p.Exited:
		return nil
	case <-time.After(Patience):
		return fmt.Errorf("%v does not end %s", with, p.Cmd.Path)
	}
}

// Sound is an error if the log has a panic, a data race or a fatal error.
func (p *Process) Sound() error {
	for _, sign := range []string{"panic:", "panic serving", "DATA RACE", "fatal error:"} {
		if strings.Contains(p.Log(), sign) {
			return fmt.Errorf("%s: %s", p.Cmd.Path, sign)
		}
	}
	return nil
}
