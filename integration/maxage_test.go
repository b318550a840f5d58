package integration_test

import (
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// An ingester that readers can ask stores later than one that they may not know. A request that
// waits until it is stored does not wait for that: its blob is made within two seconds.
func TestMaxAgeByReaders(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags []string
		want  float64 // seconds
	}{
		"asked":                   {nil, 600},
		"perhaps unknown":         {[]string{"--announce", "best-effort"}, 300},
		"set":                     {[]string{"--flush-max-age", "7m"}, 420},
		"advertised, and unknown": {[]string{"--advertise", "http://127.0.0.1:1", "--announce", "best-effort"}, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, _ := dirStore(t)
			p := start(t, at, t.TempDir(), row.flags...)
			if age := p.metric("blobtail_flush_max_age_seconds"); age != row.want {
				t.Errorf("stores after %v s, want %v", age, row.want)
			}
			p.mustPost("/ingest/web", []byte(`{"msg":"x"}`))
			begun := time.Now()
			p.mustPost("/ingest/web", []byte(`{"msg":"y"}`), "Ack", "stored")
			if took := time.Since(begun); took > time.Minute || p.metric("blobtail_blob_records_total") != 2 {
				t.Errorf("stored after %v, with %v records in blobs", took, p.metric("blobtail_blob_records_total"))
			}
		})
	}
}

// A message may wait for its blob for several times as long as its stream waits for an
// acknowledgement. It is not delivered again, because its ingester gives signs of life. These are
// late on a busy machine, so the test repeats with longer waits.
func TestNATSMaxAgeBeyondAckWait(t *testing.T) {
	t.Parallel()
	for wait := 2 * time.Second; ; wait *= 3 {
		again := heldBeyond(t, wait)
		if again == 0 {
			return
		}
		if wait > 15*time.Second {
			t.Fatalf("with a wait of %v %v messages were delivered again", wait, again)
		}
	}
}

// heldBeyond has messages wait for their blob for more than three waits of their stream. It returns
// how many were delivered again.
func heldBeyond(t *testing.T, wait time.Duration) float64 {
	at, _ := dirStore(t)
	server, js := newStream(t)
	p := start(t, at, t.TempDir(), "--nats", server.URL, "--ack-wait", wait.String(), "--flush-max-age", (wait * 7 / 2).String(), "--flush-age", "1h")
	for range 50 {
		if _, err := js.Publish(t.Context(), "logs.web", []byte(`{"msg":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	testkit.Until(t, "every message is acknowledged", func() bool { return messagesLeft(t, js) == 0 })
	if took := time.Since(begun); took < 2*wait {
		t.Errorf("acknowledged after %v, with a wait of %v", took, wait)
	}
	if n := count(t, at, "web"); n != 50 {
		t.Errorf("%d records", n)
	}
	return p.metric("blobtail_nats_redelivered_total") + p.metric("blobtail_buffer_redelivered_total")
}
