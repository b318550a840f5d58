package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ingester is a running ingester.
type ingester struct {
	cmd           *exec.Cmd
	Listen, Admin string
	log           *tail
}

// tail has the last lines that a process wrote.
type tail struct {
	lines []string
	ended chan struct{}
}

func (t *tail) String() string { <-t.ended; return strings.Join(t.lines, "\n") }

// startIngester starts an ingester on free ports and waits until it is ready.
func startIngester(ctx context.Context, program string, env []string, args ...string) (*ingester, error) {
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
	s := &ingester{cmd: cmd, log: &tail{ended: make(chan struct{})}}
	ready := make(chan ingester, 1)
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
func (t *tail) read(from io.Reader, ready chan<- ingester) {
	defer close(t.ended)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var r struct{ Message, Listen, Admin string }
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Message == "ready" {
			ready <- ingester{Listen: r.Listen, Admin: r.Admin}
		}
		if t.lines = append(t.lines, lines.Text()); len(t.lines) > 10 {
			t.lines = t.lines[1:]
		}
	}
}

// flush returns when all records are in blobs.
func (s *ingester) flush() error {
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

// profile writes a CPU profile of the next seconds.
func (s *ingester) profile(seconds int, name string) error {
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

// usage returns the CPU seconds and the peak memory in MB so far.
func (s *ingester) usage() (cpu, peak float64, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, 0, err
	}
	// Fields 14 and 15 of stat, user and system time in ticks. The name of the process,
	// which may have spaces, ends with the last parenthesis.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	for _, f := range fields[11:13] {
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

// stop ends the ingester as its service manager would.
func (s *ingester) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.log.ended // Wait closes the pipe of the log
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("ingester: %w: %s", err, s.log)
	}
	return nil
}

// kill ends it after a failure. After stop it does nothing.
func (s *ingester) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// blobsOf returns the number of blobs in a dir store, and their bytes.
func blobsOf(store string) (n int, size int64, err error) {
	err = filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir // the log and the tables
		case d.IsDir() || !strings.HasSuffix(path, ".log"):
			return nil
		}
		info, err := d.Info()
		n++
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return n, size, err
}
