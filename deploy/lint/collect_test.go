package lint

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const collectFile = "collect/collect.yaml"

// collector returns the DaemonSet, and all objects of its file by kind and name.
func collector(t *testing.T) (*appsv1.DaemonSet, map[string]runtime.Object) {
	t.Helper()
	all := file(t, collectFile)
	set, ok := all["DaemonSet/blobtail-collect"].(*appsv1.DaemonSet)
	if !ok {
		t.Fatal("there is no DaemonSet")
	}
	return set, all
}

// TestCollectValid ensures that the API server would create each object of the collector and warn
// of nothing, and that kustomize builds its folder into its own namespace.
func TestCollectValid(t *testing.T) {
	_, all := collector(t)
	for id, o := range all {
		for _, c := range complaints(t, o) {
			t.Errorf("%s: %s", id, c)
		}
	}
	kustomize(t, manifests+"/collect", "logs-collect", len(all))
}

// TestCollectRights ensures that the collector has no more rights than it needs: what the profile
// "restricted" refuses is the user root and the two folders of the node, of which it may write to
// its own alone; and its role reads pods and namespaces.
func TestCollectRights(t *testing.T) {
	set, all := collector(t)
	spec := set.Spec.Template.Spec
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, r := range e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &set.Spec.Template.ObjectMeta, &spec) {
		if !r.Allowed {
			refused = append(refused, r.ForbiddenReason)
		}
	}
	slices.Sort(refused)
	if want := []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}; !slices.Equal(refused, want) {
		t.Errorf("restricted refuses %q, want %q", refused, want)
	}
	n, ok := all["Namespace/logs-collect"].(*corev1.Namespace)
	if !ok || n.Labels["pod-security.kubernetes.io/enforce"] != "privileged" || n.Labels["blobtail-client"] != "true" {
		t.Errorf("the namespace does not let it in, or does not let it out: %v", n)
	}
	c := spec.Containers[0]
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation {
		t.Error("it can write to its root")
	}
	if c.Resources.Limits.Memory().IsZero() || len(spec.Containers) != 1 || spec.HostNetwork || spec.HostPID {
		t.Error("no limit of memory, another container, or parts of the node")
	}
	paths := map[string]string{}
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			paths[v.Name] = v.HostPath.Path
		}
	}
	for _, m := range c.VolumeMounts {
		if path, of := paths[m.Name]; of && m.MountPath != path || !m.ReadOnly && m.Name != "state" && m.Name != "tmp" {
			t.Errorf("mount %s at %s of %s", m.Name, m.MountPath, path)
		}
	}
	role, ok := all["ClusterRole/blobtail-collect"].(*rbacv1.ClusterRole)
	if !ok || len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"pods", "namespaces"}) ||
		!slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("%+v", role)
	}
	b, ok := all["ClusterRoleBinding/blobtail-collect"].(*rbacv1.ClusterRoleBinding)
	if !ok || b.RoleRef.Name != role.Name || len(b.Subjects) != 1 || b.Subjects[0].Name != spec.ServiceAccountName || b.Subjects[0].Namespace != set.Namespace {
		t.Errorf("%+v", b)
	}
}

// TestCollectParts ensures that the parts fit each other: selectors, probes, mounts, the secret, the
// ConfigMap and the policies at both ends.
func TestCollectParts(t *testing.T) {
	set, all := collector(t)
	spec, labels := set.Spec.Template.Spec, set.Spec.Template.Labels
	c := spec.Containers[0]
	if !selects(set.Spec.Selector, labels) || all["ServiceAccount/"+spec.ServiceAccountName] == nil {
		t.Error("it selects other pods, or has no account")
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || port(c, p.HTTPGet.Port) != 2020 {
			t.Errorf("%+v", p)
		}
	}
	var volumes []string
	for _, v := range spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil {
			t.Errorf("there is no ConfigMap %s", v.ConfigMap.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(volumes, m.Name) {
			t.Errorf("mount %s", m.Name)
		}
	}
	checkTemporary(t, spec)
	if !slices.ContainsFunc(spec.Tolerations, func(l corev1.Toleration) bool {
		return l.Operator == corev1.TolerationOpExists && l.Key == "" && l.Effect == ""
	}) {
		t.Errorf("some nodes have none: %v", spec.Tolerations)
	}
	n, ok := all["NetworkPolicy/blobtail-collect"].(*networkingv1.NetworkPolicy)
	if !ok || !selects(&n.Spec.PodSelector, labels) || len(n.Spec.PolicyTypes) != 2 {
		t.Fatalf("%+v", n)
	}
	const byName = "kubernetes.io/metadata.name="
	checkRules(t, n, c, map[string][]int32{
		"from " + byName + "monitoring": {2020}, "from blobtail-metrics=true": {2020}, "to " + byName + "kube-system": {53, 53}, "to " + byName + "logs": {8514}, "to public": {443, 6443},
	})
	policies := file(t, "ingest.yaml")
	in, ok := policies["NetworkPolicy/blobtail-ingest"].(*networkingv1.NetworkPolicy)
	if !ok || !slices.ContainsFunc(in.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return strings.HasPrefix(end(t, r.From), "blobtail-client=")
	}) {
		t.Error("the ingesters do not let the namespace in")
	}
}
