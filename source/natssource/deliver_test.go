package natssource_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/count"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/natssource"
)

func ackWait(d time.Duration) func(*natssource.Options) {
	return func(o *natssource.Options) { o.AckWait = d }
}

// value reads a metric without labels, or with one value for its label.
func (e *env) value(name, label string) float64 {
	e.t.Helper()
	for series, n := range count.Read(e.reg.Page()) {
		of, labels, _ := strings.Cut(series, "{")
		if of == name && (label == "" || strings.Contains(labels, `"`+label+`"`)) {
			return n
		}
	}
	e.t.Fatalf("no metric %s %s", name, label)
	return 0
}

func (e *env) consumer() *jetstream.ConsumerInfo {
	e.t.Helper()
	c, err := e.js.Consumer(e.t.Context(), "LOGS", "blobtail")
	if err != nil {
		e.t.Fatal(err)
	}
	return c.CachedInfo()
}

// unhurried runs a test with a short wait, and repeats it with longer ones, up to a minute,
// while it fails: a source on a busy machine extends its messages late, and learns late
// why it is refused. A source that does neither fails with every wait.
func unhurried(t *testing.T, first time.Duration, test func(t *testing.T, wait time.Duration) error) {
	t.Helper()
	for wait := first; ; wait *= 4 {
		err := test(t, wait)
		if err == nil {
			return
		}
		if wait >= time.Minute {
			t.Fatalf("with a wait of %v: %v", wait, err)
		}
		t.Logf("again, since with a wait of %v: %v", wait, err)
	}
}

// A message that another process received and did not acknowledge is delivered again,
// with the same identity and time.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	unhurried(t, time.Second, redelivery)
}

func redelivery(t *testing.T, wait time.Duration) error {
	e := newEnv(t)
	_, first := e.taken(ackWait(wait))
	e.stop() // as if killed: the message was accepted, so it is not given back

	m := &memory{}
	e.run(m, ackWait(wait))
	again := m.await(t, 1)[0]
	if again.Reply == first.Reply || again.Origin != first.Origin || string(again.Data) != string(first.Data) {
		t.Errorf("%+v\nwas %+v", again, first)
	}
	if n := e.value("blobtail_nats_redelivered_total", ""); n != 1 {
		return fmt.Errorf("%v redelivered", n)
	}
	e.source.Stored(again.Reply)
	e.left(0)
	return nil
}

// A slow message is not delivered again while its ingester lives.
func TestInProgress(t *testing.T) {
	t.Parallel()
	unhurried(t, time.Second, func(t *testing.T, wait time.Duration) error {
		e := newEnv(t)
		m, r := e.taken(ackWait(wait))
		time.Sleep(wait * 5 / 2)
		if n := e.consumer().NumRedelivered; n != 0 || len(m.await(t, 1)) != 1 {
			return fmt.Errorf("%d redelivered", n)
		}
		e.source.Stored(r.Reply)
		e.left(0)
		return nil
	})
}

// A message that a start found in the log is kept alive, and acknowledged by its old
// reply.
func TestFound(t *testing.T) {
	t.Parallel()
	unhurried(t, time.Second, found)
}

func found(t *testing.T, wait time.Duration) error {
	e := newEnv(t)
	_, r := e.taken(ackWait(wait))
	e.stop()

	m := &memory{}
	s, err := e.open(ackWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	s.Found(r.Reply)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, m) }()
	time.Sleep(2 * wait)
	s.Stored(r.Reply)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.Close(t.Context())
	if m.calls != 0 {
		return errors.New("delivered again though it was found")
	}
	e.left(0)
	return nil
}

// A message that a start found in the log and will not store goes to any ingester
// that pulls, long before its acknowledgement wait is over.
func TestDroppedAtTheStart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, r := e.taken()
	e.stop()

	m := &memory{}
	e.run(m)
	e.source.Dropped(r.Reply)
	m.await(t, 1)
}

// A dropped message is delivered again, unless a later delivery of it has arrived
// already.
func TestDropped(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	m, first := e.taken()
	e.source.Dropped(first.Reply)
	second := m.await(t, 2)[1]
	if second.Origin != first.Origin {
		t.Errorf("origin %v, was %v", second.Origin, first.Origin)
	}
	e.source.Dropped(first.Reply) // the second has arrived
	testkit.Until(t, "one NAK", func() bool { return e.value("blobtail_nats_settled_total", "nak") == 1 })
	// The first copy is stored after all: that is enough.
	e.source.Stored(first.Reply)
	e.left(0)
	e.source.Dropped(second.Reply)
	e.publish("logs.web", `{"msg":"b"}`)
	if r := m.await(t, 3)[2]; !strings.Contains(string(r.Data), `"b"`) {
		t.Errorf("%s came again", r.Data)
	}
}

