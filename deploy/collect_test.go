package deploy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"blobtail/internal/dev/testkit"
)

// podLog is the file of a container. h is the time up to the fraction, o and e are the streams.
type podLog struct {
	namespace, pod, container string
	lines                     []string
}

// path is that of the file on a node.
func (p podLog) path() string {
	return fmt.Sprintf("/var/log/containers/%s_%s_%s-%064x.log", p.pod, p.namespace, p.container, len(p.pod))
}

// text has the lines of containerd.
func (p podLog) text() string {
	var b strings.Builder
	for i, l := range p.lines {
		stream, rest, _ := strings.Cut(l, " ")
		fmt.Fprintf(&b, "2026-11-10T15:04:05.1%05d789Z %s %s\n", i, map[string]string{"o": "stdout", "e": "stderr"}[stream], rest)
	}
	return b.String()
}

// podLogs are those of the test, and the pods.
func podLogs() ([]podLog, map[string]podMeta) {
	long := strings.Repeat("0123456789", 2000)
	return []podLog{
			{"shop", "web-6c5d8f7b9-x2x4q", "web", []string{
				`o F {"time":"2026-11-10T15:04:04Z","level":"warn","msg":"Grüße 👋","user":7,"ok":true,"none":null,"in":{"a":[1,2]}}`,
				`o P {"level":"error","msg":"` + long, `o P ` + long, `o F ` + `end","n":2}`,
				`e F ERROR failed`, `e F java.lang.IllegalStateException: no`, `e F 	at com.shop.Cart.add(Cart.java:7)`,
				`e F Caused by: java.io.IOException: disk`, `e F 	... 3 more`,
				`o F ` + "\x1b[33mWARN\x1b[0m slow", `o F `, `o F {"level":"error","msg":"cut o`, `o F plain`,
			}},
			{"shop", "web-6c5d8f7b9-x2x4q", "proxy", []string{`e F [error] upstream`}},
			{"kube-system", "coredns-7db6d8ff4d-aaaaa", "coredns", []string{`e F E1110 15:04:05.100000       1 main.go:5] no zone`, `e F panic: no`, `e F `, `e F goroutine 1 [running]:`, `e F main.main()`, `e F 	/app/main.go:8 +0x1d`}},
			{"jobs", "nightly-28", "run", []string{
				`o F {"service":"other","namespace":"mine","severity":"ERROR","message":"m","ts":"2020-01-01T00:00:00Z","kubernetes":{"pod_name":"forged"}}`,
				`e F Traceback (most recent call last):`, `e F   File "x.py", line 3, in f`, `e F     g()`, `e F ValueError: no`, `e F next`,
			}},
			{"logs-collect", "blobtail-collect-zzzzz", "fluent-bit", []string{`e F [error] a loop`}},
			{"shop", "noisy-1", "noisy", []string{`o F left out`}},
		}, map[string]podMeta{
			"shop/web-6c5d8f7b9-x2x4q": {labels: map[string]string{"app.kubernetes.io/name": "web-shop", "pod-template-hash": "6c5d8f7b9"}},
			"jobs/nightly-28":          {labels: map[string]string{"app.kubernetes.io/name": "Nightly_Run.v2"}},
			"shop/noisy-1":             {labels: map[string]string{"app.kubernetes.io/name": "noisy"}, excluded: true},
		}
}

// TestCollect runs the lines of pods through the configuration of the collector, as Fluent Bit
// does, and sends its requests to an ingester with the secrets that docs/start/kubernetes.md makes. The records
// have the times, levels, services, messages and fields that docs/send/pods.md promises.
func TestCollect(t *testing.T) {
	need(t, "bash", "openssl", "curl")
	docs := documents(t, "kubernetes/collect/collect.yaml")
	var set stateful
	var conf object
	for id, to := range map[string]any{"DaemonSet/blobtail-collect": &set, "ConfigMap/blobtail-collect": &conf} {
		if err := yaml.Unmarshal([]byte(docs[id]), to); err != nil {
			t.Fatal(yaml.FormatError(err, false, true))
		}
	}
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "blobtail-ingest.logs.svc", "*.blobtail-peers.logs.svc", "blobtail-serve.logs.svc")
	secrets := filepath.Join(folder, "ingest")
	token := newToken(t, bin, filepath.Join(secrets, "tokens.yaml"), "collect", "--write", "*")
	store := "dir:" + filepath.Join(folder, "store")
	r := start(t, bin, "BLOBTAIL_STORE="+store, "BLOBTAIL_TOKENS="+filepath.Join(secrets, "tokens.yaml"),
		"BLOBTAIL_TLS_CERT="+filepath.Join(secrets, "tls.crt"), "BLOBTAIL_TLS_KEY="+filepath.Join(secrets, "tls.key"),
		"BLOBTAIL_HOSTS=blobtail-ingest.logs.svc") // only on loopback a name has to be known

	env := map[string]string{}
	for _, v := range set.Spec.Template.Spec.Containers[0].Env {
		switch {
		case v.ValueFrom.SecretKeyRef.Name == "blobtail-collect":
			env[v.Name] = token
		case v.ValueFrom.FieldRef.Path == "spec.nodeName":
			env[v.Name] = "node-3"
		}
	}
	logs, pods := podLogs()
	f := newFluentBit(t, conf.Data["fluent-bit.yaml"], env, pods)
	sent := 0
	for range 2 { // all of it again, as after a crash: it is stored once
		for _, l := range logs {
			events, ok := f.run(l.path(), l.text())
			if ok != (l.namespace != "logs-collect") {
				t.Errorf("%s is read: %v", l.path(), ok)
			}
			if len(events) > 0 {
				f.send(f.Pipeline.Outputs[0], events, r.records, secrets)
				sent += len(events)
			}
		}
	}
	if got := curl(t, "-X", "POST", "http://"+r.admin+"/flush"); got != "200" {
		t.Fatalf("the flush answers %s", got)
	}
	checkCollected(t, store)
	if sent < 20 {
		t.Errorf("%d records", sent)
	}
}

