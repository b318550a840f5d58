package natssource_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/natssource"
)

// A memory is an Accepter that keeps its requests, and reports them like the buffer.
type memory struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when a request arrives
	requests []record.Request
	known    map[record.Origin]uint64
	refuse   func(n int) error // the n-th call's error
	calls    int
	stored   func(reply string) // called for accepted messages; nil keeps them open
	expired  int                // records of each message
}

func (m *memory) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.refuse != nil {
		if err := m.refuse(m.calls); err != nil {
			return record.Receipt{}, err
		}
	}
	if sum, ok := m.known[r.Origin]; ok && sum != r.Sum {
		return record.Receipt{}, record.ErrKeyReused
	}
	if m.known == nil {
		m.known = map[record.Origin]uint64{}
	}
	m.known[r.Origin] = r.Sum
	c := *r
	c.Services = append([]string(nil), r.Services...)
	c.Lines = append([]record.Line(nil), r.Lines...)
	c.Data = bytes.Clone(r.Data)
	m.requests = append(m.requests, c)
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
	if m.stored != nil {
		m.stored(r.Reply)
	}
	return record.Receipt{Expired: m.expired}, nil
}

// await returns the requests when there are n or more.
func (m *memory) await(t testing.TB, n int) []record.Request {
	t.Helper()
	timeout := time.After(testkit.Patience)
	for {
		m.mu.Lock()
		if len(m.requests) >= n {
			defer m.mu.Unlock()
			return append([]record.Request(nil), m.requests...)
		}
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed, have := m.changed, len(m.requests)
		m.mu.Unlock()
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%d of %d requests came", have, n)
		}
	}
}

// env is a server with a stream, and a source that pulls from it.
type env struct {
	t      testing.TB
	nats   *testenv.NATS
	conn   *nats.Conn
	js     jetstream.JetStream
	source *natssource.Source
	log    *syncBuffer
	reg    *count.Registry
	stop   func()
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newEnv starts a server with the stream LOGS.
func newEnv(t testing.TB, change ...func(*jetstream.StreamConfig)) *env {
	t.Helper()
	e := &env{t: t, nats: testenv.StartNATS(t, patient), log: &syncBuffer{}}
	e.conn, e.js = e.nats.Connect()
	c := testenv.Stream("LOGS")
	for _, f := range change {
		f(&c)
	}
	if _, err := e.js.CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return e
}

// patient has a server wait for a slow reader.
func patient(o *server.Options) { o.WriteDeadline = testkit.Patience }

// open opens a source.
func (e *env) open(change ...func(*natssource.Options)) (*natssource.Source, error) {
	e.reg = new(count.Registry)
	o := e.options(change...)
	o.Log, o.Metrics = zerolog.New(e.log), e.reg
	return natssource.Open(e.t.Context(), o)
}

// options are those of a source that waits for the server at its start.
func (e *env) options(change ...func(*natssource.Options)) natssource.Options {
	o := natssource.Options{URL: e.nats.URL, Stream: "LOGS", Consumer: "blobtail"}
	o.Wait(testkit.Patience)
	for _, f := range change {
		f(&o)
	}
	return o
}

// within is how long a start waits, if there is no server.
func within(d time.Duration) func(*natssource.Options) {
	return func(o *natssource.Options) { o.Wait(d) }
}

// check checks without opening a source.
func (e *env) check(change ...func(*natssource.Options)) error {
	return natssource.Check(e.t.Context(), e.options(change...))
}

// run opens a source and runs it until the test or e.stop ends it.
func (e *env) run(m *memory, change ...func(*natssource.Options)) {
	e.t.Helper()
	s, err := e.open(change...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.source = s
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, m) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("run: %v", err)
		}
		limit, done := context.WithTimeout(context.Background(), testkit.Patience)
		defer done()
		s.Close(limit)
	})
	e.t.Cleanup(func() {
		e.stop()
		if e.t.Failed() {
			e.t.Logf("the source said:\n%s", e.log.String())
		}
	})
}

// publish sends a message; header are its names and values.
func (e *env) publish(subject, data string, header ...string) uint64 {
	e.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(data)
	for i := 0; i < len(header); i += 2 {
		m.Header.Add(header[i], header[i+1])
	}
	ack, err := e.js.PublishMsg(e.t.Context(), m)
	if err != nil {
		e.t.Fatal(err)
	}
	return ack.Sequence
}

// left waits until the stream holds n messages.
func (e *env) left(n uint64) {
	e.t.Helper()
	testkit.Until(e.t, fmt.Sprintf("%d messages in the stream", n), func() bool {
		s, err := e.js.Stream(e.t.Context(), "LOGS")
		return err == nil && s.CachedInfo().State.Msgs == n
	})
}

// taken runs a source and publishes a message, and returns the accepted request.
func (e *env) taken(change ...func(*natssource.Options)) (*memory, record.Request) {
	e.t.Helper()
	m := &memory{}
	e.run(m, change...)
	e.publish("logs.web", `{"msg":"a"}`)
	return m, m.await(e.t, 1)[0]
}

// while refuses messages like a full log.
func while(full *atomic.Bool) func(int) error {
	return func(int) error {
		if full.Load() {
			return fmt.Errorf("%w: %w", record.ErrFull, syscall.ENOSPC)
		}
		return nil
	}
}

// A message is accepted, and acknowledged when it is stored and not before.
func TestMessage(t *testing.T) {
	e := newEnv(t)
	_, r := e.taken()
	if got := string(r.Data); !strings.Contains(got, `"service":"web","msg":"a"`) {
		t.Error(got)
	}
	e.left(1)
	e.source.Stored(r.Reply)
	e.left(0)
}

// Expired records are not counted as accepted. Their message is settled like any
// other, when it is reported as stored.
func TestExpired(t *testing.T) {
	e := newEnv(t)
	m := &memory{expired: 2, stored: func(reply string) { e.source.Stored(reply) }}
	e.run(m)
	e.publish("logs.web", `{"msg":"a"}`+"\n"+`{"msg":"b"}`+"\n"+`{"msg":"c"}`)
	m.await(t, 1)
	e.left(0)
	testkit.Until(t, "the records are counted", func() bool { return e.value("blobtail_nats_records_total", "accepted") == 1 })
}
