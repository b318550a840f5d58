package deploy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// makeRelease runs make release for this host and returns the directory.
func makeRelease(t *testing.T, commands ...string) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	dist, targets := filepath.Join(t.TempDir(), "with a space"), ""
	for _, name := range commands {
		targets += runtime.GOOS + "/" + runtime.GOARCH + "/" + name + " "
	}
	cmd := exec.Command("make", "release", "DIST="+dist, "RELEASE="+targets, "RELEASE_GO=local")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make release: %v\n%s", err, out)
	}
	return dist
}

// make release writes binaries that report their version, their SBOMs, and the checksums
// of both. The test builds for this host alone: with an empty build cache the others take
// minutes. `make reproducible`, which CI runs, builds twice and compares the bytes.
func TestRelease(t *testing.T) {
	commands := []string{"ingest", "logquery", "retention"}
	dist := makeRelease(t, commands...)
	sums := readSums(t, dist)
	for _, name := range commands {
		file := name + "-" + runtime.GOOS + "-" + runtime.GOARCH
		if sums[file] == "" {
			t.Errorf("%s is not in SHA256SUMS: %v", file, sums)
			continue
		}
		out, err := exec.Command(filepath.Join(dist, file), "--version").Output()
		want := regexp.MustCompile(`^` + name + ` 0\.9\.0, commit \S+, ` + regexp.QuoteMeta(runtime.Version()) + `\n$`)
		if err != nil || !want.Match(out) {
			t.Errorf("%s --version prints %q, %v", file, out, err)
		}
	}
	for _, name := range commands {
		if file := name + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".cdx.json"; sums[file] == "" {
			t.Errorf("%s is not in SHA256SUMS", file)
		}
	}
	if len(sums) != 6 {
		t.Errorf("%v", sums)
	}
}

// readSums reads SHA256SUMS and checks every file against it.
func readSums(t *testing.T, dist string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		sum, file, _ := strings.Cut(lines.Text(), "  ")
		body, err := os.ReadFile(filepath.Join(dist, file))
		if err != nil {
			t.Fatal(err)
		}
		if hash := sha256.Sum256(body); hex.EncodeToString(hash[:]) != sum {
			t.Errorf("%s has another checksum than %s", file, sum)
		}
		sums[file] = sum
	}
	return sums
}

// The targets of make release are all commands on Linux, and logquery on the other
// systems.
func TestReleaseTargets(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("make", "-n", "release")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "linux/amd64/ingest linux/amd64/retention linux/amd64/logquery darwin/amd64/logquery windows/amd64/logquery " +
		"linux/arm64/ingest linux/arm64/retention linux/arm64/logquery darwin/arm64/logquery windows/arm64/logquery;"
	if !strings.Contains(string(out), "for target in "+want) {
		t.Errorf("%s", out)
	}
}

// logquery compiles for the systems that it is released for. It is not linked: with a
// second package go build only compiles.
func TestCrossCompile(t *testing.T) {
	for _, goos := range []string{"windows", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			cmd := exec.Command("go", "build", "-trimpath", "./cmd/query", "./internal/cli")
			cmd.Dir = ".."
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
