package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/dir/tables"
)

// announce DIR ID LANE AGO [unflushed|stopped|newer] makes the row of an ingester with
// its last heartbeat so long ago.
func announce() {
	if err := announceIn(os.Args[1], os.Args[2], os.Args[3], os.Args[4], strings.Join(os.Args[5:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func announceIn(root, id, lane, ago, what string) error {
	if _, err := dir.Open(root, dir.Options{Create: true}); err != nil {
		return err
	}
	s, err := tables.Open(root)
	if err != nil {
		return err
	}
	defer s.Close()
	if what == "newer" {
		return s.Upsert(context.Background(), lease.Table, lease.Partition,
			[]storage.Row{{Key: id, Props: map[string]any{"format": int64(2)}}})
	}
	d, err := time.ParseDuration(ago)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(lane)
	if err != nil {
		return err
	}
	a, err := lease.New(s, lease.Options{
		ID: id, Lane: n, Host: "host\x1b[2J", Version: "v1", Address: "http://127.0.0.1:9",
		Now:    func() time.Time { return time.Now().Add(-d) },
		Oldest: func() (time.Time, bool) { return time.Now().Add(-90 * time.Second), what == "unflushed" },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	<-a.First()
	cancel()
	running.Wait()
	if what == "stopped" {
		return a.Stop(context.Background(), true)
	}
	return nil
}

// On a terminal the output is a table without control characters.
func TestIngestersTable(t *testing.T) {
	root, begun := t.TempDir(), time.Now()
	// The command's clock starts at a fixed time, and the row is from five seconds before.
	ago := time.Since(time.Date(2026, 11, 20, 15, 59, 55, 0, time.UTC)).String()
	if err := announceIn(root, "0badcafe", "12", ago, "unflushed"); err != nil {
		t.Fatal(err)
	}
	code, out, errs := terminal(t, root, "ingesters")
	if code != cli.OK || !strings.Contains(out, "oldest unflushed") || strings.Contains(out, "\x1b") || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	row := strings.Join(strings.Fields(lines[len(lines)-1]), " ")
	m := regexp.MustCompile(`^0badcafe live yes 12 (\S+) ago (\S+) ago host\\x1b\[2J http://127\.0\.0\.1:9 v1$`).FindStringSubmatch(row)
	if len(lines) != 2 || m == nil {
		t.Fatalf("%q", lines)
	}
	// The row is later than meant by the time until it was made, and the command's clock goes
	// on from the fixed time. The column has whole seconds.
	late := time.Since(begun) + 500*time.Millisecond
	for i, want := range []time.Duration{95 * time.Second, 5 * time.Second} {
		if got, err := time.ParseDuration(m[1+i]); err != nil || (got-want).Abs() > late {
			t.Errorf("%s ago, %v; want %v", got, err, want)
		}
	}
}
