package testenv

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A NATS is a server with JetStream in this process. It can be stopped and started
// again on the same port and directory.
type NATS struct {
	// URL is for clients.
	URL string

	t       testing.TB
	options server.Options
	server  *server.Server
}

// StartNATS starts a server on a free port of loopback that keeps its streams in a
// directory of the test, and ends with it. The change functions may change its
// options first.
func StartNATS(t testing.TB, change ...func(*server.Options)) *NATS {
	t.Helper()
	n := &NATS{t: t, options: server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	}}
	for _, f := range change {
		f(&n.options)
	}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Start starts the server, on its previous port.
func (n *NATS) Start() {
	n.t.Helper()
	options := n.options // a copy, because the server keeps the pointer
	s, err := server.NewServer(&options)
	if err != nil {
		n.t.Fatal(err)
	}
	s.Start()
	n.server = s
	if !s.ReadyForConnections(startTimeout) {
		n.t.Fatal("the NATS server is not ready in time")
	}
	n.options.Port = s.Addr().(*net.TCPAddr).Port
	n.URL = s.ClientURL()
}

// Stop stops the server, if it runs, and waits for its end.
func (n *NATS) Stop() {
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.server = nil
	}
}

// Map adds a mapping of subjects, as the line mappings of a server's configuration does, until the
// server is stopped.
func (n *NATS) Map(from, to string) {
	n.t.Helper()
	if err := n.server.GlobalAccount().AddMapping(from, to); err != nil {
		n.t.Fatal(err)
	}
}

// Connect connects a client, which is closed at the end of the test.
func (n *NATS) Connect() (*nats.Conn, jetstream.JetStream) {
	n.t.Helper()
	conn, err := nats.Connect(n.URL, nats.Timeout(startTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(startTimeout))
	if err != nil {
		n.t.Fatal(err)
	}
	return conn, js
}

// Stream returns the configuration of a stream as the source wants it, for tests to
// change.
func Stream(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{"logs.>"}, Storage: jetstream.FileStorage,
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
	}
}
