package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/dev/scale"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/openstore"
)

// network joins clients to the listeners of ingesters without a connection of the host.
type network struct {
	mu        sync.Mutex
	listeners map[string]*testkit.Pipes
}

func (n *network) listen(_, address string, _ config.Config) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := testkit.NewPipes(at)
	n.listeners[address] = l
	return l, nil
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	return l.DialFrom(ctx, &net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 50_000})
}

// fleet are ingesters on one account, each with all parts of the command, and their senders.
type fleet struct {
	t       *testing.T
	account *scale.Account
	net     *network
	client  *http.Client
	stop    context.CancelFunc
	ended   sync.WaitGroup
	hosts   []string
	flush   scale.Flush
}

// scaleConfig is the default configuration of an ingester of many, on Azure and with an address
// at which readers ask it.
func scaleConfig(wal, host string) (config.Config, error) {
	c := config.Default()
	spec, err := openstore.Parse("azure:scale/logs")
	c.Store, c.Ingest.WAL = spec, wal
	c.Ingest.Listen, c.Ingest.Admin = host+":8514", host+":8515"
	c.Ingest.Advertise, c.Access.Open = "http://"+c.Ingest.Listen, true
	return c, errors.Join(err, c.Validate())
}

// startFleet starts n ingesters for a load, one after another, and waits until they take records.
func startFleet(t *testing.T, n int, l load) *fleet {
	f := &fleet{t: t, net: &network{listeners: map[string]*testkit.Pipes{}}}
	f.client = &http.Client{Transport: &http.Transport{DialContext: f.net.dial}}
	f.account = scale.New(scale.Options{Forget: isTail, ForgetBody: func(key string) bool { return !strings.HasPrefix(key, "_") }})
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	wals := logDir(t, n*l.services)
	for i := range n {
		host := fmt.Sprintf("10.1.0.%d", i+1)
		c, err := scaleConfig(filepath.Join(wals, host), host)
		if err != nil {
			t.Fatal(err)
		}
		l.settings(&c)
		f.hosts = append(f.hosts, c.Ingest.Listen)
		f.flush = flushOf(c)
		f.ended.Go(func() {
			log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
			if err := runIn(ctx, surroundings{f.open, f.net.listen}, c, handling{}, log); err != nil {
				t.Errorf("ingester %d: %v", i, err)
			}
		})
		f.awaitReady(c.Ingest.Admin)
	}
	return f
}

// logDir is a directory for logs. That of a small run is in memory if the host has such a place:
// tens of thousands of fsyncs would take most of the time, and change no count.
func logDir(t *testing.T, pairs int) string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() || pairs > 40 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "blobtail-scale-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// isTail reports whether a table has the newest records of a day.
func isTail(table string) bool {
	day, ok := strings.CutPrefix(table, config.Default().Tail.Prefix)
	return ok && len(day) == len("20060102") && strings.Trim(day, "0123456789") == ""
}

// open opens the account as openstore does.
func (f *fleet) open(ctx context.Context, _ openstore.Spec, _ bool) (*openstore.Store, error) {
	s, err := f.account.Open()
	if err != nil {
		return nil, err
	}
	return &openstore.Store{Blobs: s, Tables: s, Close: func() error { return nil }, Explain: s.Explain}, s.EnsureContainer(ctx)
}

// ask asks an ingester, or sends it a body.
func (f *fleet) ask(host, path string, body []byte) error {
	r, err := http.NewRequest(http.MethodGet, "http://"+host+path, nil)
	if body != nil {
		r, err = http.NewRequest(http.MethodPost, "http://"+host+path, bytes.NewReader(body))
	}
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	answer, err := f.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

func (f *fleet) awaitReady(admin string) {
	var err error
	for range 100 {
		if err = f.ask(admin, "/readyz", nil); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatalf("%s is not ready: %v", admin, err)
}

// flushOf are the settings of the buffer as the command hands them to it.
func flushOf(c config.Config) scale.Flush {
	o := bufferOptions(c, zerolog.Nop(), new(count.Registry))
	return scale.Flush{
		Size: config.Size(o.Size).String(), Min: config.Size(o.Min).String(),
		Age: config.Duration(o.Age).String(), MaxAge: config.Duration(o.MaxAge).String(),
	}
}
