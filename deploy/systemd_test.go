package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
)

// units are the units, by the command that they run.
var units = map[string][]string{
	"ingest":    {"blobtail-ingest.service"},
	"logquery":  {"blobtail-serve.service"},
	"retention": {"blobtail-retention.service", "blobtail-retention.timer", "blobtail-compact.service", "blobtail-compact.timer"},
}

// services are the units that run a command.
func services() (names []string) {
	for _, of := range units {
		for _, name := range of {
			if strings.HasSuffix(name, ".service") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// unitValue returns the first value of a key in a unit.
func unitValue(t *testing.T, unit, key string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit has no %s", key)
	}
	return m[1]
}

// TestUnits ensures that all units are the same fixed user, with the same directory, and have
// the memory of their Go runtime within their own. docs/systemd_test.go runs their commands.
func TestUnits(t *testing.T) {
	found, err := filepath.Glob("blobtail-*.service")
	if want := services(); err != nil || !slices.Equal(found, want) {
		t.Errorf("the units are %v, and the tests know %v", found, want)
	}
	users, files := read(t, "blobtail.sysusers"), read(t, "blobtail.tmpfiles")
	for _, name := range services() {
		unit := read(t, name)
		for key, want := range map[string]string{
			"User": "blobtail", "Group": "blobtail", "StateDirectory": "blobtail", "StateDirectoryMode": "0700", "UMask": "0077",
			"WorkingDirectory": "%S/blobtail", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "CapabilityBoundingSet": "",
		} {
			if got := unitValue(t, unit, key); got != want {
				t.Errorf("%s: %s=%s, want %s", name, key, got, want)
			}
		}
		if regexp.MustCompile(`(?m)^(DynamicUser|LoadCredential)=`).MatchString(unit) {
			t.Errorf("%s: docs/SYSTEMD.md says why it has no DynamicUser= and no LoadCredential=", name)
		}
		// Each file of settings is one that systemd-tmpfiles makes.
		for _, m := range regexp.MustCompile(`EnvironmentFile=-(\S+)`).FindAllStringSubmatch(unit, -1) {
			if !regexp.MustCompile(`(?m)^f ` + m[1] + ` +0600 root +root `).MatchString(files) {
				t.Errorf("%s: blobtail.tmpfiles does not make %s", name, m[1])
			}
		}
	}
	if !strings.Contains(users, "\nu blobtail - ") || !strings.Contains(files, "\nd /var/lib/blobtail           0700 blobtail blobtail ") {
		t.Error("nothing makes the user of the units and its directory")
	}
}

// TestIngestUnit ensures that the ingester accepts the configuration of its unit, that a stop gets
// the time it may need, and that a reload looks at the files before it signals.
func TestIngestUnit(t *testing.T) {
	unit := read(t, "blobtail-ingest.service")
	grace := time.Duration(config.Default().Ingest.Grace)
	if stop, err := time.ParseDuration(unitValue(t, unit, "TimeoutStopSec") + "s"); err != nil || stop <= grace {
		t.Errorf("TimeoutStopSec (%v, %v) must be more than the %s that a stop may take", stop, err, grace)
	}
	for key, want := range map[string]string{"Restart": "always", "Type": "exec", "StartLimitIntervalSec": "0"} {
		if got := unitValue(t, unit, key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	args := strings.Fields(unitValue(t, unit, "ExecStart"))
	if args[0] != "/usr/local/bin/ingest" {
		t.Fatalf("ExecStart=%v", args)
	}
	checkConfig(t, ingester(t), nil, "--config", filepath.Join("..", "configs", filepath.Base(args[len(args)-1])))
	reload := regexp.MustCompile(`(?m)^ExecReload=(.*)$`).FindAllStringSubmatch(unit, -1)
	if len(reload) != 2 || !strings.Contains(reload[0][1], "ingest check-config ") || reload[1][1] != "/bin/kill -HUP $MAINPID" {
		t.Errorf("a reload runs %q", reload)
	}
}

// TestServeUnit ensures that logquery knows the command of the unit of the server.
func TestServeUnit(t *testing.T) {
	unit := read(t, "blobtail-serve.service")
	args := strings.Fields(unitValue(t, unit, "ExecStart"))
	if want := []string{"/usr/local/bin/logquery", "serve", "--config", "/etc/blobtail/blobtail.yaml", "$OPTIONS"}; !slices.Equal(args, want) {
		t.Errorf("it runs %q, want %q", args, want)
	}
	for key, want := range map[string]string{"Restart": "always", "Type": "exec", "ExecReload": "/bin/kill -HUP $MAINPID"} {
		if got := unitValue(t, unit, key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	// Without a value systemd would warn at each start.
	if got := unitValue(t, unit, "Environment"); !strings.HasSuffix(got, " OPTIONS=") {
		t.Errorf("Environment=%s has no value of OPTIONS", got)
	}
}

// TestJobUnits ensures that the jobs run commands that the binary knows, and their timers make up
// for a day that was missed.
func TestJobUnits(t *testing.T) {
	bin := job(t)
	for _, name := range []string{"blobtail-retention", "blobtail-compact"} {
		unit, timer := read(t, name+".service"), read(t, name+".timer")
		checkCommand(t, bin, strings.Fields(unitValue(t, unit, "ExecStart")))
		if got := unitValue(t, unit, "Type"); got != "oneshot" {
			t.Errorf("%s: Type=%s", name, got)
		}
		if got := unitValue(t, timer, "Persistent"); got != "yes" {
			t.Errorf("%s.timer: Persistent=%s", name, got)
		}
		if got := unitValue(t, timer, "RandomizedDelaySec"); got == "0" {
			t.Errorf("%s.timer: all hosts of a store run at once", name)
		}
		if !strings.HasSuffix(unitValue(t, timer, "OnCalendar"), " UTC") {
			t.Errorf("%s.timer: days are those of UTC", name)
		}
		if strings.Contains(unit, "\n[Install]") {
			t.Errorf("%s.service would run at each start of the machine", name)
		}
	}
}

// TestSystemdAccepts has systemd check the units: it knows each key and value, and their exposure,
// 0 to 10, is low. It wants the binaries to exist.
func TestSystemdAccepts(t *testing.T) {
	need(t, "systemd-analyze")
	dir := t.TempDir()
	verify := []string{"verify", "--man=no"}
	for command, names := range units {
		bin := testkit.Command(t, "..", command)
		for _, name := range names {
			copied := filepath.Join(dir, name)
			text := strings.ReplaceAll(read(t, name), "/usr/local/bin/"+command, bin)
			if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			verify = append(verify, copied)
		}
	}
	// An unknown key is a line of output, not a failure. Units of the host have lines too.
	out, err := exec.Command("systemd-analyze", verify...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "blobtail") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	const most = 2.0
	for _, name := range services() {
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
}
