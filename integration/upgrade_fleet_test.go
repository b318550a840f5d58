package integration_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// oldCommit is the first version that others are upgraded from.
const oldCommit = "61e89a5"

// oldCommands builds ingest and logquery of oldCommit, once. BLOBTAIL_OLD_BIN names a
// directory that has them. A checkout without history cannot build them.
func oldCommands(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("BLOBTAIL_OLD_BIN"); given != "" {
		return given
	}
	if err := exec.Command("git", "cat-file", "-e", oldCommit+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not in this repository: fetch its history, or set BLOBTAIL_OLD_BIN", oldCommit)
	}
	dir := t.TempDir()
	script := `set -eo pipefail; mkdir src; git -C "$0" archive ` + oldCommit + ` | tar -x -C src; cd src
export CGO_ENABLED=0; go build -trimpath -ldflags='-s -w' -o ../ingest ./cmd/ingest; go build -trimpath -ldflags='-s -w' -o ../logquery ./cmd/query`
	cmd := exec.Command("bash", "-c", script, shared.root)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", oldCommit, err, out)
	}
	return dir
}

// readBy runs logquery from another directory of commands.
func readBy(t *testing.T, bin string, at place, args ...string) (out []byte, errs string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "logquery"), append([]string{"--store", at.store, "-u"}, args...)...)
	cmd.Env = append(testkit.Environ(), at.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.Bytes(), stderr.String(), cmd.ProcessState.ExitCode()
}

// Two ingesters of 61e89a5 are upgraded one after the other while they accept
// records, as docs/UPGRADE.md says, and one of them goes back. The readers of both
// versions read after each step. Until no ingester of 61e89a5 is left, only a reader
// of 61e89a5 that asks such an ingester is complete. All others exit with 3 and name
// one. Nothing is lost, and nothing is there twice.
func TestUpgradeOneByOne(t *testing.T) {
	t.Parallel()
	old := oldCommands(t)
	beside(t, map[string]func(t *testing.T){
		"dir":   func(t *testing.T) { at, _ := dirStore(t); testUpgradeOneByOne(t, at, old) },
		"azure": func(t *testing.T) { at, _ := azureStore(t); testUpgradeOneByOne(t, at, old) },
	})
}

// testUpgradeOneByOne runs in one place. Readers of a dir store use the addresses in
// rows; the test names the ingester to readers of Azure.
func testUpgradeOneByOne(t *testing.T, at place, old string) {
	p := &promises{}
	bySh := []string{"sh", "-c", `shift; exec "$0" "$@"`, filepath.Join(old, "ingest")} // instead of today's
	a, b := newStation(t, at, p, "a", "--lane", "1"), newStation(t, at, p, "b", "--lane", "2")
	for _, s := range []*station{a, b} {
		s.by = bySh
		s.start()
	}
	both := func() {
		var taking sync.WaitGroup
		for _, s := range []*station{a, b} {
			taking.Go(func() {
				for range 5 {
					s.take()
				}
			})
		}
		taking.Wait()
	}
	upgrade := func(s *station) {
		if code, _ := s.stop(); code != 0 {
			t.Errorf("%s: exit code %d", s.name, code)
		}
		s.by = nil
		s.start()
	}
	read := newAudit(t, at, p).only(asRead, asCount)
	byA, byB, byRows := read.by("--live-url", a.base), read.by("--live-url", b.base), read
	if !strings.HasPrefix(at.store, "dir:") {
		byRows = byA
	}

	both()
	oldReads(t, old, at, p, "both are old", 0, a, b)
	byRows.names("both are old", "speaks version 1 of /live, which does not name the start and the store that its records are of: upgrade that ingester")

	upgrade(a)
	both()
	oldReads(t, old, at, p, "one is new", 0, b)
	oldReads(t, old, at, p, "one is new", 3, a)
	byA.names("one is new", "ingester "+b.id()+" at "+b.base+" speaks version 1 of /live")
	byB.names("one is new, and the other is asked", "speaks version 1 of /live")
	byRows.names("one is new", b.id())

	b.kill() // an upgrade after a crash is the same
	b.by = nil
	b.start()
	both()
	oldReads(t, old, at, p, "both are new", 0, a, b)
	for _, r := range []audit{byA, byB, byRows} {
		r.whole("both are new")
	}

	goBack(t, b, bySh)
	both()
	oldReads(t, old, at, p, "one went back", 0, b)
	byA.names("one went back", "upgrade that ingester")
	upgrade(b)
	byA.whole("both are new again")
}

// goBack empties the log of an ingester, and starts an older version on another log.
func goBack(t *testing.T, s *station, by []string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), "drain", "--admin", strings.TrimPrefix(s.admin, "http://"))
	cmd.Env = testkit.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("drain: %v\n%s", err, out)
	}
	if code, _ := s.stop(); code != 0 {
		t.Errorf("%s: exit code %d", s.name, code)
	}
	s.by, s.wal = by, filepath.Join(t.TempDir(), "wal")
	s.start()
}

// oldReads reads with the old commands through each ingester. In the end a read with exit
// code 0 must have all acknowledged records: an ingester of 61e89a5 does not say that it
// has not read of another one's start yet. A read for which the store was too slow is
// repeated too.
func oldReads(t *testing.T, old string, at place, p *promises, when string, want int, ask ...*station) {
	t.Helper()
	due := p.due()
	for _, s := range ask {
		for begun := time.Now(); ; {
			out, errs, code := readBy(t, old, at, "web", "--live-url", s.base)
			n, ids := shownLines(t, out)
			if code == want && n == len(ids) && (code != 0 || n == len(due)) && (code != 3 || strings.Contains(errs, "upgrade that ingester")) {
				break
			}
			late := s.by != nil && code == 0 && want == 0 && n == len(ids) // it does not know the other yet
			if !late && !tooSlow(errs, code) || time.Since(begun) > testkit.Patience {
				t.Errorf("%s: a reader of %s that asks %s exits %d, want %d, and shows %d records (%d different) of %d: %s", when, oldCommit, s.name, code, want, n, len(ids), len(due), errs)
				break
			}
		}
	}
}
