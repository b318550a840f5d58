package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	siteFolder     = "kubernetes-site"
	monitorsFolder = "kubernetes-monitors"
	diskFolder     = "kubernetes-disk"
	workersFolder  = "kubernetes-workers"
)

// disk is a copy of the folders for kustomize in memory. change may change each file.
func disk(t *testing.T, change func(name, text string) string) filesys.FileSystem {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for _, folder := range []string{"kubernetes", siteFolder, monitorsFolder, diskFolder, workersFolder} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.yaml"))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %v, %v", folder, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := path.Join(folder, filepath.Base(file))
			if err := fs.WriteFile("/deploy/"+name, []byte(change(name, string(text)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return fs
}

// build returns the objects that kustomize makes of a folder, as one text.
func build(t *testing.T, fs filesys.FileSystem, folder string) string {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/deploy/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withMonitors takes the monitors into a kustomization, as its comment says.
func withMonitors(t *testing.T, name, text string) string {
	t.Helper()
	if name != siteFolder+"/kustomization.yaml" {
		return text
	}
	return replaced(t, text, "  # - ../"+monitorsFolder, "  - ../"+monitorsFolder)
}

func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("there is no %q in\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, by)
}

const noID = "00000000-0000-0000-0000-000000000000"

// TestSite ensures that the settings of a site reach each place, in the files of today and in
// those that are added to the folder: with other settings no placeholder is left, and nothing but
// them is changed.
func TestSite(t *testing.T) {
	same := func(_, text string) string { return text }
	base := build(t, disk(t, same), "kubernetes") + "---\n" + build(t, disk(t, same), monitorsFolder)
	values := []struct{ file, old, by, now string }{ // `now` stands for `old` in the objects
		{"kustomization.yaml", "namespace: logs\n", "namespace: observability\n", "observability"},
		{"kustomization.yaml", "newName: registry.example.com/blobtail, newTag: 0.9.0", "newName: cr.contoso.net/tools/bt, newTag: 7.8.9", "cr.contoso.net/tools/bt:7.8.9"},
		{"site.yaml", "store: azure:ACCOUNT/logs\n", "store: azure:contoso/archive\n", "azure:contoso/archive"},
		{"site.yaml", " tenant: " + noID, " tenant: 11111111-1111-1111-1111-111111111111", ""},
		{"site.yaml", "ingest-client-id: " + noID, "ingest-client-id: 22222222-2222-2222-2222-222222222222", "22222222-2222-2222-2222-222222222222"},
		{"site.yaml", "serve-client-id: " + noID, "serve-client-id: 33333333-3333-3333-3333-333333333333", "33333333-3333-3333-3333-333333333333"},
		{"site.yaml", "retention-client-id: " + noID, "retention-client-id: 44444444-4444-4444-4444-444444444444", "44444444-4444-4444-4444-444444444444"},
		{"site.yaml", "host: localhost", "host: logs.contoso.net", "logs.contoso.net"},
	}
	changed := build(t, disk(t, func(name, text string) string {
		text = withMonitors(t, name, text)
		for _, v := range values {
			if name == siteFolder+"/"+v.file {
				text = replaced(t, text, v.old, v.by)
			}
		}
		return text
	}), siteFolder)
	for _, old := range []string{"ACCOUNT", noID, `registry\.example\.com`, `blobtail:0\.9\.0`, `namespace: logs\b`, `name: logs\b`, `[./=]logs(\.|\b)`, `\blogs\.svc`} {
		if left := regexp.MustCompile(".*"+old+".*").FindAllString(changed, -1); len(left) > 0 {
			t.Errorf("left of the old settings (an object with BLOBTAIL_STORE needs the label blobtail-store: site):\n%s", strings.Join(left, "\n"))
		}
	}
	for _, v := range values {
		if v.now != "" && !strings.Contains(changed, v.now) {
			t.Errorf("nothing has %s", v.now)
		}
	}
	lines := strings.Split(changed, "\n")
	n := len(lines)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.TrimSpace(line) == "azure.workload.identity/tenant-id: 11111111-1111-1111-1111-111111111111"
	})
	if n-len(lines) != 3 {
		t.Errorf("%d accounts of services have the tenant", n-len(lines))
	}
	back := strings.NewReplacer("observability", "logs", "cr.contoso.net/tools/bt:7.8.9", "registry.example.com/blobtail:0.9.0",
		"azure:contoso/archive", "azure:ACCOUNT/logs", "logs.contoso.net", "localhost").Replace(strings.Join(lines, "\n"))
	back = regexp.MustCompile(`([234])[234]{7}(-[234]{4}){3}-[234]{12}`).ReplaceAllString(back, noID)
	if want, got := parts(base), parts(back); !slices.Equal(got, want) {
		for i := range min(len(want), len(got)) {
			if got[i] != want[i] {
				t.Errorf("more than the settings is another:\n%s\nwas\n%s", got[i], want[i])
			}
		}
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
	for _, o := range objects(t, []byte(withoutMonitors(changed))) {
		for _, c := range complaints(t, o) {
			t.Errorf("%s: %s", name(t, o), c)
		}
	}
}

// TestWithoutRules ensures that the patch of docs/start/kubernetes.md takes away all of vmalert, its
// monitor too, and nothing else.
func TestWithoutRules(t *testing.T) {
	page, err := os.ReadFile("../../docs/start/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	patch := regexp.MustCompile("(?s)```text\n(patches:.*?)```").FindSubmatch(page)
	if patch == nil {
		t.Fatal("the page has no patch")
	}
	var all, left []string
	for _, end := range []string{"", "\n" + string(patch[1])} {
		all, left = left, parts(build(t, disk(t, func(name, text string) string {
			if text = withMonitors(t, name, text); name == siteFolder+"/kustomization.yaml" {
				text += end
			}
			return text
		}), siteFolder))
	}
	want := slices.DeleteFunc(all, func(doc string) bool { return strings.Contains(doc, "\n  name: blobtail-vmalert\n") })
	if !slices.Equal(left, want) {
		t.Errorf("%d objects are left, want %d", len(left), len(want))
	}
}

// component returns the objects that a component adds to a site, changed ones too, and those that are
// gone.
func component(t *testing.T, folder string) (added, gone []string) {
	t.Helper()
	without := parts(build(t, disk(t, func(_, text string) string { return text }), siteFolder))
	with := parts(build(t, disk(t, func(name, text string) string {
		if name != siteFolder+"/kustomization.yaml" {
			return text
		}
		return replaced(t, text, "# components: [../"+diskFolder+", ../"+workersFolder+"]", "components: [../"+folder+"]")
	}), siteFolder))
	added = slices.DeleteFunc(slices.Clone(with), func(doc string) bool { return slices.Contains(without, doc) })
	return added, slices.DeleteFunc(without, func(doc string) bool { return slices.Contains(with, doc) })
}

// TestDisk ensures that a site with the component has the class of disks, that the claims of the
// ingesters name it, and that nothing else is changed.
func TestDisk(t *testing.T) {
	added, gone := component(t, diskFolder)
	if len(added) != 2 || len(gone) != 1 {
		t.Fatalf("%d objects are added, %d are gone:\n%s", len(added), len(gone), strings.Join(added, "\n---\n"))
	}
	class, ingesters := added[0], added[1]
	name := regexp.MustCompile(`(?m)^  name: (.+)$`).FindStringSubmatch(class)
	claim := regexp.MustCompile(`\n +storageClassName: (.+)`).FindStringSubmatch(ingesters)
	if !strings.Contains(class, "kind: StorageClass") || name == nil || claim == nil || name[1] != claim[1] {
		t.Fatalf("%q is not %q in\n%s", claim, name, strings.Join(added, "\n---\n"))
	}
	if back := strings.Replace(ingesters, claim[0], "", 1); back != gone[0] {
		t.Errorf("more than the class is another:\n%s", ingesters)
	}
}

// TestWorkers ensures that a site with the component has workers that serve finds, by the name that
// they answer to and through the network policies, and that the API server knows the objects.
func TestWorkers(t *testing.T) {
	added, gone := component(t, workersFolder)
	if len(added) != 6 || len(gone) != 2 {
		t.Fatalf("%d objects are added, %d are gone:\n%s", len(added), len(gone), strings.Join(added, "\n---\n"))
	}
	all := map[string]runtime.Object{}
	for _, o := range objects(t, []byte(strings.Join(added, "\n---\n"))) {
		all[name(t, o)] = o
		for _, c := range complaints(t, o.DeepCopyObject()) {
			t.Errorf("%s: %s", name(t, o), c)
		}
	}
	serve := all["Deployment/blobtail-serve"].(*appsv1.Deployment).Spec.Template
	workers := all["Deployment/blobtail-workers"].(*appsv1.Deployment).Spec.Template
	service := all["Service/blobtail-workers"].(*corev1.Service)
	scaler := all["HorizontalPodAutoscaler/blobtail-workers"].(*autoscalingv2.HorizontalPodAutoscaler)
	const host = "blobtail-workers.$(POD_NAMESPACE).svc"
	asks := serve.Spec.Containers[0].Command
	if last := asks[len(asks)-1]; last != "--workers=dns+https://"+host+":8516" {
		t.Errorf("serve has %s", last)
	}
	pod := workers.Spec.Containers[0]
	if !slices.Contains(pod.Command, "--host="+host) || pod.Image != serve.Spec.Containers[0].Image {
		t.Errorf("workers run %s %q", pod.Image, pod.Command)
	}
	port := service.Spec.Ports[0]
	if service.Spec.ClusterIP != "None" || port.Port != 8516 ||
		port.TargetPort.String() != pod.Ports[0].Name || pod.Ports[0].ContainerPort != 8516 ||
		!selects(&metav1.LabelSelector{MatchLabels: service.Spec.Selector}, workers.Labels) {
		t.Errorf("the service does not lead to workers: %+v", service.Spec)
	}
	if scaler.Spec.ScaleTargetRef.Name != "blobtail-workers" {
		t.Errorf("%+v", scaler.Spec)
	}
	out := all["NetworkPolicy/blobtail-serve"].(*networkingv1.NetworkPolicy).Spec.Egress
	in := all["NetworkPolicy/blobtail-workers"].(*networkingv1.NetworkPolicy).Spec
	if to := out[len(out)-1]; !selects(to.To[0].PodSelector, workers.Labels) || to.Ports[0].Port.IntValue() != 8516 ||
		!selects(&in.PodSelector, workers.Labels) || !selects(in.Ingress[0].From[0].PodSelector, serve.Labels) {
		t.Errorf("serve does not reach workers: %+v, %+v", to, in.Ingress)
	}
}

// parts are the objects of a text in a fixed order.
func parts(text string) []string {
	all := strings.Split(strings.TrimSpace(text), "\n---\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	slices.Sort(all)
	return all
}

// withoutMonitors leaves out the objects of the Prometheus operator.
func withoutMonitors(text string) string {
	return strings.Join(slices.DeleteFunc(parts(text), func(o string) bool { return strings.Contains(o, "monitoring.coreos.com") }), "\n---\n")
}

// TestMonitors ensures that the operator knows each field of the monitors, and that they lead to
// ports with metrics, by the names in the certificate and through the network policies.
func TestMonitors(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := monitoringv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text := build(t, disk(t, func(_, text string) string { return text }), monitorsFolder)
	seen := 0
	for _, doc := range parts(text) {
		o, _, err := strict.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		seen++
		switch o := o.(type) {
		case *monitoringv1.PodMonitor:
			if o.Name == "blobtail-vmalert" {
				template := file(t, "vmalert.yaml")["Deployment/blobtail-vmalert"].(*appsv1.Deployment).Spec.Template
				if e := o.Spec.PodMetricsEndpoints; len(e) != 1 || e[0].Port == nil || *e[0].Port != template.Spec.Containers[0].Ports[0].Name || e[0].Path != "/metrics" || o.Namespace != "logs" || !selects(&o.Spec.Selector, template.Labels) {
					t.Errorf("it finds no metrics of vmalert: %+v", o.Spec)
				}
				continue
			}
			set := file(t, "ingest.yaml")["StatefulSet/blobtail-ingest"].(*appsv1.StatefulSet)
			e := o.Spec.PodMetricsEndpoints
			if len(e) != 1 || e[0].Port == nil || e[0].Path != "/metrics" || e[0].Authorization == nil || e[0].Authorization.Credentials.Name != "blobtail-metrics" || o.Namespace != "logs" {
				t.Fatalf("%+v", o)
			}
			if !selects(&o.Spec.Selector, set.Spec.Template.Labels) || !slices.ContainsFunc(set.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == *e[0].Port && p.ContainerPort == 8515 }) {
				t.Errorf("it finds no metrics of ingesters: %+v", o.Spec)
			}
		case *monitoringv1.ServiceMonitor:
			all := file(t, "serve.yaml")
			s, d := all["Service/blobtail-serve"].(*corev1.Service), all["Deployment/blobtail-serve"].(*appsv1.Deployment)
			e := o.Spec.Endpoints
			if len(e) != 1 || e[0].Path != "/metrics" || e[0].Scheme.String() != "https" || e[0].Authorization == nil || e[0].TLSConfig == nil || o.Namespace != "logs" {
				t.Fatalf("%+v", o)
			}
			tls := e[0].TLSConfig
			if !selects(&o.Spec.Selector, s.Labels) || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e[0].Port }) {
				t.Errorf("it finds no metrics of serve: %+v", o.Spec)
			}
			host := "--host=" + strings.Replace(*tls.ServerName, ".logs.", ".$(POD_NAMESPACE).", 1)
			if !slices.Contains(d.Spec.Template.Spec.Containers[0].Command, host) || tls.CA.Secret == nil || tls.CA.Secret.Name != "blobtail-tls" || tls.InsecureSkipVerify != nil {
				t.Errorf("%+v", tls)
			}
		default:
			t.Errorf("%T", o)
		}
	}
	if seen != 3 {
		t.Errorf("%d monitors", seen)
	}
}

// TestConfirm ensures that the jobs that a person starts run as the scheduled one does, and never
// by themselves.
func TestConfirm(t *testing.T) {
	all := file(t, "confirm.yaml")
	daily := file(t, "retention.yaml")["CronJob/blobtail-retention"].(*batchv1.CronJob)
	for id, command := range map[string][]string{
		"CronJob/blobtail-plan":    {"/usr/local/bin/retention", "plan", "--config", "/etc/blobtail/blobtail.yaml"},
		"CronJob/blobtail-confirm": {"/usr/local/bin/retention", "apply", "--config", "/etc/blobtail/blobtail.yaml", "--confirm=$(CONFIRM)"},
	} {
		o, ok := all[id].(*batchv1.CronJob)
		if !ok || o.Spec.Suspend == nil || !*o.Spec.Suspend || o.Labels["app.kubernetes.io/name"] != "blobtail" {
			t.Fatalf("%s: %+v", id, o)
		}
		c := &o.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		if !slices.Equal(c.Command, command) {
			t.Errorf("%s runs %q", id, c.Command)
		}
		if strings.HasSuffix(command[len(command)-1], "$(CONFIRM)") {
			last := c.Env[len(c.Env)-1]
			if last.Name != "CONFIRM" {
				t.Errorf("%s: %+v", id, c.Env)
			}
			c.Env = c.Env[:len(c.Env)-1]
		}
		c.Command = daily.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Command
		if !equalJSON(t, o.Spec.JobTemplate, daily.Spec.JobTemplate) {
			t.Errorf("%s differs from the scheduled job by more than its command", id)
		}
	}
}

// equalJSON compares two values as they are written.
func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}
