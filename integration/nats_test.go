package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// newStream starts a server and makes the stream LOGS on it.
func newStream(t testing.TB) (*testenv.NATS, jetstream.JetStream) {
	t.Helper()
	server := testenv.StartNATS(t)
	_, js := server.Connect()
	if _, err := js.CreateStream(t.Context(), testenv.Stream("LOGS")); err != nil {
		t.Fatal(err)
	}
	return server, js
}

// messagesLeft returns the number of unacknowledged messages.
func messagesLeft(t testing.TB, js jetstream.JetStream) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), "LOGS")
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// empty flushes the ingesters until every message is acknowledged.
func empty(t testing.TB, js jetstream.JetStream, all ...*ingester) {
	t.Helper()
	testkit.Until(t, "every message is acknowledged", func() bool {
		for _, p := range all {
			p.mustFlush()
		}
		return messagesLeft(t, js) == 0
	})
}

// loghubMessages makes messages of the bodies, in each supported form.
func loghubMessages(t testing.TB, bodies []body) []*nats.Msg {
	t.Helper()
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*nats.Msg
	for i, b := range bodies {
		service := strings.TrimPrefix(b.path, "/ingest")
		if service = strings.TrimPrefix(service, "/"); service == "" {
			service = loghubService(t, b.data)
		}
		m := nats.NewMsg("logs." + service + ".node-1")
		m.Data = b.data
		if i%3 == 0 {
			m.Subject = "logs.any"
			m.Header.Set("Blobtail-Service", service)
		}
		if i%2 == 0 {
			m.Data = zw.EncodeAll(b.data, nil)
			m.Header.Set("Content-Encoding", "zstd")
		}
		if i%4 == 0 {
			m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%08x-0000-7000-8000-%012x", 0x019a0000+i, i))
		}
		all = append(all, m)
	}
	return all
}

// loghubService returns the service that the records of a body name.
func loghubService(t testing.TB, data []byte) string {
	t.Helper()
	_, rest, ok := bytes.Cut(data, []byte(`"service":`))
	name, _, found := bytes.Cut(bytes.TrimLeft(rest, ` "`), []byte(`"`))
	if !ok || !found {
		t.Fatalf("no service in %.200s", data)
	}
	return string(name)
}

// Real logs come back as they were published, and once, through either of two
// ingesters, though one is killed twice.
func TestLoghubNATS(t *testing.T) {
	t.Parallel()
	mostlyDir(t, func(t *testing.T, at place) {
		bodies := loghubBodies(t)
		want := wantLoghub(t, bodies)
		server, js := newStream(t)
		messages := loghubMessages(t, bodies)
		publish := func(some []*nats.Msg) {
			for _, m := range some {
				if _, err := js.PublishMsg(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		wal := t.TempDir()
		flags := []string{"--nats", server.URL, "--ack-wait", "2s"}
		half := len(messages) / 2
		publish(messages[:half])
		p := start(t, at, wal, flags...)
		q := start(t, at, t.TempDir(), append(flags, "--lane", "7")...)
		publish(messages[half:])
		p.kill()
		p = start(t, at, wal, flags...)
		p.mustFlush()
		p.kill()
		p = start(t, at, wal, flags...)
		empty(t, js, p, q)
		compareLoghub(t, query(t, at, "*", "-o", "json"), want)
		for _, i := range []*ingester{p, q} {
			if code, _ := i.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		}
	})
}

// A stop gives unstored messages back, so that another ingester has them at once.
func TestStopNATS(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	server, js := newStream(t)
	for i := range 100 {
		if _, err := js.Publish(t.Context(), "logs.web", fmt.Appendf(nil, `{"msg":"%d"}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, at, t.TempDir(), "--nats", server.URL)
	testkit.Until(t, "all messages are taken", func() bool { return p.metric(`blobtail_nats_records_total{result="accepted"}`) == 100 })
	if code, _ := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left := messagesLeft(t, js); left != 0 {
		t.Errorf("%d messages are not acknowledged", left)
	}
	if n := count(t, at, "*"); n != 100 {
		t.Errorf("%d records", n)
	}
}

// If a stream can lose messages, the start fails and prints the command that fixes
// the stream. If the server is unreachable, the ingester still serves HTTP.
func TestStartNATS(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	server := testenv.StartNATS(t)
	_, js := server.Connect()
	refused := func(want string) {
		t.Helper()
		p := launch(t, at, filepath.Join(t.TempDir(), "wal"), "--nats", server.URL)
		<-p.Exited
		if p.Cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.Log(), want) {
			t.Errorf("%v: %s", p.Cmd.ProcessState, p.Log())
		}
	}
	refused("nats stream add LOGS")
	lossy := testenv.Stream("LOGS")
	lossy.Discard, lossy.MaxBytes = jetstream.DiscardOld, 1<<20
	if _, err := js.CreateStream(t.Context(), lossy); err != nil {
		t.Fatal(err)
	}
	refused("nats stream edit LOGS --discard new")

	server.Stop()
	wal := t.TempDir()
	p := start(t, at, wal, "--nats", server.URL)
	if a := p.mustPost("/ingest/web", []byte(`{"msg":"over http"}`)); a.Accepted != 1 {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(wal); err != nil {
		t.Error(err)
	}
	server.Start()
	lossy.Discard = jetstream.DiscardNew
	_, js = server.Connect()
	if _, err := js.UpdateStream(t.Context(), lossy); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "logs.web", []byte(`{"msg":"over nats"}`)); err != nil {
		t.Fatal(err)
	}
	empty(t, js, p)
	if n := count(t, at, "web"); n != 2 {
		t.Errorf("%d records", n)
	}
}
