package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
)

// TestSystemdAccepts has systemd check the units: it knows each key and value, and their exposure,
// 0 to 10, is low. It wants the binaries to exist. An ingester has the time to stop that it may need.
// docs/systemd_test.go runs the commands of the units, as their user and with their rights.
func TestSystemdAccepts(t *testing.T) {
	need(t, "systemd-analyze")
	names, err := filepath.Glob("blobtail-*.*")
	if err != nil || len(names) != 6 {
		t.Fatalf("the units are %v, %v", names, err)
	}
	dir := t.TempDir()
	binaries := []string{}
	for _, command := range []string{"ingest", "logquery", "retention"} {
		binaries = append(binaries, "/usr/local/bin/"+command, testkit.Command(t, "..", command))
	}
	verify := []string{"verify", "--man=no"}
	for _, name := range names {
		copied := filepath.Join(dir, name)
		if err := os.WriteFile(copied, []byte(strings.NewReplacer(binaries...).Replace(read(t, name))), 0o600); err != nil {
			t.Fatal(err)
		}
		verify = append(verify, copied)
	}
	// An unknown key is a line of output, not a failure. Units of the host have lines too.
	out, err := exec.Command("systemd-analyze", verify...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "blobtail") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	const most = 2.0
	for _, name := range names {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(dir, name)).CombinedOutput()
		m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if err != nil || m == nil {
			t.Errorf("systemd-analyze security %s: %v\n%s", name, err, out)
			continue
		}
		if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level >= most {
			t.Errorf("%s: its exposure is %s, want less than %.1f\n%s", name, m[1], most, out)
		}
	}
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(read(t, "blobtail-ingest.service"))
	if stop == nil {
		t.Fatal("the ingester has no TimeoutStopSec")
	}
	if got, err := time.ParseDuration(stop[1] + "s"); err != nil || got <= time.Duration(config.Default().Ingest.Grace) {
		t.Errorf("TimeoutStopSec=%s must be more than the %s that a stop may take", stop[1], config.Default().Ingest.Grace)
	}
}
