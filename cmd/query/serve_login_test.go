package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/internal/cli"
	"blobtail/reading/form"
)

// object decodes an answer.
func object[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return v
}

// A person logs in with a token and then reads with a cookie, which says the same of its holder as
// the token does, and when it ends. After logging out the browser has none.
func TestLogin(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `web , read: ["web"], expires: 2099-01-01T00:00:00Z`, `sends , write: ["*"]`))
	const json = "application/json"
	resp, text := s.send("POST", "/api/v1/login", `{"token":"web.s3cret"}`, "Content-Type", json+"; charset=utf-8", "Sec-Fetch-Site", "same-origin", "Origin", s.url)
	me := object[form.Whoami](t, text)
	if resp.StatusCode != 200 || me.ID != "web" || len(me.Read) != 1 || me.SessionEnds == "" || me.Expires == "" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	cookie := resp.Cookies()[0]
	_, text = s.send("GET", "/api/v1/whoami", "", "Cookie", cookie.Name+"="+cookie.Value)
	again := object[form.Whoami](t, text)
	if again.Time = me.Time; again.ID != me.ID || again.SessionEnds != me.SessionEnds || again.Expires != me.Expires || again.Read[0] != "web" {
		t.Errorf("with the cookie: %s", text)
	}
	if _, text := s.send("GET", "/api/v1/whoami", "", "Authorization", "Bearer web.s3cret"); strings.Contains(text, "session_ends") {
		t.Errorf("with the token: %s", text)
	}
	resp, _ = s.send("DELETE", "/api/v1/login", "", "Sec-Fetch-Site", "same-origin")
	if gone := resp.Cookies(); resp.StatusCode != 204 || len(gone) != 1 || gone[0].Name != cookie.Name || gone[0].MaxAge >= 0 || gone[0].Value != "" {
		t.Errorf("DELETE: %d %v", resp.StatusCode, resp.Header)
	}
	for _, c := range []struct {
		method, body, kind string
		header             [2]string
		want               int
		says               string
	}{
		{"POST", `{"token":"web.other"}`, json, [2]string{}, 401, "the token is not known"},
		{"POST", `{"token":"nobody.s3cret"}`, json, [2]string{}, 401, "the token is not known"},
		{"POST", `{"token":"web:s3cret"}`, json, [2]string{}, 401, "want a dot"},
		{"POST", `{"token":"sends.s3cret"}`, json, [2]string{}, 403, "may read no service"},
		{"POST", `{"token":"web.other"}`, json, [2]string{"Authorization", "Bearer web.s3cret"}, 401, "the token is not known"},
		{"POST", `{"token":"web.s3cret"}`, "text/plain", [2]string{}, 415, "application/json"},
		{"POST", `token=web.s3cret`, "application/x-www-form-urlencoded", [2]string{}, 415, "application/json"},
		{"POST", `{"token":"web.s3cret"}`, "", [2]string{}, 415, "application/json"},
		{"POST", `{"token":"web.s3cret"`, json, [2]string{}, 400, "ID.SECRET"},
		{"POST", `{"token":["web.s3cret"]}`, json, [2]string{}, 400, "ID.SECRET"},
		{"POST", `{"Secret":"web.s3cret"}`, json, [2]string{}, 400, "has no token"},
		{"POST", ``, json, [2]string{}, 400, "ID.SECRET"},
		{"POST", `{"token":"` + strings.Repeat("x", 5000) + `"}`, json, [2]string{}, 413, "4 KiB"},
		{"POST", `{"token":"web.s3cret"}`, json, [2]string{"Origin", "https://evil.example"}, 403, "another site"},
		{"POST", `{"token":"web.s3cret"}`, json, [2]string{"Sec-Fetch-Site", "cross-site"}, 403, "another site"},
		{"POST", `{"token":"web.s3cret"}`, json, [2]string{"Sec-Fetch-Site", "same-site"}, 403, "only the page"},
		{"POST", `{"token":"web.s3cret"}`, json, [2]string{"Host", "evil.example"}, 421, "--host"},
		{"DELETE", ``, "", [2]string{"Sec-Fetch-Site", "same-site"}, 403, "only the page"},
		{"GET", ``, "", [2]string{}, 405, "send a POST"},
		{"PUT", ``, json, [2]string{}, 405, "send a POST"},
	} {
		header := []string{"Content-Type", c.kind}
		if c.header[0] != "" {
			header = append(header, c.header[:]...)
		}
		resp, text := s.send(c.method, "/api/v1/login", c.body, header...)
		if resp.StatusCode != c.want || !strings.Contains(text, c.says) || strings.Contains(text, "s3cret") || len(resp.Cookies()) > 0 {
			t.Errorf("%+v: %d %v %s", c, resp.StatusCode, resp.Header, text)
		}
		if problem := object[form.Problem](t, text); problem.Status != c.want {
			t.Errorf("%+v: %s", c, text)
		}
		if schemes := strings.Join(resp.Header.Values("WWW-Authenticate"), ", "); c.want == 401 && strings.Contains(schemes, "Basic") {
			t.Errorf("%+v: a browser asks for a password: %s", c, schemes)
		}
	}
	if log := s.stderr.String(); strings.Contains(log, "s3cret") || strings.Contains(log, cookie.Value) || !strings.Contains(log, "logged in") {
		t.Errorf("the log:\n%s", log)
	}
}

