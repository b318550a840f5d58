package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/testkit/pty"
)

// A read that takes long shows on a terminal how far it is, and tells it when it is
// interrupted. Without a terminal it says nothing.
func TestProgress(t *testing.T) {
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
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", strings.TrimPrefix(through.env[0], "AZURE_STORAGE_CONNECTION_STRING="))
	command := fmt.Sprintf("%s --store %s -u web --live off >/dev/null", filepath.Join(shared.bin, "logquery"), through.store)
	var screen bytes.Buffer
	if err := pty.Run(command, 100, 6*time.Second, &screen); err != nil {
		t.Fatal(err)
	}
	text := screen.String()
	if !regexp.MustCompile(`[0-9]+ of 40 blobs`).MatchString(text) {
		t.Errorf("no progress:\n%q", text)
	}
	if !regexp.MustCompile(`interrupted: [0-9]+ of 40 blobs\r\n$`).MatchString(text) {
		t.Errorf("nothing is said of the interruption:\n%q", text)
	}
	fast := func(http.ResponseWriter, *http.Request) bool { return false }
	p.refuses.Store(&fast)
	if _, errs, code := logquery(t, direct, "web", "--live", "off"); code != cli.OK || strings.Contains(errs, "blobs") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
