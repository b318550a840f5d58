package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
)

// stream is a JetStream stream that ingesters read from.
type stream struct {
	nats *testenv.NATS
	js   jetstream.JetStream
}

// shortStream makes a server with a stream that soon forgets the messages it has
// seen, so that a republished message arrives twice.
func shortStream(t testing.TB) *stream {
	t.Helper()
	s := &stream{nats: testenv.StartNATS(t)}
	_, s.js = s.nats.Connect()
	conf := testenv.Stream("LOGS")
	conf.Duplicates = 200 * time.Millisecond
	if _, err := s.js.CreateStream(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	return s
}

// config returns the part of the configuration that names the stream. Messages that a
// killed process had received but not stored are soon delivered again.
func (s *stream) config() string {
	return fmt.Sprintf("nats: {url: %q, stream: LOGS, consumer: blobtail, ack-wait: 1s}\n", s.nats.URL)
}

// publish publishes bodies until stop is closed. It republishes those that have an
// id: some soon, some later, some because no answer arrived. It publishes the others
// once, even if that fails.
func (s *stream) publish(c *client, stop <-chan struct{}) {
	var again []request
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(c.rand.IntN(40)) * time.Millisecond):
		}
		var r request
		if len(again) > 20 || len(again) > 0 && c.rand.IntN(4) == 0 {
			r, again = again[0], again[1:]
		} else {
			r = c.next()
		}
		m := nats.NewMsg("logs." + strings.TrimPrefix(r.path, "/ingest/"))
		m.Data = r.data
		if len(r.headers) > 0 {
			m.Header.Set(nats.MsgIdHdr, r.headers[1])
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := s.js.PublishMsg(ctx, m)
		cancel()
		if err == nil {
			c.ledger.Acked(r.ids...)
		}
		if len(r.headers) > 0 && (err != nil || c.rand.IntN(3) == 0) {
			again = append(again, r)
		}
	}
}
