package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
	begun          time.Time
	dir            string
	temporary      bool // dir is deleted at the end
	ready          bool

	ingest, serve *child
	url           string            // of serve
	tokens        map[string]string // id.secret by id
	sender        *sender
	control       *http.Server
	controlURL    string

	calls  chan func() // to be called by the goroutine of keep
	deaths chan *child
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

// start starts the two commands. Their later starts have the same addresses.
func (w *world) start(ctx context.Context) (err error) {
	at := w.addresses()
	if w.ingest, err = w.newChild("ingest", "ingest", "--store", w.store(), "--listen", at[0], "--admin", at[1]); err != nil {
		return err
	}
	h, err := w.ingest.start(ctx)
	if err != nil {
		return err
	}
	again(w.ingest.argv, "--listen", h.Listen)
	again(w.ingest.argv, "--admin", h.Admin)
	args := []string{"serve", "--store", w.store(), "--listen", at[2]}
	if w.o.tokens {
		file, err := w.makeTokens()
		if err != nil {
			return err
		}
		args = append(args, "--tokens", file)
	}
	if w.serve, err = w.newChild("serve", "logquery", args...); err != nil {
		return err
	}
	hs, err := w.serve.start(ctx)
	if err != nil {
		return err
	}
	w.url = hs.URL
	again(w.serve.argv, "--listen", strings.TrimPrefix(hs.URL, "http://"))
	w.sender = newSender(w.o, "http://"+h.Listen, "http://"+h.Admin)
	return nil
}

// again sets the value of a flag.
func again(argv []string, flag, value string) {
	for i, a := range argv {
		if a == flag {
			argv[i+1] = value
		}
	}
}

// onlyService is the service that the second token may read.
const onlyService = "payments"

// makeTokens makes the tokens of readers, and returns their file.
func (w *world) makeTokens() (file string, err error) {
	program, err := filepath.Abs(filepath.Join(w.o.bin, "ingest"))
	if err != nil {
		return "", err
	}
	file, w.tokens = filepath.Join(w.dir, "tokens.yaml"), map[string]string{}
	for id, read := range map[string]string{"all": "*", "one": onlyService} {
		cmd := exec.Command(program, "token", "new", id, "--read", read, "--file", file)
		cmd.Env, cmd.Dir = w.environ(), w.dir
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("ingest token new: %w: %s", err, out)
		}
		w.tokens[id] = strings.TrimSpace(string(out))
	}
	return file, nil
}

// keep runs all until the end of the context, or until something fails.
func (w *world) keep(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
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
		case call := <-w.calls:
			call()
		case c := <-w.deaths:
			return fmt.Errorf("%s ended by itself (%s); the end of its log:\n%s", c.name, c.cmd.ProcessState, c.said())
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
	if w.control != nil {
		_ = w.control.Close()
	}
	by := syscall.SIGTERM
	if w.temporary {
		by = syscall.SIGKILL
	}
	for _, c := range []*child{w.serve, w.ingest} {
		if c != nil {
			c.stop(by)
			c.log.Close()
		}
	}
	if !w.temporary {
		if w.ready {
			fmt.Fprintf(w.stderr, "try: the logs stay: logquery --store %s ls\n", w.store())
		}
		return nil
	}
	return os.RemoveAll(w.dir)
}
