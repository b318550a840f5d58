package lint

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVmalert ensures that the parts of vmalert.yaml fit each other and serve.yaml: the port, probes,
// mounts, the name of the server; that it has no key of a certificate; and that the policy lets
// nothing through but metrics, names, questions and alerts.
func TestVmalert(t *testing.T) {
	all := file(t, "vmalert.yaml")
	d, ok := all["Deployment/blobtail-vmalert"].(*appsv1.Deployment)
	if !ok {
		t.Fatal("there is no Deployment")
	}
	spec, labels := d.Spec.Template.Spec, d.Spec.Template.Labels
	c := spec.Containers[0]
	s, ok := all["Service/blobtail-vmalert"].(*corev1.Service)
	if !ok || !selects(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, labels) || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8880 || port(c, s.Spec.Ports[0].TargetPort) != 8880 {
		t.Errorf("the Service does not lead to the pods: %+v", s)
	}
	server := file(t, "serve.yaml")["Service/blobtail-serve"].(*corev1.Service)
	for _, want := range []string{"-httpListenAddr=:8880", "-datasource.url=https://" + server.Name + ".$(POD_NAMESPACE).svc:8516/loki", "-rule.validateExpressions=false"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("it lacks %s: %v", want, c.Args)
		}
	}
	for want, p := range map[string]*corev1.Probe{"/-/healthy": c.LivenessProbe, "/-/ready": c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != want || port(c, p.HTTPGet.Port) != 8880 {
			t.Errorf("%s: %+v", want, p)
		}
	}
	var have, mounted []string
	for _, v := range spec.Volumes {
		have = append(have, v.Name)
		if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil || v.Secret == nil && v.ConfigMap == nil {
			t.Errorf("volume %s", v.Name)
		}
		if v.Secret != nil && v.Secret.SecretName == "blobtail-tls" && (len(v.Secret.Items) != 1 || v.Secret.Items[0].Key != "ca.crt") {
			t.Error("it gets the key of the servers")
		}
	}
	for _, m := range c.VolumeMounts {
		if mounted = append(mounted, m.MountPath+"/"); !m.ReadOnly || !slices.Contains(have, m.Name) {
			t.Errorf("mount %s", m.Name)
		}
	}
	for _, arg := range c.Args {
		if _, path, ok := strings.Cut(arg, "=/"); ok && !slices.ContainsFunc(mounted, func(dir string) bool { return strings.HasPrefix("/"+path, dir) }) {
			t.Errorf("nothing mounts the file of %s", arg)
		}
	}
	if all["ServiceAccount/"+spec.ServiceAccountName] == nil {
		t.Errorf("there is no ServiceAccount %s", spec.ServiceAccountName)
	}
	b, ok := all["PodDisruptionBudget/blobtail-vmalert"].(*policyv1.PodDisruptionBudget)
	if !ok || !selects(b.Spec.Selector, labels) || b.Spec.MaxUnavailable.IntVal >= *d.Spec.Replicas {
		t.Errorf("%+v", b)
	}
	n, ok := all["NetworkPolicy/blobtail-vmalert"].(*networkingv1.NetworkPolicy)
	if !ok || !selects(&n.Spec.PodSelector, labels) || len(n.Spec.PolicyTypes) != 2 {
		t.Fatalf("%+v", n)
	}
	const byName = "kubernetes.io/metadata.name="
	checkRules(t, n, c, map[string][]int32{
		"from " + byName + "monitoring": {8880}, "from blobtail-metrics=true": {8880}, "to " + byName + "kube-system": {53, 53}, "to serve": {8516}, "to " + byName + "monitoring": {9093},
	})
}
