package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"blobtail/internal/dev/testkit"
)

// A balanced is one of the servers behind nginx. It knows the requests that it got.
type balanced struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string // the path, the header for the balancer, and the body
	status int
}

func newBalanced(t *testing.T) *balanced {
	b := &balanced{status: http.StatusOK}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got = append(b.got, r.URL.RequestURI()+" "+r.Header.Get("X-Service")+" "+string(body))
		w.WriteHeader(b.status)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *balanced) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.got...)
}

// nginx runs Debian's nginx with nginx/blobtail.conf in front of servers, and returns its URL.
func nginx(t *testing.T, servers ...*balanced) string {
	t.Helper()
	var addresses []string
	for _, s := range servers {
		addresses = append(addresses, s.Listener.Addr().String())
	}
	return "http://" + balancer(t, read(t, "nginx/blobtail.conf"), addresses...)
}

// balancer runs nginx with a configuration in front of servers, and returns its address.
func balancer(t *testing.T, conf string, servers ...string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("nginx is not installed: apt-get install nginx-light")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	conf = strings.Replace(conf, "listen 8514", "listen "+address, 1)
	line := regexp.MustCompile(`(?m)^ *server ingest-\d\.example\.com:8514`)
	if n := len(line.FindAllString(conf, -1)); n != len(servers) {
		t.Fatalf("%d servers in the file", n)
	}
	for _, s := range servers {
		at := line.FindStringIndex(conf)
		conf = conf[:at[0]] + "server " + s + conf[at[1]:]
	}
	dir := t.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	main := fmt.Sprintf("%s daemon off; pid %s; error_log stderr warn; events {}\nhttp { access_log off;\n%s%s}\n", user, filepath.Join(dir, "pid"), temp, conf)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", dir, "-c", file)
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", out.String())
		}
	})
	testkit.Until(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return address
}

