package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"blobtail/internal/config"
)

// as sends a request of a route with a Host and headers, as "Name: value", and returns the
// answer.
func (r route) as(t *testing.T, address, host string, headers ...string) (status int, text string) {
	t.Helper()
	q, err := http.NewRequest(r.method, "http://"+address+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	q.Host = host
	if r.kind != "" {
		q.Header.Set("Content-Type", r.kind)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		q.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func adminRoutes() (probes, others []route) {
	probes = []route{{"", "GET", "/healthz", "", "", true}, {"", "GET", "/readyz", "", "", true}}
	others = []route{
		{"", "GET", "/metrics", "", "", false}, {"", "GET", "/debug/pprof/", "", "", false}, {"", "GET", "/debug/pprof/cmdline", "", "", false},
		{"", "POST", "/flush", "", "", false}, {"", "POST", "/drain", "", "", false}, {"", "GET", "/nowhere", "", "", false},
	}
	return probes, others
}

// No page gets anything from an ingester on loopback, and it sends nothing there: neither a page
// of a name that was turned to that address, nor one of another site.
func TestPagesAreKeptOut(t *testing.T) {
	g := &guarded{log: new(safeBuffer)}
	g.start(t, func(c *config.Config) { c.Access.Hosts = []string{"logs.example", "other.example:8514"} })
	probes, others := adminRoutes()
	_, port, err := net.SplitHostPort(g.listen)
	if err != nil {
		t.Fatal(err)
	}
	for address, all := range map[string][]route{g.listen: routes(), g.admin: others} {
		for _, r := range all {
			for _, host := range []string{"evil.example:" + port, "localhost.evil.example", "10.0.0.1", "0.0.0.0:" + port} {
				if status, text := r.as(t, address, host, "Sec-Fetch-Site: same-origin", "Origin: http://"+host); status != 421 || !strings.Contains(text, "--host") && r.method != "HEAD" {
					t.Errorf("%s %s of Host %s: %d %s", r.method, r.path, host, status, text)
				}
			}
			for _, header := range []string{"Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: cross-site"} {
				if status, text := r.as(t, address, address, header, "Content-Type: text/plain"); status != 403 {
					t.Errorf("%s %s with %s: %d %s", r.method, r.path, header, status, text)
				}
			}
		}
	}
	live := route{"", "GET", "/live/*", "", "", false}
	if status, text := live.as(t, g.listen, g.listen); status != 200 || !strings.HasPrefix(text, "end 0 ") {
		t.Errorf("a page has sent something: %d %s", status, text)
	}
	for _, r := range probes {
		if status, text := r.as(t, g.admin, "evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"); status != 200 {
			t.Errorf("%s: %d %s", r.path, status, text)
		}
	}
	for _, host := range []string{g.listen, "localhost:" + port, "127.0.0.1", "[::1]:1", "LOGS.example", "other.example"} {
		for _, r := range []route{{"", "POST", "/ingest/web", "", "x", false}, live} {
			if status, text := r.as(t, g.listen, host); status != 200 {
				t.Errorf("%s %s of Host %s: %d %s", r.method, r.path, host, status, text)
			}
		}
	}
	if status, text := others[0].as(t, g.admin, g.admin); status != 200 || strings.Contains(text, `{reason="host"} 0`) || strings.Contains(text, `{reason="origin"} 0`) {
		t.Errorf("they are not counted: %d %s", status, text)
	}
	if log := g.log.String(); !strings.Contains(log, `"reason":"host","host":"`) {
		t.Errorf("none is logged:\n%s", log)
	}
}

// Beyond loopback clients have any name for an ingester: that of a Service, a balancer, or an
// address. But requests that only the host itself may make need a known name there too. With names
// in the configuration all requests do.
func TestNamesBeyondLoopback(t *testing.T) {
	probes, others := adminRoutes()
	for _, hosts := range [][]string{nil, {"logs.example"}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			g := &guarded{log: new(safeBuffer)}
			g.start(t, func(c *config.Config) {
				c.Ingest.Listen, c.Ingest.Admin, c.Access.Open, c.Access.Hosts = "0.0.0.0:0", "0.0.0.0:0", true, hosts
				c.Ingest.Advertise = "http://logs-a.example:1234"
			})
			at := func(address string) string { // 0.0.0.0 is no address to ask at
				_, port, err := net.SplitHostPort(address)
				if err != nil {
					t.Fatal(err)
				}
				return net.JoinHostPort("127.0.0.1", port)
			}
			other := 200
			if hosts != nil {
				other = 421
			}
			for _, r := range []route{{"", "POST", "/ingest/web", "", "x", false}, {"", "GET", "/live/web", "", "", false}} {
				for host, want := range map[string]int{"blobtail-ingest.logs.svc:8514": other, "logs-a.example": 200, at(g.listen): 200} {
					if status, text := r.as(t, at(g.listen), host); status != want {
						t.Errorf("%s %s of Host %s: %d %s", r.method, r.path, host, status, text)
					}
				}
			}
			for _, r := range probes {
				if status, text := r.as(t, at(g.admin), "10.244.0.7:8515"); status != 200 {
					t.Errorf("%s: %d %s", r.path, status, text)
				}
			}
			for _, r := range others {
				want := 421
				if r.path == "/metrics" {
					want = other
				}
				if r.path == "/nowhere" {
					continue
				}
				if status, text := r.as(t, at(g.admin), "evil.example"); status != want {
					t.Errorf("%s %s: %d %s", r.method, r.path, status, text)
				}
				if r.path == "/drain" {
					continue
				}
				if status, text := r.as(t, at(g.admin), "localhost"); status != 200 {
					t.Errorf("%s %s of localhost: %d %s", r.method, r.path, status, text)
				}
			}
		})
	}
}

// With tokens an admin listener beyond loopback tells its metrics without one to this host
// alone, and a page on it is not that.
func TestMetricsForPages(t *testing.T) {
	g := runGuarded(t, "0.0.0.0:0", entry("ops", ", role: operator"))
	_, port, err := net.SplitHostPort(g.admin)
	if err != nil {
		t.Fatal(err)
	}
	metrics, here := route{"", "GET", "/metrics", "", "", false}, "127.0.0.1:"+port
	for _, c := range []struct {
		host   string
		header string
		want   int
	}{{here, "Accept: */*", 200}, {"evil.example:" + port, "Accept: */*", 401}, {"blobtail-0:" + port, "Authorization: Bearer ops.s3cret-ops", 200}} {
		if status, text := metrics.as(t, here, c.host, c.header); status != c.want {
			t.Errorf("Host %s: %d %.100s", c.host, status, text)
		}
	}
}
