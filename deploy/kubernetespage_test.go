package deploy

import (
	"crypto/tls"
	"crypto/x509"
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
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/dir"
)

// noting stands in for kubectl. It keeps the files of each secret in a folder of its name, and
// notes all arguments.
const noting = `#!/bin/sh
set -eu
echo "$*" >>"$KEPT/calls"
case $* in
"apply -f -") cat >/dev/null ;;
"create secret generic "*)
	shift 3
	name=
	for arg; do
		case $arg in
		blobtail-*) name=$arg; mkdir "$KEPT/$name" ;;
		--from-file=*) cp "${arg#--from-file=}" "$KEPT/$name/" ;;
		esac
	done
	;;
esac
`

// commands returns the blocks of commands of the page that a test of deploy/ runs with a kubectl
// that keeps the files.
func commands(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile("(?s)runs it with a kubectl that keeps the files -->\n```sh\n(.*?)```").FindAllStringSubmatch(read(t, kubernetesPage), -1)
	if len(found) != 2 {
		t.Fatalf("%d blocks", len(found))
	}
	return found[0][1] + found[1][1]
}

// TestKubernetesPage runs the commands of the page, for another namespace. The secrets have the
// files that the manifests name, the certificate is good for each name, and the tokens for
// Prometheus are of the two programs.
func TestKubernetesPage(t *testing.T) {
	need(t, "sh", "openssl", "curl")
	folder, kept, bin := t.TempDir(), t.TempDir(), t.TempDir()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(here, filepath.Join(folder, "deploy")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ingester(t), filepath.Join(bin, "ingest")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(noting), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-eu", "-c", strings.Replace(commands(t), "ns=logs\n", "ns=observability\n", 1))
	cmd.Dir, cmd.Env = folder, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "KEPT=" + kept, "HOME=" + folder}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls := read(t, filepath.Join(kept, "calls"))
	for _, m := range regexp.MustCompile(`-k (\S+)`).FindAllStringSubmatch(calls, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1], "kustomization.yaml")); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(calls, "-n observability") || strings.Contains(calls, "-n logs") || !strings.Contains(calls, "apply -k") {
		t.Errorf("it calls\n%s", calls)
	}
	for secret, want := range map[string][]string{
		"blobtail-tls": {"ca.crt", "tls.crt", "tls.key"}, "blobtail-access": {"peer", "tokens.yaml"},
		"blobtail-serve-access": {"reader", "session", "tokens.yaml"}, "blobtail-metrics": {"ingest", "serve"}, "blobtail-vmalert": {"token"},
	} {
		var names []string
		entries, err := os.ReadDir(filepath.Join(kept, secret))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s has %v, %v", secret, names, err)
		}
	}
	file := func(parts ...string) string { return filepath.Join(append([]string{kept}, parts...)...) }
	pair, err := tls.LoadX509KeyPair(file("blobtail-tls", "tls.crt"), file("blobtail-tls", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, file("blobtail-tls", "ca.crt"))))
	for _, name := range []string{"blobtail-ingest.observability.svc", "blobtail-ingest-1.blobtail-peers.observability.svc", "blobtail-serve.observability.svc", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Error(err)
		}
	}
	store := "BLOBTAIL_STORE=dir:" + filepath.Join(folder, "store")
	secure := []string{"--tls-cert=" + file("blobtail-tls", "tls.crt"), "--tls-key=" + file("blobtail-tls", "tls.key")}
	r := start(t, ingester(t), store, "BLOBTAIL_TOKENS="+file("blobtail-access", "tokens.yaml"), "BLOBTAIL_CA="+file("blobtail-tls", "ca.crt"))
	serve := startServe(t, []string{store, "HOME=" + folder}, append(secure, "serve", "--live-url=off", "--behind-proxy", "--tokens="+file("blobtail-serve-access", "tokens.yaml"))...)
	// This host reads metrics without a token, so the server takes the client for another one.
	ask := func(at, token string) string {
		return curl(t, "--cacert", file("blobtail-tls", "ca.crt"), "-H", "X-Forwarded-For: 10.0.0.9", "-H", "Authorization: Bearer "+strings.TrimSpace(token), at)
	}
	for token, want := range map[string]string{read(t, file("blobtail-metrics", "serve")): "200", read(t, file("blobtail-metrics", "ingest")): "401"} {
		if got := ask(serve+"/metrics", token); got != want {
			t.Errorf("%s/metrics answers %s, want %s", serve, got, want)
		}
	}
	// The ingester knows the other token, and lets it read no records.
	for token, want := range map[string]string{read(t, file("blobtail-metrics", "ingest")): "403", read(t, file("blobtail-metrics", "serve")): "401"} {
		if got := ask("http://"+r.records+"/live/web", token); got != want {
			t.Errorf("%s answers %s, want %s", r.records, got, want)
		}
	}
}

