package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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

// ingester returns the StatefulSet, and all objects of its file by kind and name.
func ingester(t *testing.T) (*appsv1.StatefulSet, map[string]runtime.Object) {
	t.Helper()
	all := file(t, "ingest.yaml")
	set, ok := all["StatefulSet/blobtail-ingest"].(*appsv1.StatefulSet)
	if !ok {
		t.Fatal("there is no StatefulSet")
	}
	return set, all
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

// TestServices ensures that both Services lead to the port for records of the pods, and
// that one gives each pod a name, ready or not.
func TestServices(t *testing.T) {
	set, all := ingester(t)
	c := set.Spec.Template.Spec.Containers[0]
	seen := 0
	for id, o := range all {
		s, is := o.(*corev1.Service)
		if !is {
			continue
		}
		seen++
		if !selects(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, set.Spec.Template.Labels) {
			t.Errorf("%s does not select the pods: %v", id, s.Spec.Selector)
		}
		for _, p := range s.Spec.Ports {
			if got := port(c, p.TargetPort); got != 8514 || got != p.Port {
				t.Errorf("%s: port %d leads to %d", id, p.Port, got)
			}
		}
		if headless := s.Spec.ClusterIP == corev1.ClusterIPNone; headless != (s.Name == set.Spec.ServiceName) {
			t.Errorf("%s is headless: %v; the pods have their names of %s", id, headless, set.Spec.ServiceName)
		} else if headless != s.Spec.PublishNotReadyAddresses {
			t.Errorf("%s has those that are not ready: %v", id, s.Spec.PublishNotReadyAddresses)
		}
	}
	if seen != 2 {
		t.Errorf("%d services", seen)
	}
	advertised := false
	for _, e := range c.Env {
		host := "$(POD_NAME)." + set.Spec.ServiceName + ".$(POD_NAMESPACE).svc:8514"
		advertised = advertised || e.Name == "BLOBTAIL_ADVERTISE" && strings.HasSuffix(e.Value, "://"+host)
	}
	if !advertised {
		t.Errorf("the pod announces another name than its own: %v", c.Env)
	}
}

// TestProbes ensures that a store that is away takes a pod out of the Service and does
// not restart it.
func TestProbes(t *testing.T) {
	set, _ := ingester(t)
	c := set.Spec.Template.Spec.Containers[0]
	for want, probes := range map[string][]*corev1.Probe{
		"/healthz": {c.StartupProbe, c.LivenessProbe}, "/readyz": {c.ReadinessProbe},
	} {
		for _, p := range probes {
			if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != want || port(c, p.HTTPGet.Port) != 8515 {
				t.Errorf("%s: %+v", want, p)
			}
		}
	}
	if s := c.StartupProbe; s.PeriodSeconds*s.FailureThreshold < 300 {
		t.Errorf("a start gets %d s to read the log back", s.PeriodSeconds*s.FailureThreshold)
	}
}

// TestVolumes ensures that each mount has its volume, that the log is on a claim of one
// pod that nothing deletes, and that each object named exists.
func TestVolumes(t *testing.T) {
	set, all := ingester(t)
	spec := set.Spec.Template.Spec
	claims := set.Spec.VolumeClaimTemplates
	if len(claims) != 1 || !slices.Equal(claims[0].Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}) {
		t.Errorf("claims: %+v", claims)
	}
	if r := set.Spec.PersistentVolumeClaimRetentionPolicy; r == nil || r.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType || r.WhenScaled != r.WhenDeleted {
		t.Errorf("claims are deleted: %+v", r)
	}
	have := []string{claims[0].Name}
	for _, v := range spec.Volumes {
		have = append(have, v.Name)
		if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil {
			t.Errorf("there is no ConfigMap %s", v.ConfigMap.Name)
		}
		if v.HostPath != nil || v.EmptyDir != nil && v.Name != "tmp" {
			t.Errorf("volume %s: the log is not to be there", v.Name)
		}
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		if !slices.Contains(have, m.Name) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	checkTemporary(t, spec)
	if all["ServiceAccount/"+spec.ServiceAccountName] == nil {
		t.Errorf("there is no ServiceAccount %s", spec.ServiceAccountName)
	}
	if g := spec.SecurityContext.FSGroup; g == nil || *g != *spec.SecurityContext.RunAsUser {
		t.Error("a fresh volume belongs to root, and the ingester cannot write to it")
	}
}

// TestDisruption ensures that a drain of nodes takes one ingester at a time.
func TestDisruption(t *testing.T) {
	set, all := ingester(t)
	b, is := all["PodDisruptionBudget/blobtail-ingest"].(*policyv1.PodDisruptionBudget)
	if !is || !selects(b.Spec.Selector, set.Spec.Template.Labels) || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntVal != 1 {
		t.Errorf("%+v", b)
	}
	if *set.Spec.Replicas < 2 {
		t.Error("with one ingester a drain stops all shippers")
	}
}

// TestNetwork ensures that the policy is of the pods, and lets nothing through but the
// records of clients and peers, metrics, names, the store and NATS.
func TestNetwork(t *testing.T) {
	set, all := ingester(t)
	pod := set.Spec.Template.Labels
	n, is := all["NetworkPolicy/blobtail-ingest"].(*networkingv1.NetworkPolicy)
	if !is || !selects(&n.Spec.PodSelector, pod) || len(n.Spec.PolicyTypes) != 2 {
		t.Fatalf("%+v", n)
	}
	const byName = "kubernetes.io/metadata.name="
	want := map[string][]int32{
		"from blobtail-client=true": {8514}, "from ingest": {8514}, "from serve": {8514}, "from " + byName + "monitoring": {8515}, "from blobtail-metrics=true": {8515},
		"to " + byName + "kube-system": {53, 53}, "to ingest": {8514}, "to public": {443}, "to " + byName + "nats": {4222},
	}
	checkRules(t, n, set.Spec.Template.Spec.Containers[0], want)
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
		t.Errorf("%d rules; one has no ports or is told twice: %v", rules, got)
	}
	for id, ports := range want {
		if !slices.Equal(got[id], ports) {
			t.Errorf("%s: ports %v, want %v", id, got[id], ports)
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