// The server logs the id of the token with each query of a session, as with its header.
func TestLoginAudited(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `web , read: ["web"]`))
	if code, answer := s.ask("/api/v1/count?service=web", s.login("web.s3cret")); code != 200 {
		t.Fatal(code, answer)
	}
	s.end()
	if code := <-s.code; code != cli.OK {
		t.Error(code)
	}
	s.code <- cli.OK
	if log := s.stderr.String(); !strings.Contains(log, `"token":"web","client":"127.0.0.1:`) {
		t.Errorf("the log:\n%s", log)
	}
}

// Without tokens a login says what everybody may do, and sets no cookie.
func TestLoginWithoutTokens(t *testing.T) {
	s := serve(t)
	resp, text := s.send("POST", "/api/v1/login", `{"token":"a.b"}`, "Content-Type", "application/json")
	if me := object[form.Whoami](t, text); resp.StatusCode != 200 || me.ID != "" || len(me.Read) != 2 || me.SessionEnds != "" || len(resp.Cookies()) > 0 {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	if resp, _ := s.send("DELETE", "/api/v1/login", ""); resp.StatusCode != 204 || len(resp.Cookies()) > 0 {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

// A session counts at each server with its key, and at no other one.
func TestSessionKey(t *testing.T) {
	file := tokenFile(t, `web , read: ["web"]`)
	key := filepath.Join(t.TempDir(), "session.key")
	config := filepath.Join(t.TempDir(), "blobtail.yaml")
	for path, text := range map[string]string{key: strings.Repeat("k", 44) + "\n", config: "access:\n  session-key: " + key + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := serve(t, "--tokens", file, "--session-key", key)
	value := func(s *serving) string {
		_, value, _ := strings.Cut(s.login("web.s3cret"), "=")
		return value
	}
	session := value(with)
	for _, c := range []struct {
		name    string
		s       *serving
		session string
		want    int
	}{
		{"itself", with, session, 200},
		{"the same key", serve(t, "--tokens", file, "--config", config), session, 200},
		{"another one", serve(t, "--tokens", file), session, 401},
		{"of another one", with, value(serve(t, "--tokens", file)), 401},
	} {
		_, port, _ := strings.Cut(strings.TrimPrefix(c.s.url, "http://"), ":")
		if code, answer := c.s.ask("/api/v1/whoami", "cookie blobtail-"+port+"="+c.session); code != c.want {
			t.Errorf("%s: %d %s", c.name, code, answer)
		}
	}
}

// A page that is behind a proxy gets a cookie for TLS alone.
func TestLoginBehindProxy(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `web , read: ["web"]`), "--behind-proxy", "--host", "logs.example")
	resp, _ := s.send("POST", "/api/v1/login", `{"token":"web.s3cret"}`, "Content-Type", "application/json", "Host", "logs.example", "Origin", "https://logs.example", "X-Forwarded-For", "192.0.2.7")
	if c := resp.Cookies(); len(c) != 1 || c[0].Name != "__Host-blobtail" || !c[0].Secure || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Domain != "" || c[0].Path != "/" || c[0].MaxAge != 43200 {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if !strings.Contains(s.stderr.String(), `"remote":"192.0.2.7:0"`) {
		t.Errorf("the log:\n%s", s.stderr)
	}
}
