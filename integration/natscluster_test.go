package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"

	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// A work queue with three replicas that has partitions from its beginning loses no message that a
// server confirmed, while servers are stopped and started, and an ingester is killed. A message
// without a confirmation is published again, so each is read once.
func TestPartitionsOfCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	seed := newSeed(t)
	d := rand.New(rand.NewPCG(seed, 7))
	for end := time.Now().Add(lasting(t, 5*time.Second)); ; {
		c.fail(d)
		if !time.Now().Before(end) {
			break
		}
	}
	c.settle()
	if lost := c.lost(); len(lost) > 0 {
		t.Errorf("of %d messages that a server confirmed, %d are in no blob: %s", c.sent, len(lost), lost[0])
	}
}

// The same, with a transform that is edited while servers fail. nats-server 2.15.2 loses messages
// then that it confirmed, also with consumers that are not ours, though not in each run. So this
// logs how many, and proves nothing: BLOBTAIL_NATS_EDITS=1.
func TestPartitionsEditedWhileServersFail(t *testing.T) {
	if os.Getenv("BLOBTAIL_NATS_EDITS") == "" {
		t.Skip("it counts what the servers lose: docs/operate/partitions.md")
	}
	c := newCluster(t)
	seed := newSeed(t)
	d := rand.New(rand.NewPCG(seed, 7))
	edits := 0
	for end := time.Now().Add(lasting(t, time.Minute)); time.Now().Before(end); {
		edited := partitionedStream(2 * (edits % 2))
		if _, err := c.js.UpdateStream(testenv.Soon(t), edited); err == nil {
			edits++
		}
		c.fail(d)
	}
	testkit.Until(t, "the stream has partitions again", func() bool {
		_, err := c.js.UpdateStream(testenv.Soon(t), partitionedStream(2))
		return err == nil
	})
	c.settle()
	lost := c.lost()
	t.Logf("after %d edits, of %d messages that a server confirmed, %d are in no blob: %v", edits, c.sent, len(lost), lost)
}

// partitionedStream is the stream of deploy/nats with n partitions; 0: without a transform.
func partitionedStream(n int) jetstream.StreamConfig {
	c := testenv.Stream("LOGS")
	c.Replicas, c.Duplicates = 3, 30*time.Minute
	if n > 0 {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "logs.*",
			Destination: fmt.Sprintf("logs-partition.{{partition(%d,1)}}.{{wildcard(1)}}", n)}
	}
	return c
}

// A cluster has three servers, a publisher, and two ingesters that take a partition each.
type cluster struct {
	t         *testing.T
	at        place
	servers   []*testenv.NATS
	js        jetstream.JetStream
	ingesters []*ingester
	again     []func() *ingester
	sent      int
	publisher sync.WaitGroup
	end       chan struct{}
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, servers: testenv.StartCluster(t, 3), end: make(chan struct{})}
	c.at, _ = dirStore(t)
	urls := c.servers[0].URL + "," + c.servers[1].URL + "," + c.servers[2].URL
	conn, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if c.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the servers make the stream", func() bool {
		_, err := c.js.CreateStream(testenv.Soon(t), partitionedStream(2))
		return err == nil
	})
	for i := range 2 {
		wal := t.TempDir()
		c.again = append(c.again, func() *ingester {
			return start(t, c.at, wal, "--nats", urls, "--ack-wait", "2s", "--partitions", fmt.Sprint(i), "--lane", fmt.Sprint(i+1))
		})
		c.ingesters = append(c.ingesters, c.again[i]())
	}
	c.publisher.Go(c.publish)
	return c
}

// publish publishes messages one after another, each until a server confirms it.
func (c *cluster) publish() {
	for ; ; c.sent++ {
		select {
		case <-c.end:
			return
		case <-time.After(2 * time.Millisecond):
		}
		m := nats.NewMsg("logs." + serviceOfMessage(c.sent))
		m.Data = fmt.Appendf(nil, `{"ts":"2026-11-20T10:00:%02d.%06dZ","msg":"%d"}`, c.sent%60, c.sent, c.sent)
		m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%08x-0000-7000-8000-%012x", 0x019a0000+c.sent, c.sent))
		for c.t.Context().Err() == nil {
			if _, err := c.js.PublishMsg(testenv.Soon(c.t), m); err == nil {
				break
			}
		}
	}
}

// fail stops a server for a while, and now and then kills an ingester meanwhile.
func (c *cluster) fail(d *rand.Rand) {
	server := c.servers[d.IntN(3)]
	server.Stop()
	time.Sleep(time.Duration(d.IntN(1500)) * time.Millisecond)
	if i := d.IntN(4); i < 2 {
		c.ingesters[i].kill()
		c.ingesters[i] = c.again[i]()
	}
	server.Start()
	time.Sleep(time.Duration(d.IntN(1500)) * time.Millisecond)
}

// settle ends the publisher, and waits until the stream is empty, but for what a server lost.
func (c *cluster) settle() {
	close(c.end)
	c.publisher.Wait()
	testkit.Until(c.t, "every message is acknowledged", func() bool {
		for _, i := range c.ingesters {
			i.mustFlush()
		}
		s, err := c.js.Stream(testenv.Soon(c.t), "LOGS")
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
}

// lost returns the messages that are not read. One that is read twice fails the test.
func (c *cluster) lost() (lost []string) {
	times := map[string]int{}
	for line := range bytes.Lines(query(c.t, c.at, "*", "-o", "json")) {
		var r struct{ Service, Msg string }
		if err := json.Unmarshal(line, &r); err != nil {
			c.t.Fatal(err)
		}
		times[r.Service+"/"+r.Msg]++
	}
	for n := range c.sent {
		name := fmt.Sprintf("%s/%d", serviceOfMessage(n), n)
		switch times[name] {
		case 0:
			lost = append(lost, name)
		case 1:
		default:
			c.t.Errorf("%s is read %d times", name, times[name])
		}
	}
	return lost
}
