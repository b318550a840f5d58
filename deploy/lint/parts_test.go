package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A workload makes pods of one template.
type workload struct {
	template corev1.PodTemplateSpec
	replicas int32 // 0: one for each node, or for each run
}

// workloadsOf returns the workloads among objects, by kind and name.
func workloadsOf(all map[string]runtime.Object) map[string]workload {
	found := map[string]workload{}
	for id, o := range all {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			found[id] = workload{o.Spec.Template, *o.Spec.Replicas}
		case *appsv1.Deployment:
			found[id] = workload{o.Spec.Template, *o.Spec.Replicas}
		case *appsv1.DaemonSet:
			found[id] = workload{o.Spec.Template, 0}
		case *batchv1.CronJob:
			found[id] = workload{o.Spec.JobTemplate.Spec.Template, 0}
		}
	}
	return found
}

// selected returns the workloads that a selector by labels alone selects. It has to select some.
func selected(t *testing.T, id string, s *metav1.LabelSelector, all map[string]workload) (of []workload) {
	t.Helper()
	for _, w := range all {
		if selects(s, w.template.Labels) {
			of = append(of, w)
		}
	}
	if len(of) == 0 {
		t.Errorf("%s selects no pods: %v", id, s)
	}
	return of
}

// selects reports whether a selector by labels alone selects the pod.
func selects(s *metav1.LabelSelector, pod map[string]string) bool {
	if s == nil || len(s.MatchLabels) == 0 || len(s.MatchExpressions) > 0 {
		return false
	}
	for k, v := range s.MatchLabels {
		if pod[k] != v {
			return false
		}
	}
	return true
}

// port returns the number of a port of the container, by number or name; 0 if it has
// none of the kind.
func port(c corev1.Container, p intstr.IntOrString) int32 {
	for _, have := range c.Ports {
		if p.Type == intstr.String && have.Name == p.StrVal || p.Type == intstr.Int && have.ContainerPort == p.IntVal {
			return have.ContainerPort
		}
	}
	return 0
}

// TestParts ensures that the parts of the manifests fit each other where the API server does not
// look: the objects that pods name, the ports of probes and Services, files of arguments, budgets.
// Package deploy has the pods run by the programs, with these files.
func TestParts(t *testing.T) {
	for _, files := range [][]string{{"ingest.yaml", "serve.yaml", "vmalert.yaml", "retention.yaml", "confirm.yaml"}, {"collect/collect.yaml"}} {
		all := map[string]runtime.Object{}
		for _, name := range files {
			for id, o := range file(t, name) {
				all[id] = o
			}
		}
		pods := workloadsOf(all)
		for id, w := range pods {
			checkPod(t, id, w.template, all)
		}
		for id, o := range all {
			switch o := o.(type) {
			case *corev1.Service:
				for _, w := range selected(t, id, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}, pods) {
					for _, p := range o.Spec.Ports {
						if got := port(w.template.Spec.Containers[0], p.TargetPort); got != p.Port {
							t.Errorf("%s: port %d leads to %d", id, p.Port, got)
						}
					}
				}
			case *policyv1.PodDisruptionBudget:
				for _, w := range selected(t, id, o.Spec.Selector, pods) {
					if o.Spec.MaxUnavailable == nil || o.Spec.MaxUnavailable.IntVal != 1 || w.replicas < 2 {
						t.Errorf("%s: a drain of nodes takes all of %d, or none: %v", id, w.replicas, o.Spec.MaxUnavailable)
					}
				}
			}
		}
	}
}

