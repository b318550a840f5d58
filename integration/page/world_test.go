package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// world is a store with its ingesters and its server, for one story or for several that only
// read.
type world struct {
	dir       string
	url       string // of the page
	facts     map[string]any
	ingesters []*ingester
	server    *process
	proxy     *recorder
	tokens    string // file of tokens, if the world has one
	flow      *flow
	sound     map[string][]byte // blobs as they were before damage
}

// ingester is an ingest process.
type ingester struct {
	process
	listen, admin string // URLs
	token         string // that its senders show
}

// newWorld makes an empty store. Its processes end with the test.
func newWorld(t testing.TB) (*world, error) {
	w := &world{dir: t.TempDir(), facts: make(map[string]any)}
	t.Cleanup(func() {
		if w.flow != nil {
			w.flow.stop()
		}
		if w.proxy != nil {
			w.proxy.close()
		}
		processes := make([]*process, 0, len(w.ingesters)+1)
		for _, i := range w.ingesters {
			processes = append(processes, &i.process)
		}
		if w.server != nil {
			processes = append(processes, w.server)
		}
		for _, p := range processes {
			with := syscall.SIGKILL
			if p.name == "try" { // it ends its own processes
				with = syscall.SIGTERM
			}
			if err := errors.Join(p.End(with), p.Sound()); err != nil {
				t.Errorf("%v:\n%.5000s", err, p.Log())
			}
		}
	})
	return w, nil
}

func (w *world) store() string { return filepath.Join(w.dir, "store") }

// ingest adds an ingester.
func (w *world) ingest(flags ...string) error {
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	n := len(w.ingesters)
	i := &ingester{listen: "http://" + listen, admin: "http://" + admin}
	i.process = process{name: "ingest", dir: w.dir, probe: i.admin + "/readyz", args: append([]string{
		"--store", "dir:" + w.store(), "--wal", filepath.Join(w.dir, fmt.Sprint("log", n)), "--listen", listen, "--admin", admin,
		"--lane", fmt.Sprint(n),
	}, flags...)}
	w.ingesters = append(w.ingesters, i)
	return i.start()
}

// serve adds the server.
func (w *world) serve(flags ...string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	w.url = "http://" + address
	w.server = &process{name: "logquery", dir: w.dir, probe: w.url + "/ready",
		args: append([]string{"--store", "dir:" + w.store(), "serve", "--listen", address}, flags...)}
	return w.server.start()
}

// flush puts all accepted records into blobs.
func (i *ingester) flush() error {
	_, err := post(i.admin+"/flush?timeout=120s", nil, "")
	return err
}

// send sends lines, each an object of JSON with its service.
func (i *ingester) send(lines []byte) error {
	const most = 8 << 20
	for len(lines) > 0 {
		n := len(lines)
		if n > most {
			n = bytes.LastIndexByte(lines[:most], '\n') + 1
			if n == 0 {
				n = bytes.IndexByte(lines, '\n') + 1
			}
		}
		text, err := post(i.listen+"/ingest", lines[:n], i.token)
		if err != nil {
			return err
		}
		var a struct{ Rejected, Expired int }
		if err := json.Unmarshal(text, &a); err != nil || a.Rejected+a.Expired > 0 {
			return fmt.Errorf("answer of /ingest: %.300s, %w", text, err)
		}
		lines = lines[n:]
	}
	return nil
}

// fill puts lines into blobs.
func (w *world) fill(lines []byte) error {
	i := w.ingesters[0]
	return errors.Join(i.send(lines), i.flush())
}

// atlas has the worlds of a run by name. Each is made when the first story comes to it.
type atlas struct {
	t       *testing.T // of all stories
	control string     // URL

	mu     sync.Mutex
	worlds map[string]*entry
}

type entry struct {
	once  sync.Once
	world *world
	err   error
}

// of returns the world of a name.
func (a *atlas) of(name string) (*world, error) {
	a.mu.Lock()
	e := a.worlds[name]
	if e == nil {
		e = new(entry)
		a.worlds[name] = e
	}
	a.mu.Unlock()
	e.once.Do(func() {
		kind, _, _ := strings.Cut(name, "/") // the rest tells apart worlds of one kind
		build := kinds()[kind]
		if build == nil {
			e.err = fmt.Errorf("no world %s", name)
			return
		}
		begun := time.Now()
		if e.world, e.err = newWorld(a.t); e.err == nil {
			e.err = build(e.world)
		}
		if e.err == nil {
			a.t.Logf("world %s: %v", name, time.Since(begun).Round(time.Millisecond))
		}
	})
	if e.err != nil {
		return nil, fmt.Errorf("world %s: %w", name, e.err)
	}
	return e.world, nil
}

// kinds are the ways to make a world, by name.
func kinds() map[string]func(*world) error {
	return map[string]func(*world) error{
		"empty":    emptyWorld,
		"shop":     shopWorld,
		"million":  millionWorld,
		"hostile":  hostileWorld,
		"live":     liveWorld,
		"dead":     deadWorld,
		"damaged":  damagedWorld,
		"expired":  expiredWorld,
		"forms":    formsWorld,
		"tokens":   tokensWorld,
		"old":      oldWorld,
		"incident": func(w *world) error { return incidentWorld(w) },
		"picture": func(w *world) error {
			return incidentWorld(w, "-at", "2026-11-24T15:00:00Z", "-records", "60000")
		},
	}
}

// damage spoils the middle of each blob of a service.
func (w *world) damage(service string) (int, error) {
	w.sound = make(map[string][]byte)
	err := filepath.WalkDir(filepath.Join(w.store(), service), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w.sound[path] = bytes.Clone(body)
		for at := len(body) / 4; at < len(body)/2; at++ {
			body[at] ^= 4
		}
		return replace(path, body)
	})
	return len(w.sound), err
}

// mend takes damage back.
func (w *world) mend() error {
	for path, body := range w.sound {
		if err := replace(path, body); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces a file in one step. The old one may have another name too.
func replace(path string, body []byte) error {
	if err := os.WriteFile(path+".new", body, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
