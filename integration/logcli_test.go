package integration_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// webRequests are n records of a service, from a time on, each a millisecond after the one
// before. Their messages count from first.
func webRequests(service string, from time.Time, first, n int) []byte {
	var b []byte
	for i := range n {
		at := from.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		b = fmt.Appendf(b, `{"time":%q,"level":"%s","message":"%s request %d","status":%d}`+"\n", at, []string{"info", "info", "error"}[i%3], service, first+i, 200+i%2*302)
	}
	return b
}

// logcliBegin is the time of the first records that the recorded requests of logcli are about.
var logcliBegin = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// The command of Loki gets all that logquery gets: records in blobs and in logs, their counts,
// labels, volumes, and fields. Its recorded requests get the answers that it got, in a form that it
// reads. Then it would print the same lines, and ask for the same next page.
func TestLogcli(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	post := func(service string, from time.Time, first, n int) {
		if code, _, _, err := p.post("/ingest/"+service, webRequests(service, from, first, n)); code != 200 && code != 202 {
			t.Fatalf("%d %v", code, err)
		}
	}
	post("web", logcliBegin, 0, 7000)
	post("orders", logcliBegin, 0, 500)
	if code, _, err := p.flush(""); code != 200 {
		t.Fatalf("%d %v", code, err)
	}
	post("web", logcliBegin.Add(time.Hour), 7000, 500) // in the log only
	s := serve(t, at)
	commands, forms := logcliCommands(t), logcliForms(t)
	if len(commands) < 60 || len(forms) < 10 {
		t.Fatalf("%d commands and %d forms, want 60 and 10", len(commands), len(forms))
	}
	for _, c := range commands {
		if len(c.requests) == 0 {
			t.Errorf("%s: no request", c.line)
		}
		lines := s.replay(t, c, forms)
		if n, err := strconv.Atoi(c.lines()); err == nil && !strings.Contains(c.line, "line_format") && len(lines) != n {
			t.Errorf("%s: %d different lines, logcli printed %d", c.line, len(lines), n)
		}
	}
	logcliCounts(t, at, commands)
}

// logcliCounts ensures that the numbers in the recorded answers are those of logquery.
func logcliCounts(t *testing.T, at place, commands []logcliCommand) {
	t.Helper()
	for _, c := range []struct {
		query string
		count []string // the same for logquery
	}{
		{`{service_name="web"}`, []string{"web"}},
		{`{service_name="web"} |= "request 1"`, []string{"web", "-F", "request 1"}},
		{`{service_name=~".+"} | level="error"`, []string{"*", "-l", "error"}},
		{`{service_name="web"} | status > 500`, []string{"web", "--where", "status > 500"}},
		{`{service_name="orders"} |~ "request 4.9"`, []string{"orders", "-g", "request 4.9"}},
	} {
		args := append(c.count, "--count", "--from", logcliBegin.Format(time.RFC3339), "--to", logcliBegin.Add(2*time.Hour).Format(time.RFC3339))
		out, stderr, code := logquery(t, at, args...)
		if code != 0 {
			t.Fatalf("logquery %q exits %d: %s", args, code, stderr)
		}
		want, found := strings.TrimSpace(string(out)), 0
		for _, command := range commands {
			var got string
			switch {
			case strings.HasSuffix(command.line, "--limit=100000 --output=raw "+c.query):
				got = command.lines()
			case strings.HasSuffix(command.line, " sum(count_over_time("+c.query+"[2h]))"):
				_, got, _ = strings.Cut(command.requests[0].answer, `"value":[1767614400,"`)
				got, _, _ = strings.Cut(got, `"`)
			default:
				continue
			}
			if found++; got != want {
				t.Errorf("%s: %s, logquery counts %s", command.line, got, want)
			}
		}
		if found != 3 {
			t.Errorf("%d commands of logcli are about %s, want 3", found, c.query)
		}
	}
}

// A tail of the command of Loki shows each line, over restarts of an ingester and of the server.
// It comes again with the time of its last line, by the recorded requests.
func TestLogcliTail(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal)
	s := serve(t, at)
	shown := followAsLogcli(t, s)
	sent := 0
	send := func(n int) {
		for range n {
			line := fmt.Sprintf(`{"message":"line %d."}`+"\n", sent)
			if code, _, _, err := p.post("/ingest/web", []byte(line)); code != 200 && code != 202 {
				t.Fatalf("%d %v", code, err)
			}
			sent++
		}
	}
	arrive := func(event string) {
		testkit.Until(t, event, func() bool { return shown.has(fmt.Sprintf("line %d.", sent-1)) })
	}
	send(20)
	arrive("the tail shows lines")
	p.kill()
	p = start(t, at, wal)
	send(20)
	arrive("the tail goes on over the restart of the ingester")
	s.kill()
	send(20)
	s.start()
	send(20)
	arrive("the tail goes on over the restart of the server")
	for i := range sent {
		if !shown.has(fmt.Sprintf("line %d.", i)) {
			t.Errorf("line %d is not shown", i)
		}
	}
}

// followAsLogcli follows a server by the requests of testdata/logcli/tail.txt, until the test ends.
func followAsLogcli(t *testing.T, s *server) *tailedLines {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "logcli", "tail.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var requests []string
	for line := range strings.Lines(string(data)) {
		if uri, ok := strings.CutPrefix(strings.TrimSpace(line), "GET "); ok {
			requests = append(requests, uri)
		}
	}
	if len(requests) != 2 {
		t.Fatalf("%d requests in tail.txt, want 2", len(requests))
	}
	uri := strings.ReplaceAll(requests[0], "{BEGIN}", strconv.FormatInt(time.Now().Add(-time.Hour).UnixNano(), 10))
	form := logcliForms(t)["tail"]
	shown := &tailedLines{lines: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			_ = s.frame(ctx, t, uri, form, func(lines map[string]bool, last int64) bool { // it comes again
				shown.add(lines)
				uri = strings.ReplaceAll(requests[1], "{LAST}", strconv.FormatInt(last, 10))
				return true
			})
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	return shown
}

// tailedLines are lines that arrive while the test reads.
type tailedLines struct {
	mu    sync.Mutex
	lines map[string]bool
}

func (l *tailedLines) add(lines map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.lines, lines)
}

func (l *tailedLines) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[line]
}
