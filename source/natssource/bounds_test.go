package natssource_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testkit"
	"blobtail/source/natssource"
)

// The messages of all partitions together are bounded at an ingester. When some are stored, the rest
// comes.
func TestBoundOfAllPartitions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, inPartitions(4))
	m := &memory{}
	const each, most, pull = 3000, 2000, 4096
	e.run(m, partitions(0, 1, 2, 3), func(o *natssource.Options) { o.Most(most) })
	js, err := jetstream.New(e.conn, jetstream.WithPublishAsyncMaxPending(8*each))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	send := func() {
		for range each {
			for i := range 8 {
				if _, err := js.PublishAsync(fmt.Sprintf("logs.s%d", i), []byte(`{"msg":"a"}`), jetstream.WithStallWait(testkit.Patience)); err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		<-js.PublishAsyncComplete()
	}
	send()
	m.await(t, most)
	time.Sleep(300 * time.Millisecond) // what was asked for arrives, and no more is
	m.mu.Lock()
	have := len(m.requests)
	m.mu.Unlock()
	if have > most+4*pull || have == n { // each asks once more while there are fewer than most
		t.Errorf("%d of %d messages were taken, and none is stored", have, n)
	}
	m.mu.Lock()
	m.stored = e.stored
	taken := m.requests
	m.mu.Unlock()
	for _, r := range taken {
		e.stored(r.Reply)
	}
	e.left(0)
}

// While the log is full, each message of each partition that was asked for has signs of life, also
// those of partitions beyond the number that is decoded at once. So none comes again.
func TestFullWithManyPartitions(t *testing.T) {
	t.Parallel()
	unhurried(t, time.Second, func(t *testing.T, wait time.Duration) error {
		e := newEnv(t, inPartitions(12))
		var full atomic.Bool
		full.Store(true)
		m := &memory{refuse: while(&full)}
		e.run(m, share(0, 1), ackWait(wait))
		m.stored = e.stored
		const n = 300
		for i := range n {
			e.publish(fmt.Sprintf("logs.s%d", i), `{"msg":"a"}`)
		}
		time.Sleep(3 * wait)
		full.Store(false)
		e.left(0)
		if again := e.value("blobtail_nats_redelivered_total", ""); again > 0 || len(m.await(t, n)) != n {
			return fmt.Errorf("%v messages came again", again)
		}
		return nil
	})
}
