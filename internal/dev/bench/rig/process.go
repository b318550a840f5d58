package rig

import (
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Server is a running server that is measured.
type Server struct {
	url   string // without a slash at the end
	cmd   *exec.Cmd
	log   log
	ended chan struct{}
	err   error // of the process, once ended is closed
}

// addresses are free ones of this host. Somebody may take one before it is used, as no test does.
func addresses(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// start runs a program until it answers at the URL ready. The server ends by [Server.Stop],
// [Server.Kill] or with the thread that started it, to which main is locked. ctx is for the start.
func start(ctx context.Context, base, ready string, env []string, program string, args ...string) (*Server, error) {
	s := &Server{url: base, ended: make(chan struct{}), cmd: exec.Command(program, args...)}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = env, &s.log, &s.log
	// An own group, so that an interrupt of the terminal does not end it before its load ends.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := s.until(ctx, func() (bool, error) {
		_, err := Fetch(ctx, http.MethodGet, ready)
		return err == nil, nil
	})
	if err != nil {
		s.Kill()
		return nil, fmt.Errorf("start %s: %w: %s", program, err, s.log.last())
	}
	return s, nil
}

// URL returns the beginning of its URLs, without a slash at the end.
func (s *Server) URL() string { return s.url }

// At returns the same process behind another URL, such as that of a proxy.
func (s *Server) At(url string) *Server { return &Server{url: url, cmd: s.cmd, ended: s.ended} }

// PID is that of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Usage returns the CPU seconds, with those of children that have ended, and the peak memory in MB
// so far.
func (s *Server) Usage() (cpu, peak float64, err error) { return UsageOf(s.PID()) }

// Kill ends the process. If it has ended already, Kill does nothing.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Stop ends the server as its service manager would. After a minute, or if ctx is done, it is killed.
func (s *Server) Stop(ctx context.Context) error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("%s did not stop: %w", s.cmd.Path, ctx.Err())
	}
	if s.err != nil {
		return fmt.Errorf("%s: %w: %s", s.cmd.Path, s.err, s.log.last())
	}
	return nil
}

// until asks again and again. It ends with an error if the server or ctx ends.
func (s *Server) until(ctx context.Context, ok func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended: %w: %s", s.cmd.Path, errors.Join(errors.New("it stopped"), s.err), s.log.last())
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Fetch sends a request without a body. An answer other than 2xx is an error.
func Fetch(ctx context.Context, method, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s: %.300s", url, res.Status, body)
	}
	return body, err
}

// log has the lines that a process wrote.
type log struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text, []byte(text))
}

// last returns the end of the log.
func (l *log) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-1000):])
}

// UsageOf is [Server.Usage] of any process.
func UsageOf(pid int) (cpu, peak float64, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, 0, err
	}
	// The clock of a process counts nanoseconds, as a request that takes less than a tick needs.
	var own unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|2, &own); err != nil {
		return 0, 0, fmt.Errorf("the CPU clock of process %d: %w", pid, err)
	}
	cpu = time.Duration(own.Nano()).Seconds()
	// Fields 16 and 17 of stat are the ticks of its children, of the user and the system. The name
	// of the process may have spaces and ends with the last parenthesis.
	for _, f := range bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[13:15] {
		ticks, err := strconv.Atoi(string(f))
		if err != nil {
			return 0, 0, err
		}
		cpu += float64(ticks) / 100 // USER_HZ, the same on every Linux that Go runs on
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return 0, 0, err
	}
	_, hwm, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0, 0, errors.New("/proc has no VmHWM")
	}
	_, err = fmt.Sscan(hwm, &peak)
	return cpu, peak / 1024, err
}
