package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/testkit"
)

// logcli runs the command of Loki against a server, and returns its output.
func (s *server) logcli(t testing.TB, args ...string) string {
	t.Helper()
	cmd := s.logcliCmd(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("logcli %q: %v %s", args, err, stderr.String())
	}
	return string(out)
}

func (s *server) logcliCmd(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("LOGCLI"), append([]string{"--addr", s.url, "--quiet"}, args...)...)
	cmd.Env = append(cleanEnv(), "TZ=UTC")
	return cmd
}

// needLogcli skips a test if no logcli is named. `make logcli` builds it.
func needLogcli(t *testing.T) {
	if os.Getenv("LOGCLI") == "" {
		t.Skip("LOGCLI names no logcli; make logcli builds one")
	}
}

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

// The command of Loki shows the same data as logquery: records in blobs and in logs, their counts,
// labels, volumes, and fields.
func TestLogcli(t *testing.T) {
	needLogcli(t)
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	from := time.Now().Add(-2 * time.Hour).Truncate(time.Minute).UTC()
	post := func(service string, from time.Time, first, n int) {
		if code, _, _, err := p.post("/ingest/"+service, webRequests(service, from, first, n)); code != 200 && code != 202 {
			t.Fatalf("%d %v", code, err)
		}
	}
	post("web", from, 0, 7000)
	post("orders", from, 0, 500)
	if code, _, err := p.flush(""); code != 200 {
		t.Fatalf("%d %v", code, err)
	}
	post("web", from.Add(time.Hour), 7000, 500) // in the log only
	s := serve(t, at)
	until := from.Add(2 * time.Hour)
	times := []string{"--from=" + from.Format(time.RFC3339), "--to=" + until.Format(time.RFC3339)}
	ours := func(args ...string) string {
		out, stderr, code := logquery(t, at, append(args, "--from", from.Format(time.RFC3339), "--to", until.Format(time.RFC3339))...)
		if code != 0 {
			t.Fatalf("logquery %q exits %d: %s", args, code, stderr)
		}
		return strings.TrimSpace(string(out))
	}
	with := func(verb string, args ...string) string {
		return s.logcli(t, slices.Concat([]string{verb}, times, args)...)
	}

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
		want := ours(append(c.count, "--count")...)
		for _, flags := range [][]string{{"--batch=1000"}, {"--batch=777", "--forward"}} {
			out := with("query", append(flags, "--limit=100000", "--output=raw", c.query)...)
			got := strings.Split(strings.TrimSpace(out), "\n")
			slices.Sort(got)
			n := len(got)
			if got = slices.Compact(got); strconv.Itoa(n) != want || len(got) != n {
				t.Errorf("logcli has %d lines of %s (%d are different), logquery %s", n, c.query, len(got), want)
			}
		}
		count := s.logcli(t, "instant-query", "--now="+until.Format(time.RFC3339), "sum(count_over_time("+c.query+"[2h]))")
		if !strings.Contains(count, `"`+want+`"`) {
			t.Errorf("logcli counts %s of %s, logquery %s", count, c.query, want)
		}
	}
	logcliLists(t, with)
}

// logcliLists checks the lists that the command prints of the records of TestLogcli.
func logcliLists(t *testing.T, with func(verb string, args ...string) string) {
	t.Helper()
	if got := with("query", "--limit=3", "--forward", "--output=raw", `{service_name="web"}`); got != "web request 0\nweb request 1\nweb request 2\n" {
		t.Errorf("the oldest lines are %q", got)
	}
	for _, c := range []struct{ verb, args, want string }{
		{"labels", "", "level\nservice_name\n"},
		{"labels", "service_name", "orders\nweb\n"},
		{"series", `{service_name=~"w.*"}`, "{service_name=\"web\"}\n"},
		{"stats", `{service_name="web"}`, "entries: 7500"},
		{"stats", `{service_name="orders"}`, "chunks: 1"},
		{"volume", `{service_name=~".+"}`, `"service_name": "web"`},
		{"volume_range", `{service_name="orders"} --step=1h`, `"values": [`},
		{"detected-fields", `{service_name="web"}`, "label: status\t\ttype: int\t\tcardinality: 2"},
		{"query", `sum(count_over_time({service_name="web"}[1h])) --step=1h`, `"7000"`},
	} {
		if got := with(c.verb, strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("logcli %s %s prints %q, want %q", c.verb, c.args, got, c.want)
		}
	}
}

// A tail of the command of Loki shows each line, over restarts of an ingester and of the server.
// It comes again with the time of its last line, and shows the lines of that time once more.
func TestLogcliTail(t *testing.T) {
	needLogcli(t)
	t.Parallel()
	at, _ := dirStore(t)
	wal := t.TempDir()
	p := start(t, at, wal)
	s := serve(t, at)
	cmd := s.logcliCmd("query", "--tail", "--limit=5000", "--output=raw", `{service_name="web"}`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var shown lockedBuffer
	cmd.Stdout, cmd.Stderr = &shown, &shown
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
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
		testkit.Until(t, event, func() bool { return strings.Contains(shown.String(), fmt.Sprintf("line %d.\n", sent-1)) })
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
	got := strings.Fields(strings.ReplaceAll(shown.String(), "line ", ""))
	for i := range sent {
		if n := strings.Count(strings.Join(got, "\n")+"\n", fmt.Sprintf("%d.\n", i)); n == 0 {
			t.Errorf("line %d is not shown", i)
		}
	}
}

// lockedBuffer is a buffer for a process that writes while the test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
