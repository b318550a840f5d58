package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/blobfmt"
	"blobtail/internal/config"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir"
)

// job builds the binary of the scheduled runs.
func job(t *testing.T) string { return testkit.Command(t, "..", "retention") }

// checkCommand ensures that the job accepts a command line: its command and its
// flags.
func checkCommand(t *testing.T, bin string, args []string) {
	t.Helper()
	if len(args) < 2 || args[0] != "/usr/local/bin/retention" {
		t.Fatalf("%q does not run retention", args)
	}
	help, err := exec.Command(bin, args[1], "--help").CombinedOutput()
	if err != nil {
		t.Errorf("retention %s --help: %v\n%s", args[1], err, help)
	}
	for _, arg := range args[2:] {
		flag, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, "--") && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).Match(help) {
			t.Errorf("retention %s has no %s", args[1], flag)
		}
	}
}

type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		JobTemplate struct {
			Spec struct {
				PodFailurePolicy struct {
					Rules []struct {
						OnExitCodes struct {
							ContainerName string `yaml:"containerName"`
						} `yaml:"onExitCodes"`
					}
				} `yaml:"podFailurePolicy"`
				Template struct{ Spec ingestPod }
			}
		} `yaml:"jobTemplate"`
	}
}

// objects reads the manifests of the jobs, by kind and name.
func objects(t *testing.T) map[string]object {
	t.Helper()
	found := map[string]object{}
	for _, doc := range strings.Split(read(t, "kubernetes/retention.yaml")+"\n---\n"+read(t, "kubernetes/confirm.yaml"), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
		found[o.Kind+"/"+o.Metadata.Name] = o
	}
	return found
}

// TestCronJobs ensures that the binary knows the commands of the jobs and accepts their
// configuration, that a failure policy is of their container, and that their store overrides the
// image's.
func TestCronJobs(t *testing.T) {
	all := objects(t)
	bin, ingest := job(t), ingester(t)
	for name, command := range map[string]string{"blobtail-retention": "apply", "blobtail-compact": "compact", "blobtail-plan": "plan", "blobtail-confirm": "apply"} {
		s := all["CronJob/"+name].Spec.JobTemplate.Spec
		if len(s.Template.Spec.Containers) != 1 {
			t.Fatalf("%s: there is no such CronJob, or it has not one container", name)
		}
		c := s.Template.Spec.Containers[0]
		if got := s.PodFailurePolicy.Rules[0].OnExitCodes.ContainerName; got != c.Name {
			t.Errorf("%s: the exit codes of %q, but the container is %q", name, got, c.Name)
		}
		if c.Command[1] != command {
			t.Errorf("%s runs %q", name, c.Command)
		}
		checkCommand(t, bin, c.Command)
		if !strings.Contains(read(t, "Dockerfile"), "-o /out/"+filepath.Base(c.Command[0])+" ") {
			t.Errorf("%s: the image has no %s", name, c.Command[0])
		}
		if !slices.ContainsFunc(c.Env, func(e variable) bool { return e.Name == "BLOBTAIL_STORE" && strings.HasPrefix(e.Value, "azure:") }) {
			t.Errorf("%s: the store is that of the image", name)
		}
		file := c.Command[slices.Index(c.Command, "--config")+1]
		m, v := c.VolumeMounts[0], s.Template.Spec.Volumes[0]
		text, ok := all["ConfigMap/"+v.ConfigMap.Name].Data[filepath.Base(file)]
		if !ok || m.Name != v.Name || m.MountPath != filepath.Dir(file) {
			t.Fatalf("%s: nothing gives it %s", name, file)
		}
		conf := filepath.Join(t.TempDir(), "blobtail.yaml")
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checkConfig(t, ingest, nil, "--config", conf)
		if c, err := config.Load(conf); err != nil || c.Retention.Default == 0 {
			t.Errorf("%s: the policy has no age for all services: %v", name, err)
		}
	}
}

// written returns the metrics that a run of the job leaves in its file.
func written(t *testing.T) map[string]bool {
	t.Helper()
	tmp := t.TempDir()
	conf, file, root := filepath.Join(tmp, "blobtail.yaml"), filepath.Join(tmp, "retention.prom"), filepath.Join(tmp, "store")
	if err := os.WriteFile(conf, []byte("retention: {default: 30d}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	key := blobfmt.Name{Service: "web", Period: now.UTC().Truncate(time.Hour), Number: 1}.String()
	meta := blobfmt.Meta{First: now.UnixNano(), Last: now.UnixNano(), Records: 1, RawBytes: 1}
	if err := store.Create(t.Context(), key, []byte("x"), storage.Attrs{Metadata: meta.Map()}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(job(t), "apply", "--config", conf, "--store", "dir:"+root, "--metrics-file", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("retention apply: %v\n%s", err, out)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(blobtail_[a-z_]+)`).FindAllStringSubmatch(read(t, file), -1) {
		names[m[1]] = true
	}
	return names
}
