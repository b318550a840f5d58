package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/lease"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

// forget prints the records given up. It refuses an unknown or a running ingester.
func TestForget(t *testing.T) {
	root := t.TempDir()
	give := func(id string, lost bool, silent time.Duration) (code int, stdout, stderr string) {
		args := []string{"forget", "--store", "dir:" + root}
		if id != "" {
			args = append(args, id)
		}
		if lost {
			args = append(args, "--lost")
		}
		if silent != 0 {
			args = append(args, "--silent", silent.String())
		}
		var out, err bytes.Buffer
		code = command(args, &out, &err)
		return code, out.String(), err.String()
	}
	run := func(id string) (code int, stdout, stderr string) { return give(id, false, 0) }
	if _, err := dir.Open(root, dir.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	announce(t, root, "0badcafe", 0)
	announce(t, root, "deadbeef", 2*time.Hour)
	if code, out, err := run("0badcafe"); code != cli.Failed || out != "" || !strings.Contains(err, "ingest: not forgotten: ingester 0badcafe: it announced itself") {
		t.Errorf("one that is alive: %d %s%s", code, out, err)
	}
	if code, _, err := run("00000000"); code != cli.Failed || !strings.Contains(err, "there is no such ingester; there is: 0badcafe, deadbeef") {
		t.Errorf("one that is not there: %d %s", code, err)
	}
	code, out, err := run("deadbeef")
	if code != cli.OK || err != "" || !strings.Contains(out, `ingester deadbeef on b\x1b is forgotten; it was last seen 20`) || !strings.Contains(out, "given up: what it took since 20") {
		t.Errorf("%d %s%s", code, out, err)
	}
	if code, _, err := run("deadbeef"); code != cli.Failed || !strings.Contains(err, "it was forgotten at 20") {
		t.Errorf("a second time: %d %s", code, err)
	}
	if code, out, err := give("", false, time.Hour); code != cli.OK || err != "" || !strings.Contains(out, "no ingester that may hold records has been silent for 1h") {
		t.Errorf("the silent ones: %d %s%s", code, out, err)
	}
	announce(t, root, "cafecafe", 3*time.Hour)
	if code, out, err := give("", false, 2*time.Hour); code != cli.OK || err != "" || !strings.Contains(out, "ingester cafecafe on") || strings.Contains(out, "0badcafe") {
		t.Errorf("one more that is silent: %d %s%s", code, out, err)
	}
	if code, _, err := give("0badcafe", true, 0); code != cli.Failed || !strings.Contains(err, "it has lost nothing") {
		t.Errorf("no loss: %d %s", code, err)
	}
	if code, _, err := give("", false, 0); code != cli.Usage || !strings.Contains(err, "--silent 24h") {
		t.Errorf("nothing to forget: %d %s", code, err)
	}
	if code, _, err := give("0badcafe", false, time.Hour); code != cli.Usage || !strings.Contains(err, "--silent stands alone") {
		t.Errorf("too much: %d %s", code, err)
	}
	root += "/nowhere"
	if code, _, err := run("deadbeef"); code != cli.Failed || !strings.Contains(err, "open the store") {
		t.Errorf("no store: %d %s", code, err)
	}
}

// announce writes the row of an ingester with its last heartbeat so long ago.
func announce(t *testing.T, root, id string, ago time.Duration) {
	t.Helper()
	announceAt(t, root, id, "", ago)
}

// announceAt is announce for an ingester with an address.
func announceAt(t *testing.T, root, id, address string, ago time.Duration) {
	t.Helper()
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := lease.New(s, lease.Options{
		ID: id, Host: "b\x1b", Address: address,
		Now:    func() time.Time { return time.Now().Add(-ago) },
		Oldest: func() (time.Time, bool) { return time.Now().Add(-time.Minute), true },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	<-a.First()
	cancel()
	<-done
}