// checkPod ensures that the objects, ports and files that a pod names are there.
func checkPod(t *testing.T, id string, p corev1.PodTemplateSpec, all map[string]runtime.Object) {
	t.Helper()
	spec, c := p.Spec, p.Spec.Containers[0]
	if all["ServiceAccount/"+spec.ServiceAccountName] == nil {
		t.Errorf("%s: there is no ServiceAccount %q", id, spec.ServiceAccountName)
	}
	// A pod that asks the store needs a token for Azure, and others have none.
	stores := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Value, "azure:") })
	if stores != (p.Labels["azure.workload.identity/use"] == "true") {
		t.Errorf("%s: it has a store of Azure: %v; its labels are %v", id, stores, p.Labels)
	}
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil {
			t.Errorf("%s: there is no ConfigMap %s", id, v.ConfigMap.Name)
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil && port(c, probe.HTTPGet.Port) == 0 {
			t.Errorf("%s: no port of the probe %+v", id, probe.HTTPGet)
		}
	}
	for _, arg := range append(c.Args, c.Command[min(1, len(c.Command)):]...) {
		_, path, named := strings.Cut(arg, "=/")
		if named && !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix("/"+path, m.MountPath+"/") }) {
			t.Errorf("%s: nothing mounts the file of %s", id, arg)
		}
	}
	tmp := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "tmp" && v.EmptyDir != nil && !v.EmptyDir.SizeLimit.IsZero()
	})
	mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "tmp" && m.MountPath == "/tmp" && !m.ReadOnly })
	if len(c.Ports) > 0 && !strings.Contains(c.Image, "vmalert") && (!tmp || !mounted) {
		t.Errorf("%s: its root is read-only, and there is no bounded place for temporary files", id)
	}
}

// TestIngesters ensures that each pod has its name also while it is not ready, that its log is on a
// claim of one pod that nothing deletes and that it can write to, and that a store that is away takes
// it out of the Service and does not restart it.
func TestIngesters(t *testing.T) {
	all := file(t, "ingest.yaml")
	set, ok := all["StatefulSet/blobtail-ingest"].(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("there is no StatefulSet")
	}
	peers, ok := all["Service/"+set.Spec.ServiceName].(*corev1.Service)
	if !ok || peers.Spec.ClusterIP != corev1.ClusterIPNone || !peers.Spec.PublishNotReadyAddresses {
		t.Errorf("the pods have no names before they are ready: %+v", peers)
	}
	claims, spec := set.Spec.VolumeClaimTemplates, set.Spec.Template.Spec
	if len(claims) != 1 || !slices.Equal(claims[0].Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}) {
		t.Errorf("claims: %+v", claims)
	}
	if r := set.Spec.PersistentVolumeClaimRetentionPolicy; r == nil || r.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType || r.WhenScaled != r.WhenDeleted {
		t.Errorf("claims are deleted: %+v", r)
	}
	if g := spec.SecurityContext.FSGroup; g == nil || *g != *spec.SecurityContext.RunAsUser {
		t.Error("a fresh volume belongs to root, and the ingester cannot write to it")
	}
	c := spec.Containers[0]
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.StartupProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("a store that is away restarts the pods, or does not take them out")
	}
	if s := c.StartupProbe; s.PeriodSeconds*s.FailureThreshold < 300 {
		t.Errorf("a start gets %d s to read the log back", s.PeriodSeconds*s.FailureThreshold)
	}
}

