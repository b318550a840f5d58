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

// TestDockerfile ensures that the image can be built from the files in the
// repository, on named base images, as make release does it, and does not run as root.
// deploy/lint has Docker's own linter look at the file.
func TestDockerfile(t *testing.T) {
	stages := map[string]bool{}
	made := read(t, "Dockerfile")
	last, args := map[string]string{}, map[string]string{}
	for _, in := range instructions(t) {
		if name, value, ok := strings.Cut(in[1], "="); ok && in[0] == "ARG" {
			args["${"+name+"}"] = value
		}
		if in[0] == "FROM" {
			in[1] = args[in[1]] // so that a digest can be given
		}
		last[in[0]] = strings.Join(in[1:], " ")
		switch in[0] {
		case "FROM":
			_, tag, ok := strings.Cut(in[1], ":")
			if !ok || tag == "" || tag == "latest" {
				t.Errorf("%v: the base has no tag of its own", in)
			}
			if len(in) == 4 && in[2] == "AS" {
				stages[in[3]] = true
			}
		case "COPY":
			sources := slices.DeleteFunc(slices.Clone(in[1:len(in)-1]), func(s string) bool { return strings.HasPrefix(s, "--") })
			stage := slices.IndexFunc(in, func(s string) bool { return strings.HasPrefix(s, "--from=") })
			if stage > 0 {
				if !stages[strings.TrimPrefix(in[stage], "--from=")] {
					t.Errorf("%v: there is no such stage", in)
				}
				for _, s := range sources {
					if strings.Count(made, s) < 2 {
						t.Errorf("%v: nothing makes %s", in, s)
					}
				}
				continue
			}
			for _, s := range sources {
				if _, err := os.Stat(filepath.Join("..", s)); err != nil {
					t.Errorf("%v: %v", in, err)
				}
			}
		}
	}
	if user := last["USER"]; !strings.HasPrefix(user, "nonroot") {
		t.Errorf("the image runs as %q", user)
	}
	if !strings.Contains(last["FROM"], "distroless/static") {
		t.Errorf("the image is made from %s", last["FROM"])
	}
	makefile := read(t, filepath.Join("..", "Makefile"))
	const flags = `go build -trimpath -buildvcs=false -ldflags "`
	if !strings.Contains(made, "export CGO_ENABLED=0") || strings.Count(made, flags) != 3 || strings.Count(makefile, flags) != 1 {
		t.Error("the binaries are not built as make release does it")
	}
	release := regexp.MustCompile(`(?m)^RELEASE_GO \?= go(\S+)$`).FindStringSubmatch(makefile)
	if release == nil || args["${GO_IMAGE}"] != "golang:"+release[1]+"-bookworm" {
		t.Errorf("the build stage is %s, make release takes Go %v", args["${GO_IMAGE}"], release)
	}
	mod := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, filepath.Join("..", "go.mod")))
	if mod == nil || release == nil || release[1] != mod[1] {
		t.Errorf("releases are built with Go %v, go.mod asks for %v", release, mod)
	}
	var entry []string
	if err := json.Unmarshal([]byte(last["ENTRYPOINT"]), &entry); err != nil || len(entry) != 1 {
		t.Errorf("ENTRYPOINT %s: want the exec form, because there is no shell: %v", last["ENTRYPOINT"], err)
	}
	checkConfig(t, ingester(t), strings.Fields(last["ENV"]))
}

// TestDockerignore ensures that the build does not need the ignored files.
func TestDockerignore(t *testing.T) {
	for line := range strings.Lines(read(t, "Dockerfile.dockerignore")) {
		line = strings.TrimSpace(line)
		for _, needed := range []string{"go.mod", "go.sum", "cmd", "internal", "storage", "source", "reading", "serve", "record", "*", "**"} {
			if line == needed {
				t.Errorf("%s is left out, and needed", line)
			}
		}
	}
	embeds, err := exec.Command("go", "list", "-f", "{{.EmbedFiles}}", "../...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, embeds)
	}
	if s := strings.Trim(string(embeds), "[]\n "); s != "" {
		t.Logf("embedded files: %s; see that none is left out", s)
	}
}

type compose struct {
	Services map[string]service
	Volumes  map[string]any
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
	Build       struct{ Context, Dockerfile string }
	Command     line
	Entrypoint  []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Healthcheck struct {
		Test []string
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	StopGrace string                                `yaml:"stop_grace_period"`
	ReadOnly  bool                                  `yaml:"read_only"`
	Tmpfs     []string
	CapDrop   []string `yaml:"cap_drop"`
}

// TestCompose ensures that the files and services that compose.yaml names exist. It
// also ensures that compose.yaml publishes on the loopback address only, gives the
// ingester time to stop, and starts the Azurite that the tests run against.
func TestCompose(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &c); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	for name, s := range c.Services {
		if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "latest" {
			t.Errorf("%s: image %q has no tag of its own", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to all", name, p)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(volume, "./secrets/ingest") && strings.HasSuffix(v, ":ro") {
				continue // which tls.sh makes
			}
			if _, err := os.Stat(volume); err == nil && (strings.HasPrefix(volume, "./grafana") || volume == "./vmalert") && strings.HasSuffix(v, ":ro") {
				continue
			}
			if _, ok := c.Volumes[volume]; !ok {
				t.Errorf("%s: there is no volume %s", name, volume)
			}
		}
		for dep, on := range s.DependsOn {
			if on.Condition == "service_healthy" && len(c.Services[dep].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for the health of %s, which has no check", name, dep)
			}
		}
		for _, m := range regexp.MustCompile(`http://([a-z]+):`).FindAllStringSubmatch(s.Environment["AZURE_STORAGE_CONNECTION_STRING"], -1) {
			if _, there := c.Services[m[1]]; !there {
				t.Errorf("%s: there is no service %s", name, m[1])
			}
		}
	}
	for _, name := range []string{"ingest", "logquery", "serve", "vmalert", "alertmanager"} {
		if s := c.Services[name]; !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s may do more than it needs", name)
		}
	}
	for _, name := range []string{"ingest", "logquery", "serve"} {
		// An image without a shell has no other place for temporary files.
		if s := c.Services[name]; len(s.Tmpfs) != 1 || !strings.HasPrefix(s.Tmpfs[0], "/tmp:mode=1777,") {
			t.Errorf("%s has no place for temporary files: %v", name, s.Tmpfs)
		}
	}
	checkIngest(t, c.Services["ingest"])
	checkAzurite(t, c.Services["azurite"])
}

func checkIngest(t *testing.T, s service) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
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
