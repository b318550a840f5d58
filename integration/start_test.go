package integration_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
)

// A second process on one log directory would ruin it. It must refuse at once and
// name the first process.
func TestSecondOnOneLog(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal)
	q := launch(t, at, wal)
	if err := q.waitReady(); err == nil {
		t.Fatal("the second one starts too")
	}
	want := fmt.Sprintf("%s is in use by process %d", wal, p.Cmd.Process.Pid)
	if code := q.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(q.Log(), want) {
		t.Errorf("exit code %d, %s; want 1 and %q", code, q.Log(), want)
	}
	p.mustPost("/ingest/web", []byte(two))
	p.kill() // this releases the lock too
	p = start(t, at, wal)
	p.mustFlush()
	if n := count(t, at, "web"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// A large backlog must not delay a stop, nor the start, when the pressure of new
// records is highest.
func TestBacklog(t *testing.T) {
	at, root := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal, "--dedupe", "off", "--grace", "1s")
	mend := breakDir(t, root, corpus.Services()...)
	const bodies, records = 26, 24_000 // 200 MB of lines
	var b bytes.Buffer
	if _, err := corpus.Write(&b, corpus.Options{Seed: 1, Records: records, Odd: true}); err != nil {
		t.Fatal(err)
	}
	for range bodies {
		p.mustPost("/ingest", b.Bytes())
	}
	easy := p // its log was empty
	if code, took := p.stop(); code != 0 || easy.late(took, 3*time.Second) {
		t.Errorf("SIGTERM with a dead store: exit code %d after %v", code, took)
	}

	p = start(t, at, wal)
	if easy.late(p.startup, 2*time.Second) {
		t.Errorf("ready after %v; with an empty log after %v", p.startup, easy.startup)
	}
	if size := p.metric("blobtail_log_bytes"); size < 200e6 {
		t.Errorf("the log has %v bytes, too few for this to mean anything", size)
	}
	p.mustPost("/ingest/late", []byte(two)) // while it replays
	p.kill()

	p = start(t, at, wal)
	if easy.late(p.startup, 2*time.Second) {
		t.Errorf("ready after %v; with an empty log after %v", p.startup, easy.startup)
	}
	mend()
	p.mustFlush()
	if n := count(t, at, "*"); n != bodies*records+2 {
		t.Errorf("%d records, want %d", n, bodies*records+2)
	}
}
