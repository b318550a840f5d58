package integration_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// Two messages use the same Nats-Msg-Id. The server lets the second one through once
// its window is over. Neither message is lost, though their records have the same
// time. The second one may meet the first in the same batch, in the log, or in a
// blob.
func TestMessageIDUsedTwice(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"nothing", "flush", "kill", "stop"} {
		t.Run(between, func(t *testing.T) {
			t.Parallel()
			at, _ := dirStore(t)
			server := testenv.StartNATS(t)
			_, js := server.Connect()
			c := testenv.Stream("LOGS")
			c.Duplicates = 100 * time.Millisecond
			if _, err := js.CreateStream(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wal, flags := t.TempDir(), []string{config(t, small), "--nats", server.URL, "--ack-wait", "2s"}
			p := start(t, at, wal, flags...)
			publish := func(text string) {
				t.Helper()
				m := nats.NewMsg("logs.web")
				m.Data = []byte(`{"time":"2026-11-20T10:00:00Z","msg":"` + text + `"}`)
				m.Header.Set(nats.MsgIdHdr, "1")
				testkit.Until(t, "the server's window is over", func() bool {
					ack, err := js.PublishMsg(t.Context(), m)
					if err != nil {
						t.Fatal(err)
					}
					return !ack.Duplicate
				})
			}
			publish("f1")
			switch between {
			case "flush":
				p.mustFlush()
			case "kill":
				p.kill()
				p = start(t, at, wal, flags...)
			case "stop":
				p.stop()
				p = start(t, at, wal, flags...)
			}
			publish("f2")
			empty(t, js, p)
			out := query(t, at, "web", "-o", "json")
			if bytes.Count(out, []byte(`"msg":"f1"`)) != 1 || bytes.Count(out, []byte(`"msg":"f2"`)) != 1 {
				t.Errorf("stored:\n%s", out)
			}
			if n := count(t, at, "web"); n != 2 {
				t.Errorf("--count says %d", n)
			}
		})
	}
}
