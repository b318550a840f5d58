package integration_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// oldCommit is the first version that others are upgraded from.
const oldCommit = "a960ca37"

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

// Two ingesters of a960ca37 are upgraded one after the other while they accept records, as
// docs/operate/upgrade.md says, one after it ended in order and one after a crash. One of them goes back
// on its log, and comes again. The readers of both versions are complete after each step, through
// either ingester and by their rows. Nothing is lost, and nothing is there twice.
func TestUpgradeOneByOne(t *testing.T) {
	t.Parallel()
	old := oldCommands(t)
	beside(t, map[string]func(t *testing.T){
		"dir":   func(t *testing.T) { at, _ := dirStore(t); testUpgradeOneByOne(t, at, old) },
		"azure": func(t *testing.T) { at, _ := azureStore(t); testUpgradeOneByOne(t, at, old) },
	})
}

// testUpgradeOneByOne runs in one place.
func testUpgradeOneByOne(t *testing.T, at place, old string) {
	p := &promises{}
	bySh := []string{"sh", "-c", `shift; exec "$0" "$@"`, filepath.Join(old, "ingest")} // instead of today's
	a, b := newStation(t, at, p, "a", "--lane", "1"), newStation(t, at, p, "b", "--lane", "2")
	read := newAudit(t, at, p).only(asRead, asCount)
	ways := map[string][]string{"a": {"--live-url", a.base}, "b": {"--live-url", b.base}, "rows": nil}
	step := func(when string) {
		t.Helper()
		var taking sync.WaitGroup
		for _, s := range []*station{a, b} {
			taking.Go(func() {
				for range 5 {
					s.take()
				}
			})
		}
		taking.Wait()
		for way, flags := range ways {
			read.by(flags...).whole(when + ", by " + way)
			oldReads(t, old, at, p, when+", by "+way, flags)
		}
	}
	run := func(s *station, by []string) {
		s.by = by
		s.start()
	}
	ends := func(s *station) {
		t.Helper()
		if code, _ := s.stop(); code != 0 {
			t.Errorf("%s: exit code %d", s.name, code)
		}
	}

	run(a, bySh)
	run(b, bySh)
	step("both are old")
	ends(a)
	run(a, nil)
	step("one is new")
	b.kill()
	run(b, nil)
	step("both are new")
	b.kill()
	run(b, bySh)
	step("one went back")
	ends(b)
	run(b, nil)
	step("both are new again")
}

// oldReads reads with the old commands. In the end the read has all acknowledged records. One for
// which the store was too slow, or that met a start half way, is repeated.
func oldReads(t *testing.T, old string, at place, p *promises, when string, flags []string) {
	t.Helper()
	due := p.due()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		out, errs, code := readBy(t, old, at, append([]string{"web"}, flags...)...)
		n, ids := shownLines(t, out)
		if code == 0 && n == len(ids) && n == len(due) {
			return
		}
		if n != len(ids) || code == 0 || time.Since(begun) > testkit.Patience {
			t.Errorf("%s: a reader of %s exits %d, and shows %d records (%d different) of %d: %s", when, oldCommit, code, n, len(ids), len(due), errs)
			return
		}
	}
}
