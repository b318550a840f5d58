package door_test

import (
	"net"
	"strings"
	"testing"

	"blobtail/internal/door"
)

// Each kind of route with each token. The answer names its client.
func TestTokens(t *testing.T) {
	tokens, path := tokensOf(t, `reader , read: ["web"]`, `sender , write: ["web"]`, `watch , role: operator`, `peer , role: peer`,
		`old , read: ["*"], expires: 2020-01-01T00:00:00Z`)
	s := serve(t, door.Options{Tokens: tokens, Proxied: true}, echo)
	basic := "Authorization: Basic cmVhZGVyOnMzY3JldC1yZWFkZXI=" // reader:s3cret-reader
	for _, c := range []struct {
		header string
		paths  map[string]int
		who    string
	}{
		{"", map[string]int{"/q": 401, "/api/v1/q": 401, "/tail": 401, "/light": 401, "/metrics": 401, "/ready": 200}, "nobody"},
		{bearer("reader"), map[string]int{"/q": 200, "/api/v1/q": 200, "/tail": 200, "/light": 200, "/metrics": 403, "/ready": 200}, "reader"},
		{basic, map[string]int{"/q": 200, "/tail": 200, "/metrics": 403}, "reader"},
		{bearer("sender"), map[string]int{"/q": 403, "/tail": 403, "/light": 403, "/metrics": 403}, ""},
		{bearer("watch"), map[string]int{"/q": 403, "/tail": 403, "/metrics": 200}, "watch"},
		{bearer("peer"), map[string]int{"/q": 200, "/metrics": 403}, "peer"},
		{bearer("old"), map[string]int{"/q": 401, "/tail": 401, "/light": 401, "/metrics": 401, "/ready": 200}, "nobody"},
		{bearer("unknown"), map[string]int{"/q": 401, "/tail": 401}, ""},
		{"Authorization: Bearer reader.s3cret-sender", map[string]int{"/q": 401, "/tail": 401, "/metrics": 401}, ""},
		{"X-Scope-OrgID: reader", map[string]int{"/q": 401}, ""},
	} {
		for p, want := range c.paths {
			var headers []string
			if c.header != "" {
				headers = append(headers, c.header)
			}
			resp, body := s.ask(p, headers...)
			if resp.StatusCode != want {
				t.Errorf("%s with %q: %d, want %d: %s", p, c.header, resp.StatusCode, want, body)
			}
			if want == 401 && len(resp.Header.Values("WWW-Authenticate")) != 2 {
				t.Errorf("%s with %q: the answer does not say how to log in", p, c.header)
			}
			if want == 200 && p != "/ready" && body != "answer for "+c.who {
				t.Errorf("%s with %q: %s, want that for %s", p, c.header, body, c.who)
			}
		}
	}
	if _, body := s.ask("/q", bearer("old")); !strings.Contains(body, "expired") {
		t.Errorf("an expired token: %s", body)
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Errorf("a secret is in the log:\n%s", s.log)
	}
	s.counted(`blobtail_serve_refused_total{reason="missing"} 6`)

	writeTokens(t, path, `sender , read: ["*"]`)
	if err := tokens.Reload(); err != nil {
		t.Fatal(err)
	}
	if resp, _ := s.ask("/q", bearer("reader")); resp.StatusCode != 401 {
		t.Errorf("a token that was taken away: %d", resp.StatusCode)
	}
	if resp, _ := s.ask("/q", bearer("sender")); resp.StatusCode != 200 {
		t.Errorf("a token that was given a right: %d", resp.StatusCode)
	}
}

// The metrics are open on the host itself, unless a proxy is in front.
func TestMetricsFromHere(t *testing.T) {
	tokens, _ := tokensOf(t, `reader , read: ["web"]`)
	s := serve(t, door.Options{Tokens: tokens}, echo)
	if resp, _ := s.ask("/metrics"); resp.StatusCode != 200 {
		t.Errorf("from this host: %d", resp.StatusCode)
	}
	if resp, _ := s.ask("/metrics", "Host: evil.example"); resp.StatusCode != 421 {
		t.Errorf("a name that is not known: %d", resp.StatusCode)
	}
}