// TestConfirmJobs carries out a policy in a directory by the commands of the jobs of confirm.yaml,
// as docs/KUBERNETES.md says it: a scheduled run is refused, the plan has a hash, and that alone
// confirms it.
func TestConfirmJobs(t *testing.T) {
	folder := t.TempDir()
	root := filepath.Join(folder, "store")
	store, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for day := range 100 {
		at := time.Now().UTC().AddDate(0, 0, -day).Truncate(24 * time.Hour)
		meta := blobfmt.Meta{First: at.UnixNano(), Last: at.UnixNano(), Records: 1, RawBytes: 1}
		key := blobfmt.Name{Service: "web", Period: at, Number: 1}.String()
		if err := store.Create(t.Context(), key, []byte("x"), storage.Attrs{Metadata: meta.Map()}); err != nil {
			t.Fatal(err)
		}
	}
	all := objects(t)
	file := filepath.Join(folder, "blobtail.yaml")
	if err := os.WriteFile(file, []byte(all["ConfigMap/blobtail-retention"].Data["blobtail.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name, confirm string) (string, int) {
		t.Helper()
		c := all["CronJob/"+name].Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		if _, asked := env["CONFIRM"]; asked && confirm != "" {
			env["CONFIRM"] = confirm // as kubectl set env does
		}
		var args []string
		for _, arg := range c.Command[1:] {
			args = append(args, strings.Replace(expand(arg, env), "/etc/blobtail/blobtail.yaml", file, 1))
		}
		cmd := exec.Command(testkit.Command(t, "..", "retention"), args...)
		cmd.Env = []string{"BLOBTAIL_STORE=dir:" + root}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	hash := regexp.MustCompile(`--confirm ([0-9a-f]+)`)
	refused, code := run("blobtail-retention", "")
	if code != 2 || !hash.MatchString(refused) {
		t.Fatalf("%d\n%s", code, refused)
	}
	plan, code := run("blobtail-plan", "")
	if code != 0 || !strings.Contains(plan, "apply will want --confirm ") {
		t.Fatalf("%d\n%s", code, plan)
	}
	if found := hash.FindString(refused); found != hash.FindString(plan) {
		t.Errorf("the refused run says %s, and the plan says\n%s", found, plan)
	}
	for _, wrong := range []string{"", "0123456789abcdef"} {
		if out, code := run("blobtail-confirm", wrong); code != 2 || !strings.Contains(out, "nothing was done") {
			t.Errorf("with %q: %d\n%s", wrong, code, out)
		}
	}
	if out, code := run("blobtail-confirm", hash.FindStringSubmatch(plan)[1]); code != 0 {
		t.Errorf("%d\n%s", code, out)
	}
	if out, code := run("blobtail-retention", ""); code != 0 {
		t.Errorf("the next run: %d\n%s", code, out)
	}
}

// TestCollectorNamespace ensures that the page names each place of the collector that has the
// namespace of the ingesters: a site cannot set it there.
func TestCollectorNamespace(t *testing.T) {
	text := regexp.MustCompile(`(?m)^ *#.*$`).ReplaceAllString(read(t, "kubernetes/collect/collect.yaml"), "")
	found := regexp.MustCompile(`[.: ]logs(\.svc|\}|$)`).FindAllString(text, -1)
	if len(found) != 2 || !strings.Contains(text, "host: blobtail-ingest.logs.svc") || !strings.Contains(read(t, kubernetesPage), "change it in two places") {
		t.Errorf("the namespace is in %q", found)
	}
}

// TestSiteFiles ensures that the site of the example has no key that nothing uses.
func TestSiteFiles(t *testing.T) {
	var o object
	if err := yaml.Unmarshal([]byte(read(t, "kubernetes-site/site.yaml")), &o); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	kustomization, page := read(t, "kubernetes-site/kustomization.yaml"), read(t, kubernetesPage)
	if len(o.Data) == 0 {
		t.Error("it has no settings")
	}
	for key := range o.Data {
		if !strings.Contains(kustomization, "fieldPath: data."+key+"}") || !strings.Contains(page, "`"+key+"`") {
			t.Errorf("%s: kustomization.yaml or docs/KUBERNETES.md does not name it", key)
		}
	}
}
