// Package victoria builds VictoriaLogs of a pinned version and runs it as a server, for
// comparisons. Nothing of it is linked into the product.
package victoria

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const program = "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs"

// Install builds the version that internal/dev/tools/victorialogs requires, from the sources of
// the Go module, into a directory. root is the root of this repository. version also says whether
// the build has cgo, because zstd is the one in C then, as in the binaries of its releases.
func Install(ctx context.Context, root, into string) (path, version string, err error) {
	path = filepath.Join(into, "victoria-logs")
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, program)
	build.Dir = filepath.Join(root, "internal", "dev", "tools", "victorialogs")
	if out, err := build.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build %s in %s: %w\n%s", program, build.Dir, err, out)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	zstd := "pure Go"
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value == "1" {
			zstd = "cgo"
		}
	}
	return path, fmt.Sprintf("%s (%s)", info.Main.Version, zstd), nil
}

// Server is a running VictoriaLogs.
type Server struct {
	// Streams are the fields of streams of lines, with commas between. Empty, it is service alone:
	// VictoriaLogs' documentation recommends fields that are constant for an instance of an
	// application. With the level as a second one, its reads of words that few levels have take
	// about a tenth of the CPU.
	Streams string

	cmd    *exec.Cmd
	url    string
	dir    string
	log    log
	client http.Client
	ended  chan struct{}
	err    error // of the process; set before ended is closed
}

// Start runs the program on a free port of 127.0.0.1 with its files in dir, and waits until it
// answers. All settings but the retention are its defaults: it has to keep records of any day. The
// server ends by [Server.Stop] or with the thread that started it, thus with this process, and not
// with ctx, which is for the start.
func Start(ctx context.Context, path, dir string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + address, dir: dir, ended: make(chan struct{})}
	s.cmd = exec.Command(path, "-httpListenAddr="+address, "-storageDataPath="+dir, "-retentionPeriod=100y", "-futureRetention=100y")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	// An own group, so that an interrupt of the terminal ends it in order, by Stop.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.until(ctx, func() (bool, error) {
		_, err := s.get(ctx, "/health")
		return err == nil, nil
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), s.kill())
	}
	return s, nil
}

// URL returns the beginning of its URLs, without a slash at the end.
func (s *Server) URL() string { return s.url }

// PID returns the id of its process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Command returns its command line.
func (s *Server) Command() []string { return s.cmd.Args }

// Stop ends the server as its service manager would, or kills it when ctx is done.
func (s *Server) Stop(ctx context.Context) error {
	s.client.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.kill())
	}
	if s.err != nil {
		return fmt.Errorf("VictoriaLogs: %w: %s", s.err, s.log.last())
	}
	return nil
}

func (s *Server) kill() error {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
	return nil
}

// Flush returns when all acknowledged records can be queried and are in files. The server's
// force_flush does the first. It writes records to files some seconds later, and at once if it is
// asked for a snapshot, which is deleted again.
func (s *Server) Flush(ctx context.Context) error {
	if _, err := s.get(ctx, "/internal/force_flush"); err != nil {
		return err
	}
	body, err := s.get(ctx, "/internal/partition/snapshot/create")
	if err != nil {
		return err
	}
	var snapshots []string
	if err := json.Unmarshal(body, &snapshots); err != nil {
		return fmt.Errorf("the snapshots of VictoriaLogs: %w: %.300s", err, body)
	}
	for _, path := range snapshots {
		if _, err := s.get(ctx, "/internal/partition/snapshot/delete?path="+url.QueryEscape(path)); err != nil {
			return err
		}
	}
	return s.none(ctx, `vl_pending_rows{type="storage"}`, `vl_pending_rows{type="indexdb"}`, `vl_storage_rows{type="storage/inmemory"}`)
}

// Rest returns when no merge is running. Merges begin by themselves after a load or a start, and they
// would cost CPU beside a read, and files whose records are also in others.
func (s *Server) Rest(ctx context.Context) error {
	var names []string
	for _, of := range []string{"storage/inmemory", "storage/small", "storage/big", "indexdb/inmemory", "indexdb/file"} {
		names = append(names, "vl_active_merges{type="+strconv.Quote(of)+"}")
	}
	return s.none(ctx, names...)
}

// Merge flushes and merges all files of each day. VictoriaLogs does so for no day by itself: it merges
// some files while records of the day arrive.
func (s *Server) Merge(ctx context.Context) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	const done = "has been successfully finished"
	before := s.log.count(done)
	if _, err := s.get(ctx, "/internal/force_merge"); err != nil { // it answers at once
		return err
	}
	return s.until(ctx, func() (bool, error) { return s.log.count(done) > before, nil })
}

// Stored returns the bytes of its files.
func (s *Server) Stored() (size int64, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was merged into another one
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// Insert returns the path and the header to send records by "ndjson", "loki", "bulk" or "otlp".
// Lines have their time in ts, their text in msg, and streams by [Server.Streams]. Streams of Loki
// are those of its labels, and streams of OTLP those of its resource, which are the defaults that
// VictoriaLogs recommends.
func (s *Server) Insert(protocol string) (path string, header http.Header, err error) {
	lines := "?_stream_fields=" + cmp.Or(s.Streams, "service") + "&_time_field=ts&_msg_field=msg"
	of := func(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }
	switch protocol {
	case "ndjson":
		return "/insert/jsonline" + lines, of("application/stream+json"), nil
	case "bulk":
		return "/insert/elasticsearch/_bulk" + lines, of("application/json"), nil
	case "loki":
		return "/insert/loki/api/v1/push", of("application/x-protobuf"), nil
	case "otlp":
		return "/insert/opentelemetry/v1/logs", of("application/x-protobuf"), nil
	}
	return "", nil, fmt.Errorf("VictoriaLogs is sent nothing by the protocol %q", protocol)
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
			return fmt.Errorf("VictoriaLogs ended: %w: %s", s.err, s.log.last())
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (s *Server) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s of VictoriaLogs: %s: %.300s", path, res.Status, body)
	}
	return body, err
}

// none returns when all of some metrics are 0.
func (s *Server) none(ctx context.Context, names ...string) error {
	return s.until(ctx, func() (bool, error) {
		page, err := s.get(ctx, "/metrics")
		if err != nil {
			return false, err
		}
		for _, name := range names {
			if n, err := metric(page, name); err != nil || n != 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// metric reads a number of the page of metrics.
func metric(page []byte, name string) (float64, error) {
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("VictoriaLogs has no metric %s", name)
}

// log has the lines that the process wrote: a few at its start, and for each merge.
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
