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

// TestComposeServe runs an ingester and a server on this host, with the command, the settings and the
// files of compose.yaml. A sender with a token gets in by TLS, and no other.
func TestComposeServe(t *testing.T) {
	need(t, "sh", "openssl", "curl")
	c := composed(t)
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "ingest", "serve", "localhost", "127.0.0.1")
	secrets := filepath.Join(folder, "ingest")
	me := newToken(t, bin, filepath.Join(secrets, "tokens.yaml"), "me", "--write", "*", "--read", "*")
	store := "BLOBTAIL_STORE=dir:" + filepath.Join(folder, "store")
	env := []string{store}
	for _, name := range []string{"BLOBTAIL_TOKENS", "BLOBTAIL_TLS_CERT", "BLOBTAIL_TLS_KEY"} {
		path := c.Services["ingest"].Environment[name]
		if !strings.HasPrefix(path, "/etc/blobtail/") {
			t.Errorf("%s=%s", name, path)
		}
		env = append(env, name+"="+filepath.Join(secrets, filepath.Base(path)))
	}
	r := start(t, bin, env...)
	ca := filepath.Join(secrets, "ca.crt")
	send := []string{"--cacert", ca, "-d", "the lights are on", "https://" + r.records + "/ingest/hello"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"without a token":       {send, "401"},
		"with another secret":   {append([]string{"-H", "Authorization: Bearer me.x"}, send...), "401"},
		"without the authority": {append([]string{"-H", "Authorization: Bearer " + me}, send[2:]...), "000"},
		"by plain HTTP":         {[]string{"-d", "x", "http://" + r.records + "/ingest/hello"}, "400"},
	} {
		if got := curl(t, c.args...); got != c.want {
			t.Errorf("%s: curl prints %s, want %s", name, got, c.want)
		}
	}
	s := c.Services["serve"]
	if s.Environment["BLOBTAIL_LIVE"] != "https://ingest:8514" || s.Environment["BLOBTAIL_CA"] != "/etc/blobtail/ca.crt" || !slices.Contains(s.Ports, "127.0.0.1:8516:8516") {
		t.Errorf("%+v", s)
	}
	at := startServe(t, []string{store, "BLOBTAIL_CA=" + ca, "HOME=" + folder, "BLOBTAIL_LIVE=https://" + r.records, "BLOBTAIL_TOKEN=" + me},
		within(strings.Fields(string(s.Command)), map[string]string{"/etc/blobtail": secrets})...)
	checkReads(t, at, ca, me, r.records, me)
	if got := curl(t, "--cacert", ca, at+"/metrics"); got != "200" {
		t.Errorf("this host gets %s for the metrics", got)
	}
}

// TestGrafana ensures that the provisioned data sources lead to paths that a server answers,
// that the dashboard of logs asks for metrics that it serves, and that it answers all queries of
// that dashboard.
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
	variables, served := d.read(t, "grafana/logs.json"), labelsOf([]byte(get(t, at+"/metrics")))
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if target.Datasource.Type == "loki" {
				checkLogs(t, at, target.Expr)
				continue
			}
			checkQuery(t, p.Title, target.Expr, variables, served)
		}
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
