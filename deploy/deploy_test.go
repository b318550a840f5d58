// Package deploy checks its folder's files as far as possible without a container
// engine and a running systemd. The files parse, and the things they name exist. They
// publish nothing that must stay private, and the ingester accepts their
// configuration.
package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/azure"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ingester returns the path of the command that the files run.
func ingester(t *testing.T) string { return testkit.Command(t, "..", "ingest") }

// checkConfig has the ingester check the configuration in an environment. It prints it:
// check-config would also want the tokens and the certificates of the host.
func checkConfig(t *testing.T, bin string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"print-config"}, args...)...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("print-config with %v %v: %v\n%s", env, args, err, out)
	}
}

// instructions returns the Dockerfile's instructions, each on one line.
func instructions(t *testing.T) [][]string {
	t.Helper()
	var out [][]string
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(read(t, "Dockerfile"), "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if fields := strings.Fields(line); len(fields) > 0 {
			out = append(out, fields)
		}
	}
	return out
}

// TestDockerfile ensures that the image can be built from the files in the repository, of which
// none is left out, as make release does it, and that an ingester in it accepts its settings.
// deploy/lint has Docker's own linter look at the file.
func TestDockerfile(t *testing.T) {
	made, last := read(t, "Dockerfile"), map[string]string{}
	ignored := strings.Fields(read(t, "Dockerfile.dockerignore"))
	for _, in := range instructions(t) {
		last[in[0]] = strings.Join(in[1:], " ")
		if in[0] != "COPY" {
			continue
		}
		staged := slices.ContainsFunc(in, func(s string) bool { return strings.HasPrefix(s, "--from=") })
		for _, s := range in[1 : len(in)-1] {
			if staged {
				if strings.HasPrefix(s, "/out") && strings.Count(made, s) < 2 {
					t.Errorf("%v: nothing makes %s", in, s)
				}
			} else if _, err := os.Stat(filepath.Join("..", s)); err != nil || slices.Contains(ignored, s) {
				t.Errorf("%v: %v, and left out are %q", in, err, ignored)
			}
		}
	}
	for _, needed := range []string{"go.mod", "go.sum", "cmd", "internal", "storage", "source", "reading", "serve", "record", "*", "**"} {
		if slices.Contains(ignored, needed) {
			t.Errorf("%s is left out, and needed", needed)
		}
	}
	if user := last["USER"]; !strings.HasPrefix(user, "nonroot") {
		t.Errorf("the image runs as %q", user)
	}
	makefile := read(t, filepath.Join("..", "Makefile"))
	const flags = `go build -trimpath -buildvcs=false -ldflags "`
	if !strings.Contains(made, "export CGO_ENABLED=0") || strings.Count(made, flags) != 3 || strings.Count(makefile, flags) != 1 {
		t.Error("the binaries are not built as make release does it")
	}
	release := regexp.MustCompile(`(?m)^RELEASE_GO \?= go(\S+)$`).FindStringSubmatch(makefile)
	if release == nil || !strings.Contains(made, "ARG GO_IMAGE=golang:"+release[1]+"-bookworm\n") {
		t.Errorf("the build stage has another Go than make release, %v", release)
	}
	mod := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, filepath.Join("..", "go.mod")))
	if mod == nil || release == nil || release[1] != mod[1] {
		t.Errorf("releases are built with Go %v, go.mod asks for %v", release, mod)
	}
	checkConfig(t, ingester(t), strings.Fields(last["ENV"]))
}

type compose struct {
	Services map[string]service
}

// line is a command, as a line or as a list.
type line string

// UnmarshalYAML implements yaml's interface.
func (l *line) UnmarshalYAML(text []byte) error {
	var words []string
	if yaml.Unmarshal(text, &words) == nil {
		*l = line(strings.Join(words, " "))
		return nil
	}
	return yaml.Unmarshal(text, (*string)(l))
}

type service struct {
	Image       string
	Command     line
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	StopGrace   string                                `yaml:"stop_grace_period"`
	ReadOnly    bool                                  `yaml:"read_only"`
	Tmpfs       []string
}

// TestCompose ensures that compose.yaml publishes on the loopback address only, mounts files that
// exist, gives the ingester time to stop, and starts the Azurite that the tests run against.
// deploy/lint has Compose itself load the file.
func TestCompose(t *testing.T) {
	c := composed(t)
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to all", name, p)
			}
		}
		for _, v := range s.Volumes {
			file, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(file, "./") || strings.HasPrefix(file, "./secrets/ingest") { // tls.sh makes these
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"ingest", "logquery", "serve"} {
		// An image without a shell has no other place for temporary files.
		if s := c.Services[name]; s.ReadOnly && (len(s.Tmpfs) != 1 || !strings.HasPrefix(s.Tmpfs[0], "/tmp:mode=1777,")) {
			t.Errorf("%s has no place for temporary files: %v", name, s.Tmpfs)
		}
	}
	checkIngest(t, c.Services["ingest"])
	checkAzurite(t, c.Services["azurite"])
}

// composed reads compose.yaml.
func composed(t *testing.T) (c compose) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &c); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	return c
}

func checkIngest(t *testing.T, s service) {
	t.Helper()
	stop, err := time.ParseDuration(s.StopGrace)
	if grace := time.Duration(config.Default().Ingest.Grace); err != nil || stop <= grace {
		t.Errorf("stop_grace_period %q (%v) must be more than the %s that a stop may take", s.StopGrace, err, grace)
	}
	var env []string
	for k, v := range s.Environment {
		env = append(env, k+"="+v)
	}
	checkConfig(t, ingester(t), env)
	// The driver checks the account without sending any request.
	_, err = azure.Open(strings.TrimPrefix(s.Environment["BLOBTAIL_STORE"], "azure:"), azure.Options{
		Getenv: func(name string) string { return s.Environment[name] }})
	if err != nil {
		t.Error(err)
	}
}

func checkAzurite(t *testing.T, s service) {
	t.Helper()
	if !strings.Contains(string(s.Command), "--skipApiVersionCheck") {
		t.Error("Azurite refuses the SDK without --skipApiVersionCheck")
	}
	var npm struct{ DevDependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, filepath.Join("..", "package.json"))), &npm); err != nil {
		t.Fatal(err)
	}
	if _, tag, _ := strings.Cut(s.Image, ":"); tag != npm.DevDependencies["azurite"] {
		t.Errorf("compose has Azurite %s, the tests run against %s", tag, npm.DevDependencies["azurite"])
	}
}
