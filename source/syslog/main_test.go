package syslog_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/syslog"
)

// journal is a log in memory. refuse may return the reason that it accepts nothing.
type journal struct {
	mu       sync.Mutex
	lines    []string
	requests int
	waits    int
	refuse   func() error
}

func (j *journal) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return record.Receipt{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.refuse != nil {
		if err := j.refuse(); err != nil {
			return record.Receipt{}, err
		}
	}
	j.requests++
	for i := range r.Lines {
		l := &r.Lines[i]
		j.lines = append(j.lines, string(r.Data[l.Off:l.Off+l.Len]))
	}
	return record.Receipt{Wait: func(context.Context, bool) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.waits++
		return nil
	}}, nil
}

// counts returns the numbers of requests, of those made durable, and of lines.
func (j *journal) counts() [3]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return [3]int{j.requests, j.waits, len(j.lines)}
}

// all returns the lines so far.
func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// msgs returns the texts of the records of accepted messages, and of rejected ones.
func (j *journal) msgs(t testing.TB) (accepted, rejected []string) {
	t.Helper()
	for _, line := range j.all() {
		var r struct{ Msg, Service string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Service == record.RejectedService {
			rejected = append(rejected, r.Msg)
		} else {
			accepted = append(accepted, r.Msg)
		}
	}
	return accepted, rejected
}

// pipes is a listener within the process, so that time can be virtual.
type pipes struct{ *testkit.Pipes }

func newPipes() pipes { return pipes{testkit.NewPipes(nil)} }

func (p pipes) dial() net.Conn {
	c, _ := p.DialFrom(context.Background(), &net.UnixAddr{Name: "pipe", Net: "pipe"}) // it listens
	return c
}

// run starts a source on a listener. stop ends it, and returns the error of Run.
func run(t testing.TB, o syslog.Options, l net.Listener) (stop func() error) {
	t.Helper()
	s := syslog.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-done
		})
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// loopback listens on a free port of this host.
func loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func send(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// arrival is when the messages of the tests arrive.
var arrival = time.Date(2026, 11, 20, 15, 30, 0, 0, time.UTC)

func atArrival() time.Time { return arrival }

// stored sends bytes over one connection, closes that, and returns the stored lines.
func stored(t testing.TB, o syslog.Options, text ...string) []string {
	t.Helper()
	j := &journal{}
	o.Accept = j
	if o.Now == nil {
		o.Now = atArrival
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	l := newPipes()
	stop := run(t, o, l)
	c := l.dial()
	for _, part := range text {
		if _, err := io.WriteString(c, part); err != nil && !errors.Is(err, io.ErrClosedPipe) { // after three bad starts
			t.Fatal(err)
		}
	}
	c.Close()
	gone(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return j.all()
}

// gone waits until the other end of a connection is closed too.
func gone(t testing.TB, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("syslog answers")
	}
}

func joined(lines []string) string { return strings.Join(lines, "") }