func TestHosts(t *testing.T) {
	s := serve(t, door.Options{Hosts: []string{"logs.example", "Other.Example:8516"}}, echo)
	_, port, _ := net.SplitHostPort(s.host)
	for host, want := range map[string]int{
		s.host: 200, "localhost:" + port: 200, "LOCALHOST": 200, "127.0.0.1": 200, "127.0.0.2:1": 200, "[::1]:" + port: 200, "[::1]": 200,
		"logs.example": 200, "LOGS.example:443": 200, "logs.example.": 200, "other.example": 200,
		"evil": 421, "evil:" + port: 421, "10.0.0.1": 421, "logs.example.evil": 421, "xlogs.example": 421, "127.0.0.1.evil.example": 421, "localhost.evil:80": 421,
		"[fe80::1%25eth0]": 421, "0.0.0.0": 421,
	} {
		for _, path := range []string{"/q", "/tail", "/light", "/metrics"} {
			if resp, _ := s.ask(path, "Host: "+host); resp.StatusCode != want {
				t.Errorf("%s of Host %s: %d, want %d", path, host, resp.StatusCode, want)
			}
		}
		if resp, _ := s.ask("/ready", "Host: "+host); resp.StatusCode != 200 {
			t.Errorf("/ready of Host %s: %d", host, resp.StatusCode)
		}
	}
}

func TestOrigins(t *testing.T) {
	tokens, _ := tokensOf(t, `reader , read: ["web"]`)
	s := serve(t, door.Options{Tokens: tokens, CORS: "https://app.example"}, echo)
	basic := "Authorization: Basic cmVhZGVyOnMzY3JldC1yZWFkZXI="
	socket := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
	for _, c := range []struct {
		path    string
		headers []string
		want    int
	}{
		{"/q", []string{basic}, 200},
		{"/q", []string{basic, "Origin: " + s.url}, 200},
		{"/q", []string{basic, "Origin: " + s.url, "Sec-Fetch-Site: same-origin"}, 200},
		{"/q", []string{basic, "Sec-Fetch-Site: same-site"}, 200},
		{"/q", []string{basic, "Sec-Fetch-Site: cross-site"}, 403},
		{"/q", []string{basic, "Origin: http://evil.example"}, 403},
		{"/q", []string{basic, "Origin: null"}, 403},
		{"/q", []string{basic, "Origin: http://127.0.0.1:1"}, 403},
		{"/light", []string{basic, "Origin: http://evil.example"}, 403},
		{"/tail", append([]string{basic, "Origin: http://evil.example"}, socket...), 403},
		{"/tail", append([]string{"Origin: http://evil.example"}, socket...), 403},
		{"/tail", append([]string{basic, "Origin: " + s.url}, socket...), 200},
		{"/q", []string{bearer("reader"), "Origin: http://evil.example"}, 200}, // a program with a token of its own
		{"/q", []string{basic, "Origin: https://app.example", "Sec-Fetch-Site: cross-site"}, 200},
		{"/tail", append([]string{basic, "Origin: https://app.example"}, socket...), 200},
		{"/q", []string{"Method: OPTIONS", "Origin: https://app.example", "Access-Control-Request-Method: GET"}, 204},
		{"/q", []string{"Method: OPTIONS", "Origin: https://evil.example", "Access-Control-Request-Method: GET"}, 403},
	} {
		resp, body := s.ask(c.path, c.headers...)
		if resp.StatusCode != c.want {
			t.Errorf("%s with %q: %d, want %d: %s", c.path, c.headers, resp.StatusCode, c.want, body)
		}
		allowed := resp.Header.Get("Access-Control-Allow-Origin")
		if app := strings.Contains(strings.Join(c.headers, "\n"), "https://app.example"); app != (allowed == "https://app.example") || !app && allowed != "" {
			t.Errorf("%s with %q: the browser may give it to %q", c.path, c.headers, allowed)
		}
	}
}