// TestNetwork ensures that the policies let through what the programs ask of each other, of the store
// and of the cluster, and what clients, readers and Prometheus ask of them, and nothing else.
func TestNetwork(t *testing.T) {
	const monitoring, metrics, dns = "kubernetes.io/metadata.name=monitoring", "blobtail-metrics=true", "kubernetes.io/metadata.name=kube-system"
	for name, want := range map[string]map[string][]int32{
		"ingest.yaml": {
			"from blobtail-client=true": {8514}, "from ingest": {8514}, "from serve": {8514}, "from " + monitoring: {8515}, "from " + metrics: {8515},
			"to " + dns: {53, 53}, "to ingest": {8514}, "to public": {443}, "to kubernetes.io/metadata.name=nats": {4222},
		},
		"serve.yaml": {
			"from blobtail-reader=true": {8516}, "from vmalert": {8516}, "from " + monitoring: {8516}, "from " + metrics: {8516},
			"to " + dns: {53, 53}, "to ingest": {8514}, "to public": {443},
		},
		"vmalert.yaml": {
			"from " + monitoring: {8880}, "from " + metrics: {8880}, "to " + dns: {53, 53}, "to serve": {8516}, "to " + monitoring: {9093},
		},
		"collect/collect.yaml": {
			"from " + monitoring: {2020}, "from " + metrics: {2020}, "to " + dns: {53, 53}, "to kubernetes.io/metadata.name=logs": {8514}, "to public": {443, 6443},
		},
	} {
		all := file(t, name)
		pods, found := workloadsOf(all), 0
		for id, o := range all {
			n, ok := o.(*networkingv1.NetworkPolicy)
			if !ok {
				continue
			}
			found++
			if len(n.Spec.PolicyTypes) != 2 {
				t.Errorf("%s lets all through in one direction", id)
			}
			for _, w := range selected(t, id, &n.Spec.PodSelector, pods) {
				checkRules(t, n, w.template.Spec.Containers[0], want)
			}
		}
		if found != 1 {
			t.Errorf("%s has %d policies", name, found)
		}
	}
	if n := file(t, "collect/collect.yaml")["Namespace/logs-collect"].(*corev1.Namespace); n.Labels["blobtail-client"] != "true" {
		t.Errorf("the ingesters do not let the collector in: %v", n.Labels)
	}
}

// checkRules ensures that a policy has the rules that are wanted, by their other ends and
// ports, and no others.
func checkRules(t *testing.T, n *networkingv1.NetworkPolicy, c corev1.Container, want map[string][]int32) {
	t.Helper()
	got := map[string][]int32{}
	for _, r := range n.Spec.Ingress {
		for _, p := range r.Ports {
			id := "from " + end(t, r.From)
			got[id] = append(got[id], port(c, *p.Port))
		}
	}
	for _, r := range n.Spec.Egress {
		for _, p := range r.Ports {
			id := "to " + end(t, r.To)
			got[id] = append(got[id], p.Port.IntVal)
		}
	}
	if rules := len(n.Spec.Ingress) + len(n.Spec.Egress); rules != len(want) {
		t.Errorf("%s: %d rules; one has no ports or is told twice: %v", n.Name, rules, got)
	}
	for id, ports := range want {
		if !slices.Equal(got[id], ports) {
			t.Errorf("%s: %s: ports %v, want %v", n.Name, id, got[id], ports)
		}
	}
}

// end names the other end of a rule: a component of blobtail, a label of a namespace, or all
// public addresses.
func end(t *testing.T, peers []networkingv1.NetworkPolicyPeer) string {
	t.Helper()
	if len(peers) != 1 {
		t.Fatalf("%d peers: a rule without any is for all", len(peers))
	}
	switch p := peers[0]; {
	case p.IPBlock != nil:
		if p.IPBlock.CIDR == "0.0.0.0/0" && !slices.Contains(p.IPBlock.Except, "169.254.0.0/16") {
			t.Error("the metadata of the node can be asked")
		}
		return "public"
	case p.NamespaceSelector == nil && p.PodSelector != nil && p.PodSelector.MatchLabels["app.kubernetes.io/name"] == "blobtail":
		return p.PodSelector.MatchLabels["app.kubernetes.io/component"]
	case p.NamespaceSelector != nil && len(p.NamespaceSelector.MatchLabels) == 1:
		for k, v := range p.NamespaceSelector.MatchLabels {
			return k + "=" + v
		}
	}
	return "all"
}

// file returns the objects of a manifest by kind and name.
func file(t *testing.T, base string) map[string]runtime.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, base))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]runtime.Object{}
	for _, o := range objects(t, text) {
		all[name(t, o)] = o
	}
	return all
}
