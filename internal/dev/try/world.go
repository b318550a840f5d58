package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// world is all that runs.
type world struct {
	o              options
	stdout, stderr io.Writer
	bin, dir       string
	temporary      bool // dir is deleted at the end
	ready          bool

	children []*child
	url      string            // of serve
	tokens   map[string]string // id.secret by id
	sender   *sender
	deaths   chan *child
}

// child is a command of the product that runs as long as the try.
type child struct {
	name  string // ingest or serve
	log   string // file with its stderr
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// hello is the line of a log that says that the command is ready.
type hello struct{ Message, Listen, Admin, URL string }

// patience is how long a child may take to be ready.
const patience = time.Minute

// prepare finds the programs, and makes the folder. Other records in it would spoil the counts.
func (w *world) prepare() (err error) {
	if w.bin, err = filepath.Abs(w.o.bin); err != nil {
		return err
	}
	for _, name := range []string{"ingest", "logquery"} {
		if _, err := os.Stat(filepath.Join(w.bin, name)); err != nil {
			return fmt.Errorf("%w: run make build, or name the folder with -bin", err)
		}
	}
	if w.temporary = w.o.dir == ""; w.temporary {
		w.dir, err = os.MkdirTemp("", "blobtail-try-")
	} else if w.dir, err = filepath.Abs(w.o.dir); err == nil {
		if entries, _ := os.ReadDir(w.dir); len(entries) > 0 {
			return fmt.Errorf("%s is not empty: name another folder, or delete it", w.dir)
		}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(w.dir, "tmp"), 0o755)
	}
	return err
}

// usual are the addresses of the ingester, for senders and operators, and of serve.
func usual() [3]string { return [3]string{"127.0.0.1:8514", "127.0.0.1:8515", "127.0.0.1:8516"} }

// addresses are the usual ones if they are free, or any free ones.
func (w *world) addresses() [3]string {
	const any = "127.0.0.1:0"
	if w.o.free {
		return [3]string{any, any, any}
	}
	for _, a := range usual() {
		l, err := net.Listen("tcp", a)
		if err != nil {
			fmt.Fprintf(w.stderr, "try: %s is taken, so other ports are used\n", a)
			return [3]string{any, any, any}
		}
		l.Close()
	}
	return usual()
}

// store is the store for --store.
func (w *world) store() string { return "dir:" + filepath.Join(w.dir, "store") }

// command is a command of the product, without the settings of another installation.
func (w *world) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, program), args...)
	cmd.Dir, cmd.Env = w.dir, []string{"TMPDIR=" + filepath.Join(w.dir, "tmp")}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BLOBTAIL_") && !strings.HasPrefix(v, "AZURE_STORAGE_") && !strings.HasPrefix(v, "TMPDIR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// start starts a command, and waits until it is ready. The kernel ends it with the thread that
// called start.
func (w *world) start(ctx context.Context, name, program string, args ...string) (hello, error) {
	c := &child{name: name, log: filepath.Join(w.dir, name+".log"), cmd: w.command(program, args...), ended: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return hello{}, err
	}
	defer log.Close()
	c.cmd.Stderr = log
	// The signals of a terminal are for this process: it decides when a child ends.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return hello{}, err
	}
	w.children = append(w.children, c)
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
		w.deaths <- c
	}()
	for begun := time.Now(); time.Since(begun) < patience; {
		for line := range strings.Lines(c.said(1 << 20)) {
			var h hello
			if json.Unmarshal([]byte(line), &h) == nil && (h.Message == "ready" || h.Message == "listening") {
				return h, nil
			}
		}
		select {
		case <-c.ended:
			return hello{}, fmt.Errorf("%s did not start:\n%s", name, c.said(4000))
		case <-ctx.Done():
			return hello{}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return hello{}, fmt.Errorf("%s is not ready after %s:\n%s", name, patience, c.said(4000))
}

// said is the end of its log, up to n bytes.
func (c *child) said(n int) string {
	text, _ := os.ReadFile(c.log)
	return string(bytes.TrimSpace(text[max(0, len(text)-n):]))
}

// startAll starts the two commands.
func (w *world) startAll(ctx context.Context) error {
	at := w.addresses()
	ingest, err := w.start(ctx, "ingest", "ingest", "--store", w.store(), "--listen", at[0], "--admin", at[1])
	if err != nil {
		return err
	}
	args := []string{"serve", "--store", w.store(), "--listen", at[2]}
	if w.o.tokens {
		file := filepath.Join(w.dir, "tokens.yaml")
		args, w.tokens = append(args, "--tokens", file), map[string]string{}
		for id, read := range map[string]string{"all": "*", "one": "payments"} {
			out, err := w.command("ingest", "token", "new", id, "--read", read, "--file", file).Output()
			if err != nil {
				return fmt.Errorf("ingest token new: %w: %s", err, out)
			}
			w.tokens[id] = strings.TrimSpace(string(out))
		}
	}
	serve, err := w.start(ctx, "serve", "logquery", args...)
	w.url, w.sender = serve.URL, newSender(w.o, "http://"+ingest.Listen, "http://"+ingest.Admin)
	return err
}

// keep runs all until the end of the context, or until something fails.
func (w *world) keep(ctx context.Context) error {
	if err := w.startAll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	failures := make(chan error, 1)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()
	work := func(do func(context.Context) error) { senders.Go(func() { failures <- do(ctx) }) }
	work(w.sender.history)
	for {
		select {
		case c := <-w.deaths:
			return fmt.Errorf("%s ended by itself (%s); the end of its log:\n%s", c.name, c.cmd.ProcessState, c.said(4000))
		case err := <-failures:
			if err == nil {
				err = w.tell()
			}
			if err != nil {
				return err
			}
			w.ready = true
			work(w.sender.live)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end ends the children, and deletes a temporary folder. The records of a folder to keep are in
// blobs then.
func (w *world) end() error {
	by := syscall.SIGTERM
	if w.temporary {
		by = syscall.SIGKILL
	}
	for i := range w.children {
		c := w.children[len(w.children)-1-i]
		_ = c.cmd.Process.Signal(by)
		select {
		case <-c.ended:
		case <-time.After(20 * time.Second):
			_ = c.cmd.Process.Kill()
			<-c.ended
		}
	}
	if w.temporary {
		return os.RemoveAll(w.dir)
	}
	if w.ready {
		fmt.Fprintf(w.stderr, "try: the logs stay: logquery --store %s ls\n", w.store())
	}
	return nil
}
