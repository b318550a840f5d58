package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
)

// logqueryRun is one run of logquery.
type logqueryRun struct {
	args []string
	code int
	want []string // regular expressions for both outputs together
}

// TestPortForward ensures that a person who holds ca.crt of tls.sh reads over TLS by localhost and
// by a name that is not that of the address, from ingesters and from logquery serve; and that a
// person without it, or with a mistake, is told the flag.
func TestPortForward(t *testing.T) {
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "blobtail-ingest.logs.svc", "blobtail-serve.logs.svc")
	makeTLS(t, filepath.Join(folder, "other"), "blobtail-serve.logs.svc")
	secrets := filepath.Join(folder, "ingest")
	ca, other, tokens := filepath.Join(secrets, "ca.crt"), filepath.Join(folder, "other", "ingest", "ca.crt"), filepath.Join(secrets, "tokens.yaml")
	me := newToken(t, bin, tokens, "me", "--write", "*", "--read", "*", "--read", "_*")
	env := []string{"BLOBTAIL_STORE=dir:" + filepath.Join(folder, "store"), "BLOBTAIL_TOKENS=" + tokens,
		"BLOBTAIL_TLS_CERT=" + filepath.Join(secrets, "tls.crt"), "BLOBTAIL_TLS_KEY=" + filepath.Join(secrets, "tls.key")}
	r := start(t, bin, env...)
	if got := curl(t, "--cacert", ca, "-H", "Authorization: Bearer "+me, "-d", "the lights are on", "https://"+r.records+"/ingest/web"); got != "200" {
		t.Fatalf("the ingester answers %s", got)
	}
	file := filepath.Join(folder, "blobtail.yaml")
	if err := os.WriteFile(file, []byte("tls: {ca: "+ca+", server-name: blobtail-ingest.logs.svc}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := startServe(t, []string{env[0], "BLOBTAIL_TOKEN=" + me, "HOME=" + folder}, "serve", "--config="+file, "--tokens="+tokens,
		"--tls-cert="+filepath.Join(secrets, "tls.crt"), "--tls-key="+filepath.Join(secrets, "tls.key"))
	local := strings.Replace(serve, "127.0.0.1", "localhost", 1)
	plain := strings.Replace(serve, "https:", "http:", 1)
	home := []string{"HOME=" + folder, "XDG_CONFIG_HOME=" + filepath.Join(folder, "xdg"), "BLOBTAIL_TOKEN=" + me}
	const on = "the lights are on"
	for name, c := range map[string]logqueryRun{
		"a server":                         {[]string{"--server", local, "--ca", ca}, 0, []string{on}},
		"a server by another name":         {[]string{"--server", serve, "--ca", ca, "--server-name", "blobtail-serve.logs.svc"}, 0, []string{on}},
		"an ingester":                      {[]string{"--live-url", "https://" + r.records, "--ca", ca}, 0, []string{on}},
		"an announced ingester":            {[]string{"--ca", ca}, 0, []string{on}},
		"an announced one by another name": {[]string{"--ca", ca, "--server-name", "blobtail-ingest.logs.svc"}, 0, []string{on}},
		"a configuration":                  {[]string{"--config", file}, 0, []string{on}},
		"a server without the authority":   {[]string{"--server", local}, 5, []string{"unknown authority; give the certificate of its authority .CN=blobtail authority. as --ca FILE.*SSL_CERT_FILE"}},
		"ingesters without it":             {nil, 3, []string{"unknown authority; give the certificate of its authority .CN=blobtail authority. as --ca FILE.*SSL_CERT_FILE"}},
		"a server with another one":        {[]string{"--server", local, "--ca", other}, 5, []string{"neither .*ca.crt nor this host"}},
		"ingesters with another one":       {[]string{"--ca", other}, 3, []string{"neither .*ca.crt nor this host"}},
		"a server with another name":       {[]string{"--server", local, "--ca", ca, "--server-name", "logs"}, 5, []string{"its certificate is for blobtail-ingest.logs.svc, .*, and not for logs; .*--server-name"}},
		"ingesters with another name":      {[]string{"--ca", ca, "--server-name", "logs"}, 3, []string{"its certificate is for blobtail-ingest.logs.svc, .*, and not for logs; .*--server-name"}},
		"a key":                            {[]string{"--ca", filepath.Join(secrets, "tls.key")}, 2, []string{"but a private key"}},
		"no file":                          {[]string{"--server", local, "--ca", ca + "x"}, 2, []string{"no such file or directory; correct the path"}},
		"http to TLS, server":              {[]string{"--server", plain}, 5, []string{"it speaks TLS: write " + serve}},
		"http to TLS, ingester":            {[]string{"--live-url", "http://" + r.records}, 3, []string{"it speaks TLS: write https://" + r.records}},
		"https to no TLS, server":          {[]string{"--server", "https://" + r.admin}, 5, []string{"it speaks no TLS: write http://" + r.admin}},
		"https to no TLS, ingester":        {[]string{"--live-url", "https://" + r.admin}, 3, []string{"it speaks no TLS: write http://" + r.admin}},
	} {
		runLogquery(t, name, append(home, env[0]), append([]string{"web"}, c.args...), c)
	}
	runLogquery(t, "add a context", home, []string{"context", "add", "k", "--server", serve, "--ca", ca, "--server-name", "blobtail-serve.logs.svc"}, logqueryRun{})
	runLogquery(t, "the context", home, []string{"web"}, logqueryRun{want: []string{on}})
	runLogquery(t, "a wrong authority for a context", home, []string{"context", "add", "l", "--server", serve, "--ca", tokens}, logqueryRun{code: 2, want: []string{"no certificate in PEM"}})
	runLogquery(t, "the context by its name", append(home, "BLOBTAIL_CA="+other, "BLOBTAIL_SERVER_NAME=x"), []string{"web", "--context", "k"}, logqueryRun{want: []string{on}})
}

// runLogquery runs logquery, and compares its exit code and its outputs.
func runLogquery(t *testing.T, name string, env, args []string, c logqueryRun) {
	t.Helper()
	cmd := exec.Command(testkit.Command(t, "..", "logquery"), args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != c.code {
		t.Errorf("%s: exit %d, %v, want %d\n%s", name, code, err, c.code, out)
	}
	for _, want := range c.want {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: no %q in\n%s", name, want, out)
		}
	}
	if strings.Contains(string(out), "certificate") && strings.Contains(string(out), "is one running there?") {
		t.Errorf("%s: a server runs there\n%s", name, out)
	}
}
