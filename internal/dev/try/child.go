package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a command that runs as long as the try, but for ends that are asked for.
type child struct {
	name string // ingest or serve
	argv []string
	env  []string
	dir  string
	log  *os.File // has its stderr

	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended
	asked  bool          // for its end
	mu     sync.Mutex
	lines  []string // the last ones of its stderr
	deaths chan<- *child
}

// hello is the line of a log that says that the command is ready.
type hello struct{ Message, Listen, Admin, URL string }

// patience is how long a child may take to be ready.
const patience = time.Minute

// start starts the command, and waits until it is ready. The kernel ends it with the thread that
// called start.
func (c *child) start(ctx context.Context) (hello, error) {
	c.cmd = exec.Command(c.argv[0], c.argv[1:]...)
	c.cmd.Env, c.cmd.Dir = c.env, c.dir
	// The signals of a terminal are for this process: it decides when a child ends.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stderr, err := c.cmd.StderrPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return hello{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	c.ended = make(chan struct{})
	c.mu.Lock()
	c.asked, c.lines = false, nil
	c.mu.Unlock()
	ready := make(chan hello, 1)
	go c.watch(c.cmd, stderr, c.ended, ready)
	select {
	case h := <-ready:
		return h, nil
	case <-c.ended:
		return hello{}, fmt.Errorf("%s did not start:\n%s", c.name, c.said())
	case <-time.After(patience):
		return hello{}, fmt.Errorf("%s is not ready after %s:\n%s", c.name, patience, c.said())
	case <-ctx.Done():
		return hello{}, ctx.Err()
	}
}

// watch reads the log to its end, tells the line that says ready, and then the end of the process.
func (c *child) watch(cmd *exec.Cmd, stderr io.Reader, ended chan struct{}, ready chan<- hello) {
	told := false
	for from := bufio.NewReader(stderr); ; {
		line, err := from.ReadString('\n')
		if line != "" {
			_, _ = c.log.WriteString(line)
			c.mu.Lock()
			if c.lines = append(c.lines, strings.TrimSuffix(line, "\n")); len(c.lines) > 20 {
				c.lines = c.lines[1:]
			}
			c.mu.Unlock()
		}
		var h hello
		if !told && json.Unmarshal([]byte(line), &h) == nil && (h.Message == "ready" || h.Message == "listening") {
			told = true
			ready <- h
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	close(ended)
	if told && !asked {
		c.deaths <- c
	}
}

// said is the end of its log.
func (c *child) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// stop ends the process by a signal and waits; after some time, or at once for SIGKILL, it kills it.
func (c *child) stop(by syscall.Signal) {
	if !c.running() {
		return
	}
	c.mu.Lock()
	c.asked = true
	c.mu.Unlock()
	_ = c.cmd.Process.Signal(by)
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// running says whether the process runs.
func (c *child) running() bool {
	if c == nil || c.ended == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// pid is 0 if the process does not run.
func (c *child) pid() int {
	if !c.running() {
		return 0
	}
	return c.cmd.Process.Pid
}

// newChild describes a command of the product.
func (w *world) newChild(name, program string, args ...string) (*child, error) {
	path, err := filepath.Abs(filepath.Join(w.o.bin, program))
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	return &child{name: name, argv: append([]string{path}, args...), env: w.environ(), dir: w.dir, log: log, deaths: w.deaths}, nil
}

// environ are the variables of a child: those of this process, but for the settings of another
// installation.
func (w *world) environ() []string {
	var all []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BLOBTAIL_") && !strings.HasPrefix(v, "AZURE_STORAGE_") {
			all = append(all, v)
		}
	}
	return append(all, "TMPDIR="+filepath.Join(w.dir, "tmp"))
}
