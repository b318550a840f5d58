package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"blobtail/internal/dev/testkit"
)

// startServe runs logquery serve, and returns its URL. The test stops it.
func startServe(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Command(t, "..", "logquery"), append(args, "--listen=127.0.0.1:0")...)
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	log := bufio.NewReader(stderr)
	for {
		line, err := log.ReadBytes('\n')
		if err != nil {
			t.Fatalf("logquery serve did not start: %s", line)
		}
		var said struct{ Message, URL string }
		if json.Unmarshal(line, &said) == nil && said.Message == "listening" {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return said.URL
		}
		t.Logf("%s", line)
	}
}

// within returns the arguments of a container for this host: paths of its mounts are in a
// folder, and the test chooses the address.
func within(args []string, folders map[string]string) []string {
	var here []string
	for _, arg := range args {
		for mount, folder := range folders {
			arg = strings.Replace(arg, mount+"/", folder+"/", 1)
		}
		if !strings.HasPrefix(arg, "--listen=") {
			here = append(here, arg)
		}
	}
	return here
}

// checkReads ensures that a server of records gives a reader with a token the record that an
// ingester has just taken, and nobody else anything, over TLS alone.
func checkReads(t *testing.T, at, ca, token, ingester, writer string) {
	t.Helper()
	trust := []string{"--cacert", ca}
	as := func(token string) []string {
		return slices.Concat(trust, []string{"-H", "Authorization: Bearer " + token})
	}
	if got := curl(t, append(as(writer), "-d", "the lights are on", "https://"+ingester+"/ingest/web-shop")...); got != "200" {
		t.Fatalf("the ingester answers %s", got)
	}
	records := at + "/api/v1/records?service=web-shop"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"alive":               {append(trust, at+"/livez"), "200"},
		"ready":               {append(trust, at+"/readyz"), "200"},
		"with the token":      {append(as(token), records), "200"},
		"with another secret": {append(as("grafana.x"), records), "401"},
		"without a token":     {append(trust, records), "401"},
		"another name":        {append(as(token), "-H", "Host: evil.example", records), "421"},
		"by plain HTTP":       {[]string{strings.Replace(records, "https:", "http:", 1)}, "400"},
		"metrics, from here":  {append(trust, at+"/metrics"), "200"},
	} {
		if got := curl(t, c.args...); got != c.want {
			t.Errorf("%s: curl prints %s, want %s", name, got, c.want)
		}
	}
	out, err := exec.Command("curl", append(as(token), "-sS", records)...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("the lights are on")) {
		t.Errorf("the record is in no blob, and is not read: %v\n%s", err, out)
	}
}

