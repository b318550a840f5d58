// Package lint checks the files of deploy/ as their readers do, by the libraries of
// those: the registry and the profiles of pods of Kubernetes, the loader of Compose, the
// linter of BuildKit. It has tests only. Package deploy holds the same files against
// blobtail's own programs.
package lint

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	kubepolicy "k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = "../kubernetes"

// objects decodes each object of a manifest. A field that Kubernetes does not know, or
// that stands there twice, fails the test.
func objects(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := strict.Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		all = append(all, o)
	}
}

// manifest returns the objects of all files of the folder but kustomization.yaml.
func manifest(t *testing.T) []runtime.Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	var all []runtime.Object
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects(t, text)...)
	}
	return all
}

func name(t *testing.T, o runtime.Object) string {
	t.Helper()
	m, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	return o.GetObjectKind().GroupVersionKind().Kind + "/" + m.GetName()
}

// validate returns the errors and the warnings of the API server for a new object. ok is false for
// a kind that is not known here.
func validate(t *testing.T, o runtime.Object) (wrong field.ErrorList, warnings []string, ok bool) {
	t.Helper()
	template := field.NewPath("spec", "template")
	switch o := o.(type) {
	case *apps.StatefulSet:
		wrong = appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{}, pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
		warnings = pod.GetWarningsForPodTemplate(t.Context(), template, &o.Spec.Template, nil)
	case *apps.Deployment:
		wrong = appsvalidation.ValidateDeployment(o, pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
		warnings = pod.GetWarningsForPodTemplate(t.Context(), template, &o.Spec.Template, nil)
	case *apps.DaemonSet:
		wrong = appsvalidation.ValidateDaemonSet(o, pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
		warnings = pod.GetWarningsForPodTemplate(t.Context(), template, &o.Spec.Template, nil)
	case *autoscaling.HorizontalPodAutoscaler:
		// Its fields were read strictly. The rest would need the interpreter of CEL.
	case *batch.CronJob:
		p := &o.Spec.JobTemplate.Spec.Template
		wrong = batchvalidation.ValidateCronJobCreate(o, pod.GetValidationOptionsFromPodTemplate(p, nil))
		warnings = pod.GetWarningsForPodTemplate(t.Context(), template, p, nil)
	case *core.ConfigMap:
		wrong = corevalidation.ValidateConfigMap(o)
	case *core.Namespace:
		wrong = corevalidation.ValidateNamespace(o)
	case *core.Service:
		if o.Spec.ClusterIP != "" { // its storage copies it before it validates
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		wrong = corevalidation.ValidateServiceCreate(o)
	case *core.ServiceAccount:
		wrong = corevalidation.ValidateServiceAccount(o)
	case *networking.NetworkPolicy:
		wrong = networkvalidation.ValidateNetworkPolicy(o, networkvalidation.NetworkPolicyValidationOptions{})
	case *rbac.ClusterRole:
		wrong = rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	case *rbac.ClusterRoleBinding:
		wrong = rbacvalidation.ValidateClusterRoleBinding(o)
	case *kubepolicy.PodDisruptionBudget:
		wrong = policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	default:
		return nil, nil, false
	}
	return wrong, warnings, true
}

// complaints returns the errors and the warnings that the API server would have for an
// object: its own code sets defaults, converts and validates here.
func complaints(t *testing.T, o runtime.Object) []string {
	t.Helper()
	legacyscheme.Scheme.Default(o)
	internal, err := legacyscheme.Scheme.ConvertToVersion(o, runtime.InternalGroupVersioner)
	if err != nil {
		return []string{err.Error()}
	}
	m, err := meta.Accessor(internal)
	if err != nil {
		t.Fatal(err)
	}
	if !ofCluster(o) {
		m.SetNamespace(cmp.Or(m.GetNamespace(), "logs"))
	}
	wrong, found, ok := validate(t, internal)
	if !ok {
		found = append(found, "no validation is known here; add that of its kind")
	}
	for _, err := range wrong {
		found = append(found, err.Error())
	}
	return found
}

// ofCluster reports whether an object is in no namespace.
func ofCluster(o runtime.Object) bool {
	switch o.(type) {
	case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return true
	}
	return false
}

// TestValid ensures that the API server would create each object, and warn of nothing.
func TestValid(t *testing.T) {
	for _, o := range append(manifest(t), slices.Collect(maps.Values(file(t, collectFile)))...) {
		for _, c := range complaints(t, o) {
			t.Errorf("%s: %s", name(t, o), c)
		}
	}
}

// TestInvalid ensures that TestValid can fail.
func TestInvalid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(manifests, "ingest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"quantity": {"storage: 16Gi", "storage: -16Gi", "must be greater than zero"},
		"labels":   {"matchLabels: {app.kubernetes.io/name: blobtail, app.kubernetes.io/component: ingest}\n  template", "matchLabels: {app: x}\n  template", "`selector` does not match"},
		"mount":    {"{name: log, mountPath", "{name: lock, mountPath", "Not found"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(text), c.old, c.new, 1)
			if changed == string(text) {
				t.Fatalf("there is no %q", c.old)
			}
			var all []string
			for _, o := range objects(t, []byte(changed)) {
				all = append(all, complaints(t, o)...)
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("it says %q, want %q", all, c.want)
			}
		})
	}
}

const collectFile = "collect/collect.yaml"

// TestRestricted ensures that the profile "restricted" of Kubernetes lets the pods in, whose root is
// read-only and who get no token for Kubernetes. Of the collector it refuses the user root and the
// folders of the node, and its role only reads.
func TestRestricted(t *testing.T) {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]runtime.Object{}
	for _, o := range manifest(t) {
		all[name(t, o)] = o
	}
	collect := file(t, collectFile)
	maps.Copy(all, collect)
	for id, w := range workloadsOf(all) {
		var refused, want []string
		for _, r := range e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &w.template.ObjectMeta, &w.template.Spec) {
			if !r.Allowed {
				refused = append(refused, r.ForbiddenReason)
			}
		}
		token := w.template.Spec.AutomountServiceAccountToken
		if collect[id] != nil {
			want = []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}
		} else if token == nil || *token {
			t.Errorf("%s: it gets a token for Kubernetes", id)
		}
		if slices.Sort(refused); !slices.Equal(refused, want) {
			t.Errorf("%s: restricted refuses %q, want %q", id, refused, want)
		}
		for _, c := range w.template.Spec.Containers {
			if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: it can write to its root", id)
			}
		}
	}
	role, ok := collect["ClusterRole/blobtail-collect"].(*rbacv1.ClusterRole)
	if !ok || len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("%+v", role)
	}
}

// TestKustomize ensures that the folders build with kustomize, each into one namespace, and
// that the API server knows the result.
func TestKustomize(t *testing.T) {
	kustomize(t, manifests, "logs", len(manifest(t)))
	kustomize(t, manifests+"/collect", "logs-collect", len(file(t, collectFile)))
}

// kustomize builds a folder and wants so many objects in a namespace.
func kustomize(t *testing.T, folder, namespace string, want int) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, text)
	if len(all) != want {
		t.Errorf("%d objects of %d", len(all), want)
	}
	for _, o := range all {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		if !ofCluster(o) && m.GetNamespace() != namespace {
			t.Errorf("%s is in namespace %q", name(t, o), m.GetNamespace())
		}
	}
}
