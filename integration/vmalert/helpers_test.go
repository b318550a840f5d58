// Package vmalert holds docs/read/alerts.md and the rules of deploy/vmalert against vmalert itself: a
// real one asks a real `logquery serve`, which asks a real ingester. It is a module of its own, so
// that the product does not need those of VictoriaMetrics. `make alerting` runs it.
package vmalert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	root = "../.."
	// patience is how long a busy machine may take for what is quick.
	patience = 90 * time.Second
)

// bin is the directory of the programs.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vmalert")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	for _, b := range []struct{ folder, name, from string }{
		{root, "ingest", "./cmd/ingest"}, {root, "logquery", "./cmd/query"}, {root, "retention", "./cmd/retention"},
		{".", "vmalert", "github.com/VictoriaMetrics/VictoriaMetrics/app/vmalert"},
	} {
		made := filepath.Join(os.Getenv("BLOBTAIL_BIN"), b.name)
		if _, err := os.Stat(made); err == nil && os.Getenv("BLOBTAIL_BIN") != "" {
			err := os.Symlink(made, filepath.Join(dir, b.name))
			if err == nil {
				continue
			}
		}
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, b.name), b.from)
		cmd.Dir, cmd.Env = b.folder, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", b.name, err, out)
			return 1
		}
	}
	return m.Run()
}

// until waits for something that must come.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// process is a program that runs.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd

	mu   sync.Mutex
	text bytes.Buffer // of stdout and stderr
	gone chan struct{}
}

// launch starts a program. The test ends it.
func launch(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, gone: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(bin, name), args...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // tests end it by a signal
		close(p.gone)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s:\n%s", name, tail(p.log(), 3000))
		}
	})
	return p
}

// Write collects the output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// kill ends the program as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

// said waits until a line of the log, which is JSON, has the message, and returns that line.
func (p *process) said(message string) (line map[string]any) {
	p.t.Helper()
	until(p.t, p.name+" says "+message, func() bool {
		select {
		case <-p.gone:
			p.t.Fatalf("%s has ended", p.name)
		default:
		}
		for in := bufio.NewScanner(strings.NewReader(p.log())); in.Scan(); {
			line = nil
			if json.Unmarshal(in.Bytes(), &line) == nil && line["message"] == message {
				return true
			}
		}
		return false
	})
	return line
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// site is a store with its programs.
type site struct {
	t      *testing.T
	store  string
	wal    string
	listen string // of the ingester
	admin  string
	serve  string // URL
	ingest *process
}

// open starts an ingester, and a server with more flags.
func open(t *testing.T, flags ...string) *site {
	t.Helper()
	folder := t.TempDir()
	s := &site{t: t, store: "dir:" + filepath.Join(folder, "store"), wal: filepath.Join(folder, "wal"), listen: free(t), admin: free(t)}
	s.start()
	server := launch(t, nil, "logquery", append([]string{"serve", "--store", s.store, "--listen", "127.0.0.1:0"}, flags...)...)
	s.serve = server.said("listening")["url"].(string)
	return s
}

// start starts the ingester, at its address and on its log.
func (s *site) start() {
	s.t.Helper()
	s.ingest = launch(s.t, nil, "ingest", "--store", s.store, "--wal", s.wal, "--listen", s.listen, "--admin", s.admin)
	s.ingest.said("ready")
}

// send sends records as lines of JSON.
func (s *site) send(lines ...string) {
	s.t.Helper()
	post(s.t, "http://"+s.listen+"/ingest", strings.Join(lines, "\n"))
}

// failure is a record of level error, of now.
func failure(service, text string) string {
	return fmt.Sprintf(`{"time":%q,"level":"error","service":%q,"msg":%q}`, time.Now().UTC().Format(time.RFC3339Nano), service, text)
}

// flush waits until all records are in blobs.
func (s *site) flush() {
	s.t.Helper()
	post(s.t, "http://"+s.admin+"/flush", "")
}

func post(t *testing.T, url, body string) {
	t.Helper()
	answer, err := http.Post(url, "application/x-ndjson", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, answer.StatusCode, text, err)
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, answer.StatusCode, text, err)
	}
	return text
}

// token makes a token in a file of tokens, and returns it.
func token(t *testing.T, file string, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "ingest"), append([]string{"token", "new", "--file", file}, args...)...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// write writes a file into a folder of the test, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
