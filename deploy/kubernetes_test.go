package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/internal/config"
)

// stateful is the part of a StatefulSet that has to fit the ingester. That it fits
// Kubernetes is checked by deploy/lint, in a module of its own.
type stateful struct {
	Spec struct{ Template struct{ Spec ingestPod } }
}

type ingestPod struct {
	TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsUser int `yaml:"runAsUser"`
	} `yaml:"securityContext"`
	Containers []ingestContainer
	Volumes    []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
		Secret    struct {
			Name string `yaml:"secretName"`
		}
	}
}

type ingestContainer struct {
	Name      string
	Command   []string
	Env       []variable
	Ports     []containerPort
	Lifecycle struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	Resources    struct{ Limits struct{ Memory string } }
	VolumeMounts []mount `yaml:"volumeMounts"`
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type containerPort struct {
	Name   string
	Number string `yaml:"containerPort"`
}

type variable struct {
	Name, Value string
	ValueFrom   struct {
		FieldRef struct {
			Path string `yaml:"fieldPath"`
		} `yaml:"fieldRef"`
		SecretKeyRef struct{ Name string } `yaml:"secretKeyRef"`
	} `yaml:"valueFrom"`
}

// documents returns the YAML documents of a manifest, by kind and name.
func documents(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, doc := range strings.Split(read(t, file), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
		found[o.Kind+"/"+o.Metadata.Name] = doc
	}
	return found
}

// imageEnv returns the environment that the image sets.
func imageEnv(t *testing.T) []string {
	t.Helper()
	for _, in := range instructions(t) {
		if in[0] == "ENV" {
			return in[1:]
		}
	}
	t.Fatal("the image sets nothing")
	return nil
}

// environ returns the environment that the kubelet makes for the fourth ingester of a namespace out of
// the image's and the manifest's. Secrets are not there.
func environ(t *testing.T, c ingestContainer, namespace string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, e := range imageEnv(t) {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	fields := map[string]string{"metadata.name": "blobtail-ingest-3", "metadata.namespace": namespace}
	for _, e := range c.Env {
		if e.ValueFrom.SecretKeyRef.Name != "" {
			continue
		}
		value := e.Value
		if path := e.ValueFrom.FieldRef.Path; path != "" {
			value = fields[path]
		}
		env[e.Name] = strings.Replace(expand(value, env), "ACCOUNT", "account", 1)
	}
	return env
}

// expand replaces the variables of an environment in a value, or in an argument.
func expand(value string, env map[string]string) string {
	for name, v := range env {
		value = strings.ReplaceAll(value, "$("+name+")", v)
	}
	return value
}

// kubernetesPage tells how to install it.
const kubernetesPage = "../docs/start/kubernetes.md"

// effective returns the configuration that the ingester makes of an environment and a
// file, by its own print-config.
func effective(t *testing.T, env map[string]string, text string) config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "blobtail.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ingester(t), "print-config", "--config", file)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("print-config: %v\n%s", err, stderr.String())
	}
	file = filepath.Join(t.TempDir(), "effective.yaml")
	if err := os.WriteFile(file, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// manifestOf returns the pod of a workload in a manifest, and the configuration of its ConfigMap.
func manifestOf(t *testing.T, file, kind, name string) (ingestPod, string) {
	t.Helper()
	docs := documents(t, filepath.Join("kubernetes", file))
	var s stateful // the pod is at the same place of each kind
	var o object
	for id, to := range map[string]any{kind + "/" + name: &s, "ConfigMap/" + name: &o} {
		if err := yaml.Unmarshal([]byte(docs[id]), to); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
	}
	return s.Spec.Template.Spec, o.Data["blobtail.yaml"]
}

// TestStatefulSet ensures that the ingester accepts the configuration that its pod gets
// from the image, the environment and the ConfigMap together, and that the ports, the
// directory of the log, the memory and the time to stop are those of the manifest.
func TestStatefulSet(t *testing.T) {
	pod, text := manifestOf(t, "ingest.yaml", "StatefulSet", "blobtail-ingest")
	c := pod.Containers[0]
	if want := []string{"/usr/local/bin/ingest", "--config", "/etc/blobtail/blobtail.yaml"}; !slices.Equal(c.Command, want) {
		t.Fatalf("the pod runs %q", c.Command)
	}
	env := environ(t, c, "logs")
	conf := effective(t, env, text)

	if store := conf.Store.String(); !strings.HasPrefix(store, "azure:") {
		t.Errorf("the store is %s, that of the image", store)
	}
	if a := conf.Ingest.Advertise; !strings.HasSuffix(a, "://blobtail-ingest-3.blobtail-peers.logs.svc:8514") {
		t.Errorf("it announces %s", a)
	}
	for name, address := range map[string]string{"records": conf.Ingest.Listen, "admin": conf.Ingest.Admin} {
		if !slices.Contains(c.Ports, containerPort{name, strings.TrimPrefix(address, "0.0.0.0:")}) {
			t.Errorf("it listens on %s, the ports are %+v", address, c.Ports)
		}
	}
	mounted := false
	for _, m := range c.VolumeMounts {
		mounted = mounted || !m.ReadOnly && m.Name == "log" && filepath.Dir(conf.WALDir()) == m.MountPath
	}
	if !mounted {
		t.Errorf("the log is in %s, and no volume is", conf.WALDir())
	}
	for volume, path := range map[string]string{"access": conf.Access.Tokens, "tls": conf.TLS.Key} {
		if !slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return m.Name == volume && m.ReadOnly && m.MountPath == filepath.Dir(path) }) {
			t.Errorf("nothing mounts %s", path)
		}
	}
	need := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + time.Duration(conf.Ingest.Grace)
	if got := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; got < need+5*time.Second {
		t.Errorf("it gets %s to stop and needs %s and some time to end", got, need)
	}
	limit, soft := bytesOf(t, c.Resources.Limits.Memory), bytesOf(t, env["GOMEMLIMIT"])
	if soft > limit/5*4 || soft < int64(conf.Limits.InFlight)+192<<20 {
		t.Errorf("GOMEMLIMIT is %s, of %s in all; requests may hold %s", env["GOMEMLIMIT"], c.Resources.Limits.Memory, conf.Limits.InFlight)
	}
	if pod.SecurityContext.RunAsUser != 65532 { // nonroot of distroless
		t.Errorf("the pod runs as %d, the image's directory is another user's", pod.SecurityContext.RunAsUser)
	}
}

// bytesOf reads a size of Kubernetes or of Go.
func bytesOf(t *testing.T, text string) int64 {
	t.Helper()
	var s config.Size
	text = strings.TrimSuffix(text, "B") + "B"
	if err := s.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return int64(s)
}
