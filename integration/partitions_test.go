package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// A stream in use gets partitions and loses them again, as docs/operate/partitions.md says it, while
// messages are published. Ingesters are restarted for it, and one is killed. Each record is read
// once, under its own service, also of messages that are published again.
func TestToPartitionsAndBack(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	server, js := newStream(t)
	transform := func(n int) {
		t.Helper()
		c := testenv.Stream("LOGS")
		c.Duplicates = 200 * time.Millisecond // a message that is published again arrives again
		if n > 0 {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "logs.*",
				Destination: fmt.Sprintf("logs-partition.{{partition(%d,1)}}.{{wildcard(1)}}", n)}
		}
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	transform(0)
	p := newPublisher(t, js)
	walA, walB := t.TempDir(), t.TempDir()
	run := func(wal, partitions string) *ingester {
		flags := []string{"--nats", server.URL, "--ack-wait", "2s", "--lane", map[string]string{walA: "1", walB: "2"}[wal]}
		if partitions != "" {
			flags = append(flags, "--partitions", partitions)
		}
		return start(t, at, wal, flags...)
	}
	again := func(i *ingester, wal, partitions string) *ingester {
		if code, _ := i.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return run(wal, partitions)
	}
	a, b := run(walA, ""), run(walB, "")
	p.some(t)
	a = again(a, walA, "0-1")
	p.some(t)
	b = again(b, walB, "2,3")
	transform(4)
	p.some(t)
	b.kill()
	p.some(t)
	b = run(walB, "1-3")
	p.some(t)
	transform(0)
	p.some(t)
	p.stop()
	empty(t, js, a, b)
	a, b = again(a, walA, ""), again(b, walB, "")
	for i := range 4 {
		if err := js.DeleteConsumer(t.Context(), "LOGS", fmt.Sprint("blobtail-", i)); err != nil {
			t.Error(err)
		}
	}
	p.publish(p.sent)
	p.sent++
	empty(t, js, a, b)
	var got []string
	for line := range bytes.Lines(query(t, at, "*", "-o", "json")) {
		var r struct{ Service, Msg string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Service+"/"+r.Msg)
	}
	slices.Sort(got)
	if want := p.texts(); !slices.Equal(got, want) {
		t.Errorf("%d records are read, want %d, each once", len(got), len(want))
	}
	for _, i := range []*ingester{a, b} {
		i.stop()
	}
}

// A publisher publishes messages with an id, some of them again much later.
type publisher struct {
	t    *testing.T
	js   jetstream.JetStream
	sent int
	end  chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex
}

func newPublisher(t *testing.T, js jetstream.JetStream) *publisher {
	p := &publisher{t: t, js: js, end: make(chan struct{})}
	p.wg.Go(func() {
		for {
			select {
			case <-p.end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			p.mu.Lock()
			n := p.sent
			p.sent++
			p.mu.Unlock()
			p.publish(n)
			if n%3 == 0 {
				p.publish(n / 2)
			}
		}
	})
	return p
}

func (p *publisher) stop() {
	close(p.end)
	p.wg.Wait()
}

func serviceOfMessage(n int) string { return fmt.Sprintf("s%d", n%19) }

func (p *publisher) publish(n int) {
	m := nats.NewMsg("logs." + serviceOfMessage(n))
	m.Data = fmt.Appendf(nil, `{"ts":"2026-11-20T10:00:%02d.%06dZ","msg":"%d"}`, n%60, n, n)
	m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%08x-0000-7000-8000-%012x", 0x019a0000+n, n))
	if _, err := p.js.PublishMsg(p.t.Context(), m); err != nil {
		p.t.Error(err)
	}
}

// some waits until some more messages are published.
func (p *publisher) some(t *testing.T) {
	t.Helper()
	count := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.sent
	}
	had := count()
	testkit.Until(t, "50 more messages", func() bool { return count() >= had+50 })
}

func (p *publisher) texts() (want []string) {
	for n := range p.sent {
		want = append(want, fmt.Sprintf("%s/%d", serviceOfMessage(n), n))
	}
	slices.Sort(want)
	return want
}
