package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"blobtail/config"
	"blobtail/heartbeat"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

// What is given up is said; who is not silent, or not there, is not forgotten.
func TestForget(t *testing.T) {
	root := t.TempDir()
	run := func(id string) (code int, stdout, stderr string) {
		c := config.Default()
		c.Store = "dir:" + root
		var out, err bytes.Buffer
		code = forget(c, id, &out, &err)
		return code, out.String(), err.String()
	}
	if _, err := dir.Open(root, dir.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	announce(t, root, "0badcafe", 0)
	announce(t, root, "deadbeef", 2*time.Hour)
	if code, out, err := run("0badcafe"); code != exitFailed || out != "" || !strings.Contains(err, "ingest: not forgotten: ingester 0badcafe: it announced itself") {
		t.Errorf("one that is alive: %d %s%s", code, out, err)
	}
	if code, _, err := run("00000000"); code != exitFailed || !strings.Contains(err, "there is no such ingester; there is: 0badcafe, deadbeef") {
		t.Errorf("one that is not there: %d %s", code, err)
	}
	code, out, err := run("deadbeef")
	if code != exitOK || err != "" || !strings.Contains(out, `ingester deadbeef on b\x1b is forgotten; it was last seen 20`) || !strings.Contains(out, "given up: what it took since 20") {
		t.Errorf("%d %s%s", code, out, err)
	}
	if code, _, err := run("deadbeef"); code != exitFailed || !strings.Contains(err, "it was forgotten at 20") {
		t.Errorf("a second time: %d %s", code, err)
	}
	root += "/nowhere"
	if code, _, err := run("deadbeef"); code != exitFailed || !strings.Contains(err, "open the store") {
		t.Errorf("no store: %d %s", code, err)
	}
}

// announce writes the row of an ingester that was last heard of so long ago.
func announce(t *testing.T, root, id string, ago time.Duration) {
	t.Helper()
	s, err := tables.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := heartbeat.New(s, heartbeat.Options{
		Identity: heartbeat.Identity{ID: id}, Host: "b\x1b",
		Now:    func() time.Time { return time.Now().Add(-ago) },
		Oldest: func() (time.Time, bool) { return time.Now().Add(-time.Minute), true },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	<-a.First()
	cancel()
	<-done
}