// At the end, messages that were pulled and not accepted go to another ingester, long
// before their acknowledgement wait is over.
func TestNakOnShutdown(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for range 100 {
		e.publish("logs.web", `{"msg":"a"}`)
	}
	full := &memory{refuse: func(n int) error {
		if n > 10 {
			return record.ErrFull
		}
		return nil
	}}
	e.run(full)
	full.await(t, 10)
	testkit.Until(t, "the log is full", func() bool { return e.value("blobtail_nats_full_total", "") > 0 })
	e.stop()

	m := &memory{}
	e.run(m)
	m.await(t, 90)
}

// A full log stops the pulls; nothing is lost or delivered twice, however long it is
// full.
func TestFull(t *testing.T) {
	t.Parallel()
	unhurried(t, time.Second, full)
}

func full(t *testing.T, wait time.Duration) error {
	e := newEnv(t)
	var full atomic.Bool
	full.Store(true)
	m := &memory{refuse: while(&full)}
	e.run(m, ackWait(wait))
	n := testkit.Share(100, 40)
	big := strings.Repeat("x", 500<<10) // far more than one pull may fetch
	for i := range n {
		e.publish("logs.web", fmt.Sprintf(`{"msg":"%d %s"}`, i, big))
	}
	time.Sleep(wait * 3 / 2)
	c := e.consumer()
	if c.NumAckPending > 20 {
		t.Errorf("%d messages pulled while the log is full", c.NumAckPending)
	}
	if c.NumRedelivered > 0 {
		return fmt.Errorf("%d redelivered while the log is full", c.NumRedelivered)
	}
	m.mu.Lock()
	m.stored = func(reply string) { e.source.Stored(reply) }
	m.mu.Unlock()
	full.Store(false)
	e.left(0)
	seen := map[string]bool{}
	for _, r := range m.await(t, n) {
		number, _, _ := strings.Cut(linesOf(t, &r)[0].Msg, " ")
		seen[number] = true
	}
	if len(seen) != n {
		t.Errorf("%d different messages taken, of %d", len(seen), n)
	}
	return nil
}

// The end of the log ends the source.
func TestLogFailed(t *testing.T) {
	e := newEnv(t)
	e.publish("logs.web", `{"msg":"a"}`)
	s, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("fsync failed")
	if err := s.Run(t.Context(), &memory{refuse: func(int) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	s.Close(t.Context())
}

// Messages wait in the stream while the disk of the log refuses them, by any error, and Run goes
// on: its end is that of the process. Those of other partitions are taken meanwhile, if their
// records can be.
func TestDiskRefuses(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"quota": syscall.EDQUOT, "device": syscall.EIO, "read only": syscall.EROFS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			var broken atomic.Bool
			broken.Store(true)
			m := &memory{refuse: func(int) error {
				if broken.Load() {
					return fmt.Errorf("append to the log: wal: append to segment 11: %w", &os.PathError{Op: "write", Path: "11.wal", Err: cause})
				}
				return nil
			}}
			e.run(m)
			e.publish("logs.web", `{"msg":"a"}`)
			testkit.Until(t, "the message was tried again", func() bool {
				return e.value("blobtail_nats_full_total", "") > 3 && strings.Contains(e.log.String(), "messages wait in the stream")
			})
			broken.Store(false)
			e.source.Stored(m.await(t, 1)[0].Reply)
			e.left(0)
			if n := e.value("blobtail_nats_redelivered_total", ""); n != 0 {
				t.Errorf("%v messages were delivered again", n)
			}
		})
	}
}

// A picky log does not take requests of some services.
type picky struct {
	*memory
	refuses func(service string) bool
}

func (p picky) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if p.refuses(r.Services[0]) {
		return record.Receipt{}, fmt.Errorf("%w: the store does not answer", record.ErrUnheld)
	}
	return p.memory.Accept(ctx, r)
}

