package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// server is a running logquery serve.
type server struct {
	testkit.Process
	t     testing.TB
	at    place
	flags []string
	url   string
}

// serve starts a server, and waits until it is ready.
func serve(t testing.TB, at place, flags ...string) *server {
	t.Helper()
	address := freeAddress(t)
	s := &server{t: t, at: at, flags: append([]string{"serve", "--listen", address}, flags...), url: "http://" + address}
	s.start()
	t.Cleanup(func() {
		s.kill()
		if err := s.Sound(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of logquery serve:\n%.2000s", s.Log())
		}
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(shared.bin, "logquery"), append([]string{"--store", s.at.store}, s.flags...)...)
	cmd.Env, cmd.Dir = append(testkit.Environ(), s.at.env...), s.t.TempDir()
	err := s.Start(shared.parent, cmd)
	if err == nil {
		err = s.Ready(s.url + "/ready")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) kill() { s.end(syscall.SIGKILL) }

// end sends a signal, and waits until the server has ended.
func (s *server) end(with syscall.Signal) {
	if err := s.End(with); err != nil {
		s.t.Fatal(err)
	}
}

// restart ends the server, gently or not, and starts it again at its address.
func (s *server) restart(gently bool) {
	s.t.Helper()
	if gently {
		s.end(syscall.SIGTERM)
	} else {
		s.kill()
	}
	s.start()
}

// memory is the most memory that the server has used, in MiB.
func (s *server) memory() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				s.t.Fatal(err)
			}
			return n >> 10
		}
	}
	s.t.Fatal("no VmHWM")
	return 0
}

// get asks for a path. headers are pairs of name and value.
func (s *server) get(path string, headers ...string) (code int, body []byte, err error) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// mustGet is get for an answer that must be whole.
func (s *server) mustGet(path string, headers ...string) []byte {
	s.t.Helper()
	code, body, err := s.get(path, headers...)
	if err != nil || code != http.StatusOK {
		s.t.Fatalf("%s: %d, %v\n%.500s", path, code, err, body)
	}
	return body
}

// listener is a client of a tail.
type listener struct {
	t      testing.TB
	server *server
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	said   []string // notes, gaps and problems
	ended  []string // the reasons why streams ended
	opened int
}

func (l *listener) note(to *[]string, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(*to); n == 0 || (*to)[n-1] != text { // a client that comes in vain comes often
		*to = append(*to, text)
	}
}

func (l *listener) streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

func (l *listener) stop() {
	l.cancel()
	<-l.done
	if l.t.Failed() && len(l.said)+len(l.ended) > 0 {
		l.t.Logf("a tail was told %q; its streams ended with %q", l.said, l.ended)
	}
}

// listen starts a client that comes again when its stream ends, until stop.
func (s *server) listen(t testing.TB, stream func(context.Context, *listener) error) *listener {
	ctx, cancel := context.WithCancel(t.Context())
	l := &listener{t: t, server: s, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for ctx.Err() == nil {
			if err := stream(ctx, l); err != nil && ctx.Err() == nil {
				l.note(&l.ended, err.Error())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(l.stop)
	return l
}

// events follows a tail of our own API by server-sent events. As a browser does, it sends the
// id of the last event when it comes again. It drops records that it had behind that.
func (s *server) events(t testing.TB, query string, each func(line []byte, at time.Time)) *listener {
	last, had := "", map[string]bool{}
	return s.listen(t, func(ctx context.Context, l *listener) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/tail?"+query, nil)
		if err != nil {
			return err
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("status %d: %s", resp.StatusCode, text)
		}
		l.mu.Lock()
		l.opened++
		l.mu.Unlock()
		return readEvents(resp.Body, &last, had, l, each)
	})
}

// readEvents reads the events of a stream. As the standard has it, an event counts once its
// empty line has come. had are the records behind the last id.
func readEvents(r io.Reader, last *string, had map[string]bool, l *listener, each func(line []byte, at time.Time)) error {
	in := bufio.NewReaderSize(r, 1<<20)
	id, data := *last, []byte(nil)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			id = string(value)
		case "data":
			data = append(data, value...)
		case "":
			if len(line) > 1 { // a comment
				continue
			}
			if id != *last {
				*last = id
				clear(had)
			}
			if len(data) == 0 {
				continue
			}
			var e map[string]struct {
				ID   string
				Line json.RawMessage
			}
			if err := json.Unmarshal(data, &e); err != nil || e["record"].ID == "" {
				l.note(&l.said, string(data))
			} else if r := e["record"]; !had[r.ID] {
				had[r.ID] = true
				each(append(r.Line, '\n'), time.Now())
			}
			data = data[:0]
		}
	}
}

// frames follows a tail of Loki's API by a WebSocket. As logcli does, it comes again with the
// time of the last entry, and leaves out the entries that it has.
func (s *server) frames(t testing.TB, query string, each func(line []byte, at time.Time)) *listener {
	last, had := int64(0), map[string]bool{}
	return s.listen(t, func(ctx context.Context, l *listener) error {
		url := strings.Replace(s.url, "http", "ws", 1) + "/json/loki/api/v1/tail?" + query
		if last > 0 {
			url += "&limit=5000&start=" + strconv.FormatInt(last, 10)
		}
		c, _, err := websocket.Dial(ctx, url, nil)
		if err != nil {
			return err
		}
		defer c.CloseNow()
		c.SetReadLimit(64 << 20)
		l.mu.Lock()
		l.opened++
		l.mu.Unlock()
		for {
			_, text, err := c.Read(ctx)
			if err != nil {
				return err
			}
			var frame struct {
				Streams []struct{ Values [][2]string }
			}
			if err := json.Unmarshal(text, &frame); err != nil {
				t.Errorf("a frame of the tail: %v\n%.300s", err, text)
				return err
			}
			for _, stream := range frame.Streams {
				for _, v := range stream.Values {
					at, err := strconv.ParseInt(v[0], 10, 64)
					if err != nil {
						t.Errorf("time of an entry: %v", err)
					}
					if !had[v[1]] {
						each([]byte(v[1]+"\n"), time.Now())
					}
					if at > last {
						last = at
						clear(had)
					}
					if at == last {
						had[v[1]] = true
					}
				}
			}
		}
	})
}

// timeOf is the time of a record.
func timeOf(line []byte) time.Time {
	at, _ := record.LineTime(line)
	return time.Unix(0, at)
}