func send(t *testing.T, url, service, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if service != "" {
		r.Header.Set("X-Service", service)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// nginx sends all requests of a service to one server, whatever protocol they are of, and
// spreads the services over all. If a server is gone, its services alone go elsewhere, and no
// request fails.
func TestNginx(t *testing.T) {
	servers := []*balanced{newBalanced(t), newBalanced(t), newBalanced(t)}
	url := nginx(t, servers...)
	const services = 60
	all := func(round int) {
		for i := range services {
			name := fmt.Sprintf("s%d", i)
			for _, r := range [][2]string{
				{"/ingest/" + name + "?_time=at", ""}, {"/" + name + "/_bulk", ""}, {"/elasticsearch/" + name + "/_bulk", ""},
				{"/insert/elasticsearch/" + name + "/_bulk", ""}, {"/" + name + "/_doc/_bulk", ""},
				{"/_bulk", name}, {"/loki/api/v1/push", name}, {"/v1/logs", name},
			} {
				if code := send(t, url+r[0], r[1], fmt.Sprintf("%s %d", name, round)); code != http.StatusOK {
					t.Errorf("%s: %d", r[0], code)
				}
			}
		}
	}
	homes := func(round int) map[string]int {
		home := map[string]int{}
		for i, s := range servers {
			for _, request := range s.requests() {
				f := strings.Fields(request)
				if f[len(f)-1] != fmt.Sprint(round) {
					continue
				}
				name := f[len(f)-2]
				if was, known := home[name]; known && was != i {
					t.Errorf("round %d: %s is at two servers", round, name)
				}
				home[name] = i
			}
		}
		return home
	}
	all(1)
	first := homes(1)
	count := map[int]int{}
	for _, s := range first {
		count[s]++
	}
	if len(first) != services || len(count) != 3 || min(count[0], count[1], count[2]) < services/10 {
		t.Errorf("%d services, spread as %v", len(first), count)
	}
	servers[1].Close()
	all(2)
	for name, s := range homes(2) {
		if s == 1 || first[name] != 1 && first[name] != s {
			t.Errorf("%s went from %d to %d though 1 is gone", name, first[name], s)
		}
	}
	// Without a service that nginx can see, the sender's host decides.
	for _, path := range []string{"/loki/api/v1/push", "/_bulk", "/elasticsearch/_bulk", "/insert/elasticsearch/_bulk", "/ingest"} {
		for range 4 {
			send(t, url+path, "", "push 3")
		}
	}
	if home := homes(3); len(home) != 1 {
		t.Errorf("requests of one host are at %v", home)
	}
}

// A request that a server refuses because it is about to end goes to another one, whole. The
// server is left out then. A full one answers the sender itself.
func TestNginxNext(t *testing.T) {
	servers := []*balanced{newBalanced(t), newBalanced(t), newBalanced(t)}
	url := nginx(t, servers...)
	send(t, url+"/ingest/web", "", "find")
	var home *balanced
	for _, s := range servers {
		if len(s.requests()) == 1 {
			home = s
		}
	}
	answer := func(status int) {
		home.mu.Lock()
		defer home.mu.Unlock()
		home.status = status
	}
	answer(http.StatusTooManyRequests)
	if code := send(t, url+"/ingest/web", "", "b"); code != http.StatusTooManyRequests {
		t.Errorf("%d, want the server's own answer", code)
	}
	answer(http.StatusServiceUnavailable)
	large := strings.Repeat("x", 20<<20)
	for range 3 {
		if code := send(t, url+"/ingest/web", "", large); code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	whole := map[bool]int{}
	for _, s := range servers {
		for _, r := range s.requests() {
			if strings.HasSuffix(r, large) {
				whole[s == home]++
			}
		}
	}
	if whole[true] != 1 || whole[false] != 3 {
		t.Errorf("the bodies arrived whole %d times at the server that ends, and %d times at others, want 1 and 3", whole[true], whole[false])
	}
}

// If all servers refuse, the sender learns it, and loses nothing: the first answer is that of the
// servers, and then nginx asks none of them for a while.
func TestNginxAllRefuse(t *testing.T) {
	servers := []*balanced{newBalanced(t), newBalanced(t), newBalanced(t)}
	for _, s := range servers {
		s.status = http.StatusServiceUnavailable
	}
	url := nginx(t, servers...)
	for i, want := range []int{http.StatusServiceUnavailable, http.StatusBadGateway} {
		if code := send(t, url+"/ingest/web", "", "a"); code != want {
			t.Errorf("request %d: %d, want %d", i, code, want)
		}
	}
}

// With the lines for certificates, and an ingester behind a proxy, a token goes by TLS all the way.
// Equal records of two hosts are two, and a request that is sent again is known.
func TestNginxSecured(t *testing.T) {
	need(t, "curl")
	folder, bin := t.TempDir(), ingester(t)
	makeTLS(t, folder, "logs.example.com")
	ca, crt, key := filepath.Join(folder, "ingest", "ca.crt"), filepath.Join(folder, "ingest", "tls.crt"), filepath.Join(folder, "ingest", "tls.key")
	tokens := filepath.Join(folder, "tokens.yaml")
	token := newToken(t, bin, tokens, "web", "--write", "web")
	r := start(t, bin, "BLOBTAIL_STORE=dir:"+filepath.Join(folder, "store"), "BLOBTAIL_TOKENS="+tokens,
		"BLOBTAIL_TLS_CERT="+crt, "BLOBTAIL_TLS_KEY="+key, "BLOBTAIL_BEHIND_PROXY=true")
	conf := regexp.MustCompile(`(?m)^ *(listen 8514|proxy_pass http://blobtail_ingesters);\n`).ReplaceAllString(read(t, "nginx/blobtail.conf"), "")
	conf = regexp.MustCompile(`(?m)^( *)#(listen|ssl_|proxy_)`).ReplaceAllString(conf, "$1$2")
	conf = strings.NewReplacer("/etc/nginx/blobtail.crt", crt, "/etc/nginx/blobtail.key", key, "/etc/nginx/blobtail-ca.crt", ca,
		"blobtail-ingest.logs.svc", "logs.example.com").Replace(conf)
	at := "https://" + balancer(t, conf, r.records, r.records, r.records) + "/ingest/web"
	for i, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2"} {
		if code := curl(t, "--interface", from, "--cacert", ca, "-H", "Authorization: Bearer "+token, "-d", `{"ts":"2026-11-20T10:00:00.123456Z","msg":"a"}`, at); code != "200" {
			t.Errorf("request %d: %s", i, code)
		}
	}
	answer, err := http.Get("http://" + r.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`blobtail_http_records_total{result="accepted"} 2`, `blobtail_http_records_total{result="duplicate"} 1`} {
		if !strings.Contains(string(page), want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