// send sends a request of the output http, and wants 200.
func (f *fluentBit) send(p yaml.MapSlice, events []event, address, secrets string) {
	f.t.Helper()
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(f.body(p, events)); err != nil || f.get(p, "compress") != "gzip" {
		f.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		f.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(secrets, filepath.Base(f.get(p, "tls.ca_file"))))
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		f.t.Fatal(err)
	}
	if f.get(p, "tls") != "on" || f.get(p, "tls.verify") != "on" || f.get(p, "tls.verify_hostname") != "on" {
		f.t.Error("it does not check the ingester")
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, "https://"+net.JoinHostPort(f.get(p, "host"), f.get(p, "port"))+f.get(p, "uri"), &body)
	if err != nil {
		f.t.Fatal(err)
	}
	name, value, _ := strings.Cut(f.get(p, "header"), " ")
	req.Header.Set(name, value)
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "Fluent-Bit")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), `"rejected":0`) {
		f.t.Fatalf("%d %s, %v", resp.StatusCode, text, err)
	}
}

// checkCollected wants the records of podLogs in a store.
func checkCollected(t *testing.T, store string) {
	t.Helper()
	cmd := exec.Command(testkit.Command(t, "..", "logquery"), "--store", store, "*", "-u", "-o", "json", "--from", "2019-01-01", "--live", "off", "-q")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range bytes.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(m["msg"])
		if len(text) > 1000 {
			text = fmt.Sprintf("%d bytes", len(text))
		}
		at := strings.TrimPrefix(fmt.Sprint(m["ts"]), "2026-11-10T15:04:05.")
		rest := fmt.Sprintf("%s %v %v %q %v/%v/%v on %v, %v", at, m["level"], m["service"], text, m["namespace"], m["pod"], m["container"], m["node"], m["stream"])
		for _, known := range []string{"ts", "level", "service", "msg", "namespace", "pod", "container", "node", "stream"} {
			delete(m, known)
		}
		more, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rest+" "+string(more))
	}
	const web = "shop/web-6c5d8f7b9-x2x4q/web on node-3, "
	const dns = "kube-system/coredns-7db6d8ff4d-aaaaa/coredns on node-3, stderr {}"
	const job = "jobs/nightly-28/run on node-3, stderr {\"kubernetes_service\":\"Nightly_Run.v2\"}"
	want := []string{
		`100000000Z warn web-shop "Grüße 👋" ` + web + `stdout {"in":{"a":[1,2]},"none":null,"ok":true,"time":"2026-11-10T15:04:04Z","user":7}`,
		`100001000Z error web-shop "40003 bytes" ` + web + `stdout {"n":2}`,
		`100004000Z error web-shop "ERROR failed" ` + web + `stderr {}`,
		`100005000Z error web-shop "java.lang.IllegalStateException: no\n\tat com.shop.Cart.add(Cart.java:7)\nCaused by: java.io.IOException: disk\n\t... 3 more" ` + web + `stderr {}`,
		`100009000Z warn web-shop "\x1b[33mWARN\x1b[0m slow" ` + web + `stdout {}`,
		`100011000Z error web-shop "{\"level\":\"error\",\"msg\":\"cut o" ` + web + `stdout {}`,
		`100012000Z  web-shop "plain" ` + web + `stdout {}`,
		`100000000Z error web-shop "[error] upstream" shop/web-6c5d8f7b9-x2x4q/proxy on node-3, stderr {}`,
		`100000000Z error coredns "E1110 15:04:05.100000       1 main.go:5] no zone" ` + dns,
		`100001000Z critical coredns "panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:8 +0x1d" ` + dns,
		`100000000Z error nightly_run.v2 "m" mine/nightly-28/run on node-3, stdout {"kubernetes_namespace_name":"jobs","kubernetes_service":"Nightly_Run.v2","service.original":"other","ts.2":"2020-01-01T00:00:00Z"}`,
		`100001000Z error nightly_run.v2 "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n    g()\nValueError: no" ` + job,
		`100005000Z  nightly_run.v2 "next" ` + job,
	}
	slices.Sort(got)
	slices.Sort(want)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}
