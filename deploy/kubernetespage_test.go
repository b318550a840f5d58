package deploy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestKubernetesPage runs the commands of the page, for another namespace, and then what they install:
// two ingesters and a server, with the commands and settings of their pods, to which each secret is
// mounted as the commands made it. Clients have the tokens of the page. A reader of one ingester gets
// the records that the other holds. The certificate is good for each name. vmalert and the monitors name
// secrets that the commands made.
func TestKubernetesPage(t *testing.T) {
	need(t, "sh", "openssl", "curl")
	const namespace = "observability"
	folder, kept := t.TempDir(), t.TempDir()
	runPage(t, folder, kept, namespace)
	token := func(name string) string { return strings.TrimSpace(read(t, filepath.Join(folder, "secrets", name))) }
	ca, bin, store := filepath.Join(kept, "blobtail-tls", "ca.crt"), ingester(t), "BLOBTAIL_STORE=dir:"+filepath.Join(folder, "store")

	_, conf := mounted(t, kept, "ingest.yaml", "StatefulSet", "blobtail-ingest")
	var asked, holds running
	for i, r := range []*running{&asked, &holds} {
		*r = start(t, bin, "BLOBTAIL_CONFIG="+conf, store, fmt.Sprintf("BLOBTAIL_WAL=%s/wal-%d", folder, i))
	}
	pod, conf := mounted(t, kept, "serve.yaml", "Deployment", "blobtail-serve")
	set := environ(t, pod.Containers[0], namespace)
	if set["BLOBTAIL_LIVE"] != "https://blobtail-ingest."+namespace+".svc:8514" {
		t.Errorf("it asks %s", set["BLOBTAIL_LIVE"])
	}
	var args []string
	for _, arg := range within(pod.Containers[0].Command[1:], map[string]string{"/etc/blobtail": filepath.Dir(conf)}) {
		args = append(args, expand(arg, set))
	}
	serve := startServe(t, []string{store, "BLOBTAIL_LIVE=https://" + asked.records, "HOME=" + folder}, append(args, "--behind-proxy")...)

	checkReads(t, serve, ca, token("grafana"), holds.records, token("web"))
	// This host reads metrics without a token, so the server takes the client for another one.
	ask := func(at, token string) string {
		return curl(t, "--cacert", ca, "-H", "X-Forwarded-For: 10.0.0.9", "-H", "Authorization: Bearer "+token, at)
	}
	byName := "blobtail-serve." + namespace + ".svc"
	port := serve[strings.LastIndex(serve, ":")+1:]
	worker := startWorker(t, kept, namespace, store)
	workersName := "blobtail-workers." + namespace + ".svc"
	services := func(token string) string {
		at := workersName + ":" + worker[strings.LastIndex(worker, ":")+1:]
		return curl(t, "--cacert", ca, "-H", "Authorization: Bearer "+token, "--resolve", at+":127.0.0.1", "https://"+at+"/api/v1/services")
	}
	for name, c := range map[string][2]string{
		"a service of others":               {curl(t, "--cacert", ca, "-H", "Authorization: Bearer "+token("web"), "-d", "x", "https://"+holds.records+"/ingest/orders"), "403"},
		"metrics of the server":             {ask(serve+"/metrics", token("metrics/serve")), "200"},
		"by the ingesters' token":           {ask(serve+"/metrics", token("metrics/ingest")), "401"},
		"records by that token":             {ask("https://"+holds.records+"/live/web", token("metrics/ingest")), "403"},
		"records by the token of metrics":   {ask("https://"+holds.records+"/live/web", token("metrics/serve")), "401"},
		"the server by its Service's name":  {curl(t, "--cacert", ca, "-H", "Authorization: Bearer "+token("rules/token"), "--resolve", byName+":"+port+":127.0.0.1", "https://"+byName+":"+port+"/loki/api/v1/labels"), "200"},
		"a worker, as the server asks it":   {services(token("serve/reader")), "200"},
		"a worker, by a reader":             {services(token("grafana")), "401"},
		"the token of the secret for rules": {ask(serve+"/api/v1/services", strings.TrimSpace(read(t, filepath.Join(kept, "blobtail-vmalert", "token")))), "200"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: it answers %s, want %s", name, c[0], c[1])
		}
	}
	for file, secrets := range map[string]*regexp.Regexp{
		"kubernetes/vmalert.yaml":           regexp.MustCompile(`secretName: ([\w-]+)(?:.*\{key: ([\w.-]+))?`),
		"kubernetes-monitors/monitors.yaml": regexp.MustCompile(`credentials: \{name: ([\w-]+), key: ([\w.-]+)`),
	} {
		for _, m := range secrets.FindAllStringSubmatch(read(t, file), -1) {
			read(t, filepath.Join(kept, m[1], cmp.Or(m[2], "token")))
		}
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(kept, "blobtail-tls", "tls.crt"), filepath.Join(kept, "blobtail-tls", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"blobtail-ingest." + namespace + ".svc", "blobtail-ingest-1.blobtail-peers." + namespace + ".svc", byName, workersName} {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

// startWorker runs a worker as its pod does, with the kept files of secrets, and returns its URL.
func startWorker(t *testing.T, kept, namespace, store string) string {
	t.Helper()
	pod, _ := manifestOf(t, "../kubernetes-workers/workers.yaml", "Deployment", "blobtail-workers")
	c, folders := pod.Containers[0], map[string]string{}
	for _, v := range pod.Volumes {
		if at := slices.IndexFunc(c.VolumeMounts, func(m mount) bool { return m.Name == v.Name }); v.Secret.Name != "" {
			folders[c.VolumeMounts[at].MountPath] = filepath.Join(kept, v.Secret.Name)
		}
	}
	var args []string
	for _, arg := range within(c.Command[1:], folders) {
		args = append(args, expand(arg, environ(t, c, namespace)))
	}
	return startServe(t, []string{store, "HOME=" + kept}, args...)
}

// runPage runs the commands of the page in a folder, with a kubectl that keeps the files of secrets.
func runPage(t *testing.T, folder, kept, namespace string) {
	t.Helper()
	bin := t.TempDir()
	here, err := filepath.Abs(".")
	if err == nil {
		err = errors.Join(os.Symlink(here, filepath.Join(folder, "deploy")), os.Symlink(ingester(t), filepath.Join(bin, "ingest")),
			os.WriteFile(filepath.Join(bin, "kubectl"), []byte(noting), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-eu", "-c", strings.Replace(commands(t), "ns=logs\n", "ns="+namespace+"\n", 1))
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
	if !strings.Contains(calls, "-n "+namespace) || strings.Contains(calls, "-n logs") || !strings.Contains(calls, "apply -k") {
		t.Errorf("it calls\n%s", calls)
	}
}

// mounted returns the pod of a workload, and a file with its configuration, in which each path of a
// secret is that of the kept one.
func mounted(t *testing.T, kept, file, kind, name string) (ingestPod, string) {
	t.Helper()
	pod, conf := manifestOf(t, file, kind, name)
	for _, v := range pod.Volumes {
		at := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m mount) bool { return m.Name == v.Name })
		if at < 0 {
			t.Fatalf("%s does not mount %s", name, v.Name)
		}
		if v.Secret.Name != "" {
			conf = strings.ReplaceAll(conf, pod.Containers[0].VolumeMounts[at].MountPath+"/", filepath.Join(kept, v.Secret.Name)+"/")
		}
	}
	made := filepath.Join(t.TempDir(), "blobtail.yaml")
	if err := os.WriteFile(made, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return pod, made
}

// TestConfirmJobs carries out a policy in a directory by the commands of the jobs of confirm.yaml,
// as docs/start/kubernetes.md says it: a scheduled run is refused, the plan has a hash, and that alone
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

// TestContainerApp runs a worker with the command of the Container App: behind a proxy that ends TLS, it
// lets in who has the token.
func TestContainerApp(t *testing.T) {
	need(t, "curl")
	folder := t.TempDir()
	token := newToken(t, ingester(t), filepath.Join(folder, "tokens.yaml"), "asker", "--read", "*", "--read", "_*")
	command := regexp.MustCompile(`(?s)command: \[\n(.*?)\]`).FindStringSubmatch(read(t, "azure/workers.bicep"))
	if command == nil {
		t.Fatal("it has no command")
	}
	const name = "workers.example.com"
	args := strings.Fields(strings.NewReplacer("'", "", "${name}.${environment.properties.defaultDomain}", name).Replace(command[1]))
	args = within(args[1:], map[string]string{"/etc/blobtail-access": folder})
	at := startServe(t, []string{"BLOBTAIL_STORE=dir:" + makeStore(t), "HOME=" + folder}, args...)
	for secret, want := range map[string]string{token: "200", "asker.x": "401"} {
		got := curl(t, "-H", "Host: "+name, "-H", "X-Forwarded-For: 10.0.0.9", "-H", "X-Forwarded-Proto: https",
			"-H", "Authorization: Bearer "+secret, at+"/api/v1/services")
		if got != want {
			t.Errorf("it answers %s, want %s", got, want)
		}
	}
}

// makeStore makes an empty store in a directory.
func makeStore(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "store")
	if _, err := dir.Open(root, dir.Options{Create: true}); err != nil {
		t.Fatal(err)
	}
	return root
}
