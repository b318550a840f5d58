package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/storage"
)

// A latency is how long a request takes, seen from this host.
type latency struct {
	name              string
	median, p90, most time.Duration
}

const measured = 21

// tryLatencies measures each kind of request, one after the other.
func (t *try) tryLatencies(ctx context.Context) (string, error) {
	body := bytes.Repeat([]byte("a line of some words\n"), 200) // 4 KB
	table := t.tables + "latencies"
	key := func(i int) string { return fmt.Sprintf("latencies/%03d", i) }
	for _, m := range []struct {
		name string
		do   func(i int) error
	}{
		{"PUT of 4 KB, conditional", func(i int) error { return t.store.Create(ctx, key(i), body, storage.Attrs{}) }},
		{"GET of 4 KB", func(i int) error { _, err := t.read(ctx, key(i), 0, -1); return err }},
		{"HEAD", func(i int) error { _, err := t.store.Stat(ctx, key(i)); return err }},
		{"LIST of 21 names with metadata", func(int) error { _, err := t.names(ctx, "latencies/"); return err }},
		{"transaction of 10 rows", func(i int) error { return t.store.Upsert(ctx, table, "p", numbered(10*i, 10)) }},
		{"scan of 10 rows", func(i int) error { return last(t.store.Scan(ctx, table, "p", fmt.Sprintf("%06d", 10*i), "", 10)) }},
	} {
		var all []time.Duration
		for i := range measured {
			begun := time.Now()
			if err := m.do(i); err != nil {
				return "", fmt.Errorf("%s: %w", m.name, err)
			}
			all = append(all, time.Since(begun))
		}
		slices.Sort(all)
		t.facts.latencies = append(t.facts.latencies, latency{m.name, all[measured/2], all[measured*9/10], all[measured-1]})
	}
	first := t.facts.latencies[0]
	return fmt.Sprintf("%d of each; PUT %s (median)", measured, ms(first.median)), nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// tryContracts runs the tests of the storage contracts of the project, each in a container and in
// tables of its own.
func (t *try) tryContracts(ctx context.Context) (string, error) {
	if t.o.tests == "" {
		return "", skip("-tests names no tests (go test -c ./storage/azure)")
	}
	cmd := exec.CommandContext(ctx, t.o.tests, "-test.run", "^TestAccount$", "-test.v", "-test.timeout", "15m", "-test.short")
	cmd.Env, cmd.Dir = t.environ("BLOBTAIL_TRY_CONTAINER="+t.container, "BLOBTAIL_TRY_TABLES="+t.tables), t.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	apart(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil && errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	count := func(word string) int {
		return len(regexp.MustCompile(`(?m)^ +--- `+word+`: TestAccount/\w+/\w+ `).FindAllString(out.String(), -1))
	}
	passed, bad, left := count("PASS"), count("FAIL"), count("SKIP")
	if err != nil || bad > 0 || passed == 0 {
		var lines []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "_test.go:") || strings.Contains(line, "storagetest") || strings.Contains(line, "--- FAIL: TestAccount/") {
				lines = append(lines, oneLine(line))
			}
		}
		return "", fmt.Errorf("%d tests passed, %d failed: %.1500s (%v)", passed, bad, strings.Join(lines, " | "), err)
	}
	return fmt.Sprintf("%d tests of package storagetest passed; %d are not for this driver", passed, left), nil
}
