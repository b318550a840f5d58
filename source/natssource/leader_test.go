package natssource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// A consumer without a leader stops its own partition: the others are taken and acknowledged, at a
// start too. Its messages are acknowledged once it has a leader again. Its stream has three
// replicas and the consumer has one, at a server that is stopped.
func TestConsumerWithoutLeader(t *testing.T) {
	t.Parallel()
	servers := testenv.StartCluster(t, 3)
	e := &env{t: t, nats: servers[0], log: &syncBuffer{}}
	e.conn, e.js = e.nats.Connect()
	c := testenv.Stream("LOGS")
	c.Replicas, c.Retention = 3, jetstream.LimitsPolicy // a work queue wants the consumers to have three too
	inPartitions(2)(&c)
	testkit.Until(t, "the servers make the stream", func() bool {
		_, err := e.js.CreateStream(testenv.Soon(t), c)
		return err == nil
	})
	atServer := func(name, filter, server string) {
		t.Helper()
		testkit.Until(t, name+" is at "+server, func() bool {
			made, err := e.js.CreateConsumer(testenv.Soon(t), "LOGS", jetstream.ConsumerConfig{Durable: name,
				AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: filter, Replicas: 1})
			if err == nil && made.CachedInfo().Cluster.Leader == server {
				return true
			}
			_ = e.js.DeleteConsumer(testenv.Soon(t), "LOGS", name)
			return false
		})
	}
	atServer("blobtail-0", "logs-partition.0.>", "test-2")
	atServer("blobtail-1", "logs-partition.1.>", "test-0")
	atServer("blobtail", "logs.>", "test-0")
	m := &memory{}
	e.run(m, partitions(0, 1), ackWait(2*time.Second))
	service := e.servicesByPartition(2)
	publish := func(partition, n int) {
		t.Helper()
		for i := range n {
			testkit.Until(t, "a message is published", func() bool {
				_, err := e.js.Publish(testenv.Soon(t), "logs."+service[partition], fmt.Appendf(nil, `{"msg":"%d"}`, i))
				return err == nil
			})
		}
	}
	publish(0, 1)
	first := m.await(t, 3)
	servers[2].Stop()
	stored := map[string]bool{}
	for i := range 10 {
		publish(1, 1)
		testkit.Until(t, fmt.Sprintf("message %d of the other partition is acknowledged", i), func() bool {
			for _, r := range m.await(t, 3) {
				if r.Services[0] == service[1] && !stored[r.Reply] {
					stored[r.Reply] = true
					e.source.Stored(r.Reply)
				}
			}
			info, err := e.js.Consumer(testenv.Soon(t), "LOGS", "blobtail-1")
			return err == nil && len(stored) > i+1 && info.CachedInfo().NumAckPending == 0
		})
	}
	for _, r := range first {
		if r.Services[0] == service[0] {
			e.source.Stored(r.Reply)
		}
	}
	testkit.Until(t, "operators learn of it", func() bool {
		return e.value("blobtail_nats_ready", "") == 0 && strings.Contains(e.log.String(), "consumer blobtail-0 of stream LOGS")
	})
	second := &memory{}
	o := e.another(second, partitions(0, 1), ackWait(2*time.Second), within(time.Second)) // one that starts now takes what it can
	testkit.Until(t, "an ingester that started meanwhile takes a message", func() bool {
		publish(1, 1)
		second.mu.Lock()
		defer second.mu.Unlock()
		return len(second.requests) > 0
	})
	servers[2].Start()
	testkit.Until(t, "its messages are acknowledged", func() bool {
		storedAll(e, m, service[0])
		storedAll(o, second, service[0])
		info, err := e.js.Consumer(testenv.Soon(t), "LOGS", "blobtail-0")
		return err == nil && info.CachedInfo().NumAckPending == 0 && info.CachedInfo().NumPending == 0
	})
	testkit.Until(t, "all is well again", func() bool { return e.value("blobtail_nats_ready", "") == 1 })
}

// storedAll reports the messages of a service as stored.
func storedAll(e *env, m *memory, service string) {
	m.mu.Lock()
	requests := append([]record.Request(nil), m.requests...)
	m.mu.Unlock()
	for _, r := range requests {
		if r.Services[0] == service {
			e.source.Stored(r.Reply)
		}
	}
}

// servicesByPartition publishes until it knows a service of each of n partitions.
func (e *env) servicesByPartition(n int) []string {
	e.t.Helper()
	found := make([]string, n)
	stream, err := e.js.Stream(e.t.Context(), "LOGS")
	if err != nil {
		e.t.Fatal(err)
	}
	for i, missing := 0, n; missing > 0; i++ {
		name := fmt.Sprint("s", i)
		m, err := stream.GetMsg(e.t.Context(), e.publish("logs."+name, `{"msg":"a"}`))
		if err != nil {
			e.t.Fatal(err)
		}
		var p int
		if _, err := fmt.Sscanf(m.Subject, "logs-partition.%d.", &p); err != nil {
			e.t.Fatal(err)
		}
		if found[p] == "" {
			found[p] = name
			missing--
		}
	}
	return found
}