// Messages that cannot be taken now stop no partition but their own.
func TestRefusedAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(8))
	s, err := e.open(partitions(0, 1, 2, 3, 4, 5, 6, 7))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stuck := map[string]bool{}
	go func() {
		ended <- s.Run(ctx, picky{m, func(service string) bool { return strings.HasPrefix(service, "old") }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close(context.Background())
	})
	of := func(name string) string {
		s, err := e.js.Stream(t.Context(), "LOGS")
		if err != nil {
			t.Fatal(err)
		}
		last, err := s.GetMsg(t.Context(), e.publish("logs."+name, `{"msg":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(last.Subject, ".")[1]
	}
	for i := 0; len(stuck) < 6; i++ { // more than there are readers
		stuck[of(fmt.Sprint("old", i))] = true
	}
	testkit.Until(t, "they wait", func() bool { return e.value("blobtail_nats_full_total", "") > 20 })
	free := 0
	for i := 0; free == 0; i++ {
		if !stuck[of(fmt.Sprint("new", i))] {
			free++
		}
	}
	m.await(t, 1)
}

// Large messages do not overrun the connection: the server closes one if it has to
// send more than 64 MiB at once.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	n := testkit.Share(200, 90)
	payload := make([]byte, 900<<10)
	for i := range payload {
		payload[i] = byte('a' + rand.IntN(26))
	}
	for i := range n {
		copy(payload, fmt.Sprintf("%04d ", i))
		if _, err := e.js.Publish(t.Context(), "logs.web", payload); err != nil {
			t.Fatal(err)
		}
	}
	m := &memory{refuse: func(int) error { time.Sleep(2 * time.Millisecond); return nil }}
	e.run(m)
	for i, r := range m.await(t, n) {
		if got := string(r.Data[r.Lines[0].Off:][:200]); !strings.Contains(got, fmt.Sprintf(`"%04d `, i)) {
			t.Fatalf("message %d is %s", i, got)
		}
		e.source.Stored(r.Reply)
	}
	e.left(0)
	if n := e.value("blobtail_nats_redelivered_total", ""); n != 0 || strings.Contains(e.log.String(), "lost the connection") {
		t.Errorf("%v redelivered; %s", n, e.log)
	}
}

// A message larger than a pull is pulled alone.
func TestMessageLargerThanAPull(t *testing.T) {
	t.Parallel()
	e := &env{t: t, log: &syncBuffer{}}
	e.nats = testenv.StartNATS(t, patient, func(o *server.Options) { o.MaxPayload = 20 << 20 })
	e.conn, e.js = e.nats.Connect()
	create(t, e.js, testenv.Stream("LOGS"))
	for i, size := range []int{10, 9 << 20, 10, 7 << 20, 8 << 20, 12 << 20, 12 << 20, 10} {
		e.publish("logs.web", fmt.Sprintf(`{"msg":"%d"}`, i)+strings.Repeat("\n", size))
	}
	m := &memory{}
	e.run(m)
	for i, r := range m.await(t, 8) {
		if got := linesOf(t, &r)[0].Msg; got != fmt.Sprint(i) {
			t.Errorf("message %d is %s", i, got)
		}
		e.source.Stored(r.Reply)
	}
	e.left(0)
}

// The acknowledgements of many small messages do not wait for each other.
func TestThroughput(t *testing.T) {
	n := testkit.Portion(100_000, 20_000, 4000)
	e := newEnv(t)
	js, err := jetstream.New(e.conn, jetstream.WithPublishAsyncMaxPending(n))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := js.PublishAsync("logs.web", fmt.Appendf(nil, `{"ts":"2026-11-20T10:00:00Z","level":"info","msg":"request %d","status":200}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	var count atomic.Int64
	m := &memory{}
	m.stored = func(reply string) {
		count.Add(1)
		m.requests = nil
		e.source.Stored(reply)
	}
	begun, used := time.Now(), testkit.CPU()
	e.run(m)
	testkit.Until(t, "all taken", func() bool { return count.Load() >= int64(n) })
	taken := time.Since(begun)
	e.left(0)
	t.Logf("%d messages taken in %v, acknowledged in %v, CPU %v with the server", n, taken, time.Since(begun), testkit.CPU()-used)
	e.stop()
	if got := e.value("blobtail_nats_settled_total", "ack"); got != float64(n) || count.Load() != int64(n) {
		t.Errorf("%d taken, %v acknowledged, of %d", count.Load(), got, n)
	}
}

// The metrics report how far ingestion lags behind the stream.
func TestLag(t *testing.T) {
	e := newEnv(t)
	for range 3 {
		e.publish("logs.web", `{"msg":"a"}`)
	}
	s, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if n := e.value("blobtail_nats_lag_messages", ""); n != 3 {
		t.Errorf("lag %v", n)
	}
	if n := e.value("blobtail_nats_ready", ""); n != 1 {
		t.Errorf("ready %v", n)
	}
	e.nats.Stop()
	testkit.Until(t, "not ready", func() bool { return e.value("blobtail_nats_ready", "") == 0 })
}
