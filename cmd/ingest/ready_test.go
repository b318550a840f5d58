package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/openstore"
)

// An ingester with an empty log refuses records once the directory of its store is gone, because
// it cannot write its row. Senders that ask before they send learn that at once, at both
// listeners. It resumes when the directory is back. One that holds records takes more, and is
// ready.
func TestReadyWithoutStore(t *testing.T) {
	for name, holds := range map[string]bool{"an empty log": false, "holding": true} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			g := &guarded{log: new(safeBuffer)}
			g.start(t, func(c *config.Config) {
				var err error
				if c.Store, err = openstore.Parse("dir:" + root); err != nil {
					t.Fatal(err)
				}
				c.Ingest.WAL = t.TempDir()
			})
			send := route{"", "POST", "/ingest/web", "", "x", false}
			ask := func(what string, r route, address string, want int) {
				t.Helper()
				if status, text := r.as(t, address, address); status != want {
					t.Errorf("%s: %s %s: %d %s", what, r.method, r.path, status, text)
				}
			}
			if holds {
				ask("before", send, g.listen, 200)
			}
			if err := os.Rename(root, root+".away"); err != nil {
				t.Fatal(err)
			}
			taken := 503
			if holds {
				taken = 200
			}
			ask("gone", route{"", "GET", "/readyz", "", "", false}, g.admin, taken)
			for _, path := range []string{"/ready", "/services/collector/health"} {
				ask("gone", route{"", "GET", path, "", "", false}, g.listen, taken)
			}
			ask("gone", send, g.listen, taken)
			if err := os.Rename(root+".away", root); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if status, _ := (route{"", "GET", "/readyz", "", "", false}).as(t, g.admin, g.admin); status == 200 {
					break
				}
			}
			ask("back", route{"", "GET", "/readyz", "", "", false}, g.admin, 200)
			ask("back", send, g.listen, 200)
			ask("back", route{"", "GET", "/ready", "", "", false}, g.listen, 200)
			if strings.Contains(g.log.String(), `"level":"fatal"`) {
				t.Error(g.log)
			}
		})
	}
}