// TestServePod runs the server with the command and the configuration of kubernetes/serve.yaml
// and the secrets that docs/KUBERNETES.md makes, next to an ingester.
func TestServePod(t *testing.T) {
	need(t, "sh", "openssl", "curl")
	docs := documents(t, "kubernetes/serve.yaml")
	var d stateful // the pod is at the same place
	var o object
	for id, to := range map[string]any{"Deployment/blobtail-serve": &d, "ConfigMap/blobtail-serve": &o} {
		if err := yaml.Unmarshal([]byte(docs[id]), to); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
	}
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "blobtail-ingest.logs.svc", "*.blobtail-peers.logs.svc", "blobtail-serve.logs.svc", "127.0.0.1")
	secrets := filepath.Join(folder, "ingest")
	access := filepath.Join(folder, "serve")
	if err := os.Mkdir(access, 0o700); err != nil {
		t.Fatal(err)
	}
	senders := filepath.Join(secrets, "tokens.yaml")
	writer := newToken(t, bin, senders, "web", "--write", "web-*")
	reader := newToken(t, bin, senders, "serve", "--read", "*", "--read", "_*")
	if err := os.WriteFile(filepath.Join(access, "reader"), []byte(reader+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(access, "session"), []byte(strings.Repeat("k", 44)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	grafana := newToken(t, bin, filepath.Join(access, "tokens.yaml"), "grafana", "--read", "*")
	store := "BLOBTAIL_STORE=dir:" + filepath.Join(folder, "store")
	r := start(t, bin, store, "BLOBTAIL_TOKENS="+senders,
		"BLOBTAIL_TLS_CERT="+filepath.Join(secrets, "tls.crt"), "BLOBTAIL_TLS_KEY="+filepath.Join(secrets, "tls.key"))

	mounts := map[string]string{}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		if here := map[string]string{"config": folder, "access": access, "tls": secrets}[m.Name]; here != "" {
			mounts[m.MountPath] = here
		}
	}
	conf := o.Data["blobtail.yaml"]
	for _, path := range []string{"/etc/blobtail-access", "/etc/blobtail-tls"} {
		conf = strings.ReplaceAll(conf, path, mounts[path])
	}
	if err := os.WriteFile(filepath.Join(folder, "blobtail.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	set := environ(t, d.Spec.Template.Spec.Containers[0])
	if set["BLOBTAIL_LIVE"] != "https://blobtail-ingest.logs.svc:8514" {
		t.Errorf("it asks %s", set["BLOBTAIL_LIVE"])
	}
	var args []string
	for _, arg := range within(d.Spec.Template.Spec.Containers[0].Command[1:], mounts) {
		args = append(args, expand(arg, set))
	}
	at := startServe(t, []string{store, "BLOBTAIL_LIVE=https://" + r.records, "HOME=" + folder}, args...)
	checkReads(t, at, filepath.Join(secrets, "ca.crt"), grafana, r.records, writer)
	_, port, _ := strings.Cut(strings.TrimPrefix(at, "https://"), ":")
	if got := curl(t, "--cacert", filepath.Join(secrets, "ca.crt"), "-H", "Authorization: Bearer "+grafana,
		"--resolve", "blobtail-serve.logs.svc:"+port+":127.0.0.1", "https://blobtail-serve.logs.svc:"+port+"/loki/api/v1/labels"); got != "200" {
		t.Errorf("by the name of its Service it answers %s", got)
	}
}

// TestComposeServe runs the server with the command of compose.yaml.
func TestComposeServe(t *testing.T) {
	need(t, "sh", "openssl", "curl")
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &c); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "ingest", "serve", "localhost", "127.0.0.1")
	secrets := filepath.Join(folder, "ingest")
	tokens := filepath.Join(secrets, "tokens.yaml")
	me := newToken(t, bin, tokens, "me", "--write", "*", "--read", "*")
	store := "BLOBTAIL_STORE=dir:" + filepath.Join(folder, "store")
	r := start(t, bin, store, "BLOBTAIL_TOKENS="+tokens,
		"BLOBTAIL_TLS_CERT="+filepath.Join(secrets, "tls.crt"), "BLOBTAIL_TLS_KEY="+filepath.Join(secrets, "tls.key"))
	s := c.Services["serve"]
	if s.Environment["BLOBTAIL_LIVE"] != "https://ingest:8514" || s.Environment["BLOBTAIL_CA"] != "/etc/blobtail/ca.crt" || !slices.Contains(s.Ports, "127.0.0.1:8516:8516") {
		t.Errorf("%+v", s)
	}
	at := startServe(t, []string{store, "BLOBTAIL_CA=" + filepath.Join(secrets, "ca.crt"), "HOME=" + folder, "BLOBTAIL_LIVE=https://" + r.records, "BLOBTAIL_TOKEN=" + me},
		within(strings.Fields(string(s.Command)), map[string]string{"/etc/blobtail": secrets})...)
	checkReads(t, at, filepath.Join(secrets, "ca.crt"), me, r.records, me)
}

// TestGrafana ensures that the provisioned data sources lead to paths that a server answers,
// that the dashboard of logs asks for metrics that it serves, and that it answers all queries of
// that dashboard. TestDashboard has the other rules for a panel.
func TestGrafana(t *testing.T) {
	folder := t.TempDir()
	at := startServe(t, []string{"HOME=" + folder}, "serve", "--store=dir:"+emptyStore(t, folder))
	var sources struct {
		Datasources []struct {
			UID, Type, URL string
			SecureJSONData map[string]string `yaml:"secureJsonData"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "grafana/provisioning/datasources/blobtail.yaml")), &sources); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
	if len(sources.Datasources) != 2 {
		t.Fatalf("%+v", sources)
	}
	for _, s := range sources.Datasources {
		where := strings.Replace(s.URL, "${BLOBTAIL_SERVE}", at, 1)
		health := "/loki/api/v1/query?direction=backward&query=vector(1)%2Bvector(1)&time=4000000000"
		if body := get(t, where+health); !strings.Contains(body, `[4000000000,"2"]`) || s.Type != "loki" || s.SecureJSONData["httpHeaderValue1"] != "Bearer ${BLOBTAIL_TOKEN}" {
			t.Errorf("%+v answers %s", s, body)
		}
	}
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/logs.json")), &d); err != nil {
		t.Fatal(err)
	}
	served := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)(?:\{([^}]*)\})? `).FindAllStringSubmatch(get(t, at+"/metrics"), -1) {
		for pair := range strings.SplitSeq(m[2], ",") {
			label, _, _ := strings.Cut(pair, "=")
			served[m[1]] = append(served[m[1]], label)
		}
	}
	variables := map[string]bool{"__rate_interval": true, "__auto": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if target.Datasource.Type == "loki" {
				checkLogs(t, at, target.Expr)
				continue
			}
			checkQuery(t, p.Title, target.Expr, variables, served)
		}
	}
	if len(ids) < 10 {
		t.Errorf("%d panels", len(ids))
	}
}

// emptyStore makes a store without records.
func emptyStore(t *testing.T, folder string) string {
	t.Helper()
	store := filepath.Join(folder, "store")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	return store
}

// checkLogs ensures that a server answers a query of a panel.
func checkLogs(t *testing.T, at, expr string) {
	t.Helper()
	expr = strings.NewReplacer("$__auto", "1m", "$service", ".+", "$level", ".*", "$search", "").Replace(expr)
	if body := get(t, at+"/loki/api/v1/query_range?step=60&query="+url.QueryEscape(expr)); !strings.Contains(body, `"status":"success"`) {
		t.Errorf("%s: %s", expr, body)
	}
}

func get(t *testing.T, where string) string {
	t.Helper()
	answer, err := http.Get(where)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
