package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/cli"
)

// A read that takes long shows on a terminal how far it is, and tells it when it is
// interrupted. On a narrow terminal it stays in one row. Without a terminal it says nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	through, direct, p := proxied(t)
	const blobs = 40
	in := start(t, direct, t.TempDir())
	var body strings.Builder
	for i := range blobs {
		fmt.Fprintf(&body, `{"ts":%q,"msg":"a record"}`+"\n", time.Date(2026, 11, 10, i, 0, 0, 0, time.UTC).Format(time.RFC3339))
	}
	in.mustPost("/ingest/web", []byte(body.String()))
	in.mustFlush()
	slow := func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".log") {
			select {
			case <-time.After(2 * time.Second):
			case <-r.Context().Done():
			}
		}
		return false
	}
	p.refuses.Store(&slow)
	command := fmt.Sprintf("echo $$; exec env '%s' %s --store %s -u web --live off >/dev/null", through.env[0], filepath.Join(shared.bin, "logquery"), through.store)
	screen := &interrupting{at: []byte("of 40 blobs")}
	if err := onTerminal(command, 100, screen); err != nil {
		t.Fatal(err)
	}
	text := screen.text.String()
	if !regexp.MustCompile(`[0-9]+ of 40 blobs`).MatchString(text) {
		t.Errorf("no progress:\n%q", text)
	}
	if !regexp.MustCompile(`interrupted: [0-9]+ of 40 blobs\r\n$`).MatchString(text) {
		t.Errorf("nothing is said of the interruption:\n%q", text)
	}
	const columns = 16
	screen = &interrupting{at: []byte("of 40")}
	if err := onTerminal("export TERM=xterm; "+command, columns, screen); err != nil {
		t.Fatal(err)
	}
	text = screen.text.String()
	if drawn, _, _ := strings.Cut(text, "logquery: "); !strings.Contains(drawn, "of 40") {
		t.Errorf("no progress on a narrow terminal:\n%q", text)
	} else if long := regexp.MustCompile(fmt.Sprintf(`\x1b\[2K[^\x1b\r\n]{%d,}`, columns)).FindString(drawn); long != "" {
		t.Errorf("%q takes several rows", long)
	}
	fast := func(http.ResponseWriter, *http.Request) bool { return false }
	p.refuses.Store(&fast)
	if _, errs, code := logquery(t, direct, "web", "--live", "off"); code != cli.OK || strings.Contains(errs, "blobs") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// interrupting is a screen that interrupts the process that its first line names, once it
// shows a text.
type interrupting struct {
	text bytes.Buffer
	at   []byte
	done bool
}

func (s *interrupting) Write(b []byte) (int, error) {
	s.text.Write(b)
	if s.done || !bytes.Contains(s.text.Bytes(), s.at) {
		return len(b), nil
	}
	s.done = true
	first, _, _ := strings.Cut(s.text.String(), "\r\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, err
	}
	return len(b), syscall.Kill(-pid, syscall.SIGINT) // its group, as Ctrl-C does
}
