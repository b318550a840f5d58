package lint

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkTemporary ensures that a pod with a read-only root has a bounded place for temporary files.
func checkTemporary(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	mounted := slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "tmp" && m.MountPath == "/tmp" && !m.ReadOnly
	})
	if !mounted || !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "tmp" && v.EmptyDir != nil && !v.EmptyDir.SizeLimit.IsZero()
	}) {
		t.Error("there is no place for temporary files")
	}
}

// TestServe ensures that the parts of serve.yaml fit each other: ports, probes, mounts and
// selectors; that a drain of nodes leaves one server; and that the policy lets nothing
// through but questions of readers, metrics, names, the ingesters and the store.
func TestServe(t *testing.T) {
	all := file(t, "serve.yaml")
	d, ok := all["Deployment/blobtail-serve"].(*appsv1.Deployment)
	if !ok {
		t.Fatal("there is no Deployment")
	}
	spec, labels := d.Spec.Template.Spec, d.Spec.Template.Labels
	c := spec.Containers[0]
	s, ok := all["Service/blobtail-serve"].(*corev1.Service)
	if !ok || !selects(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, labels) || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8516 || port(c, s.Spec.Ports[0].TargetPort) != 8516 {
		t.Errorf("the Service does not lead to the pods: %+v", s)
	}
	if !slices.Contains(c.Command, "--listen=0.0.0.0:8516") || !slices.Contains(c.Command, "--host="+s.Name+".$(POD_NAMESPACE).svc") {
		t.Errorf("the server has another address or name: %v", c.Command)
	}
	for want, p := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != want || p.HTTPGet.Scheme != corev1.URISchemeHTTPS || port(c, p.HTTPGet.Port) != 8516 {
			t.Errorf("%s: %+v", want, p)
		}
	}
	var have []string
	for _, v := range spec.Volumes {
		have = append(have, v.Name)
		if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil || v.HostPath != nil || v.PersistentVolumeClaim != nil {
			t.Errorf("volume %s", v.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly && m.Name != "tmp" || !slices.Contains(have, m.Name) {
			t.Errorf("mount %s", m.Name)
		}
	}
	checkTemporary(t, spec)
	if all["ServiceAccount/"+spec.ServiceAccountName] == nil {
		t.Errorf("there is no ServiceAccount %s", spec.ServiceAccountName)
	}
	b, ok := all["PodDisruptionBudget/blobtail-serve"].(*policyv1.PodDisruptionBudget)
	if !ok || !selects(b.Spec.Selector, labels) || b.Spec.MaxUnavailable.IntVal >= *d.Spec.Replicas {
		t.Errorf("%+v", b)
	}
	n, ok := all["NetworkPolicy/blobtail-serve"].(*networkingv1.NetworkPolicy)
	if !ok || !selects(&n.Spec.PodSelector, labels) || len(n.Spec.PolicyTypes) != 2 {
		t.Fatalf("%+v", n)
	}
	const byName = "kubernetes.io/metadata.name="
	checkRules(t, n, c, map[string][]int32{
		"from blobtail-reader=true": {8516}, "from vmalert": {8516}, "from " + byName + "monitoring": {8516}, "from blobtail-metrics=true": {8516},
		"to " + byName + "kube-system": {53, 53}, "to ingest": {8514}, "to public": {443},
	})
}
