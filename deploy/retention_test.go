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
		Schedule                string
		TimeZone                string `yaml:"timeZone"`
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int    `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
				PodFailurePolicy      struct {
					Rules []struct {
						OnExitCodes struct {
							ContainerName string `yaml:"containerName"`
						} `yaml:"onExitCodes"`
					}
				} `yaml:"podFailurePolicy"`
				Template struct{ Spec pod }
			}
		} `yaml:"jobTemplate"`
	}
}

type pod struct {
	ServiceAccountName string `yaml:"serviceAccountName"`
	RestartPolicy      string `yaml:"restartPolicy"`
	SecurityContext    struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []struct {
		Name            string
		Image           string
		Command         []string
		Env             []struct{ Name, Value string }
		SecurityContext struct {
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
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

// TestCronJobs ensures that the jobs run one at a time, as an unprivileged user, with
// commands that the binary knows. The binary accepts their configuration, and their
// store overrides the image's.
func TestCronJobs(t *testing.T) {
	all := objects(t)
	bin, ingest := job(t), ingester(t)
	for name, command := range map[string]string{"blobtail-retention": "apply", "blobtail-compact": "compact", "blobtail-plan": "plan", "blobtail-confirm": "apply"} {
		o, ok := all["CronJob/"+name]
		if !ok {
			t.Fatalf("there is no CronJob %s", name)
		}
		s := o.Spec
		if s.ConcurrencyPolicy != "Forbid" || s.TimeZone != "Etc/UTC" || len(strings.Fields(s.Schedule)) != 5 || s.StartingDeadlineSeconds == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		p := s.JobTemplate.Spec.Template.Spec
		// A policy for failures requires Never.
		if p.RestartPolicy != "Never" || !p.SecurityContext.RunAsNonRoot || s.JobTemplate.Spec.ActiveDeadlineSeconds == 0 {
			t.Errorf("%s: %+v", name, p)
		}
		if _, ok := all["ServiceAccount/"+p.ServiceAccountName]; !ok {
			t.Errorf("%s: there is no ServiceAccount %q", name, p.ServiceAccountName)
		}
		if len(p.Containers) != 1 || len(p.Volumes) != 1 {
			t.Fatalf("%s: %d containers, %d volumes", name, len(p.Containers), len(p.Volumes))
		}
		c := p.Containers[0]
		if got := s.JobTemplate.Spec.PodFailurePolicy.Rules[0].OnExitCodes.ContainerName; got != c.Name {
			t.Errorf("%s: the exit codes of %q, but the container is %q", name, got, c.Name)
		}
		if sc := c.SecurityContext; !sc.ReadOnlyRootFilesystem || sc.AllowPrivilegeEscalation || !slices.Equal(sc.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s may do more than it needs", name)
		}
		if _, tag, ok := strings.Cut(c.Image, ":"); !ok || tag == "latest" {
			t.Errorf("%s: image %q has no tag of its own", name, c.Image)
		}
		if c.Command[1] != command {
			t.Errorf("%s runs %q", name, c.Command)
		}
		checkCommand(t, bin, c.Command)
		if !strings.Contains(read(t, "Dockerfile"), "-o /out/"+filepath.Base(c.Command[0])+" ") {
			t.Errorf("%s: the image has no %s", name, c.Command[0])
		}
		if !slices.ContainsFunc(c.Env, func(e struct{ Name, Value string }) bool {
			return e.Name == "BLOBTAIL_STORE" && strings.HasPrefix(e.Value, "azure:")
		}) {
			t.Errorf("%s: the store is that of the image", name)
		}
		file := c.Command[slices.Index(c.Command, "--config")+1]
		m, v := c.VolumeMounts[0], p.Volumes[0]
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
