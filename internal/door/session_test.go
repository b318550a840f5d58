package door_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/count"
	"blobtail/internal/door"
)

// portal is a guard with sessions, and a handler behind it that says who asks.
type portal struct {
	t      *testing.T
	guard  *door.Guard
	h      http.Handler
	reg    *count.Registry
	log    *journal
	tokens string // the file
	again  func() error
}

func newPortal(t *testing.T, o door.Options, entries ...string) *portal {
	t.Helper()
	p := &portal{t: t, reg: new(count.Registry), log: new(journal)}
	var tokens *access.Tokens
	tokens, p.tokens = tokensOf(t, entries...)
	sessions, err := access.OpenSessions(tokens, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	o.OtherSite = "another site"
	o.Tokens, o.Sessions, o.Log, p.again = tokens, sessions, zerolog.New(p.log), tokens.Reload
	o.Refused = door.NewRefused(p.reg, "test_refused_total", "Refused.", "session")
	p.guard = door.New(o)
	reads := door.NewReads(door.ReadsOptions{Guard: p.guard, Log: zerolog.Nop(), Route: routes})
	p.h = reads.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s until %d", door.Token(r).ID, door.SessionEnd(r).Unix())
	}))
	return p
}

// ask sends a GET with headers, as "Name: value", and with a cookie unless it is nil.
func (p *portal) ask(path string, cookie *http.Cookie, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8516"+path, nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	p.h.ServeHTTP(w, r)
	return w
}

// login logs in at a host and returns the cookie.
func (p *portal) login(host, token string) *http.Cookie {
	p.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://"+host+"/", nil)
	w := httptest.NewRecorder()
	if _, _, f := p.guard.Login(w, r, token); f != nil {
		p.t.Fatalf("%d %s", f.Status, f.Reason)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		p.t.Fatalf("cookies: %v", cookies)
	}
	return cookies[0]
}

// A cookie lets in what its token may, for pages of the server alone. Another header with a token
// counts before it.
func TestSessions(t *testing.T) {
	p := newPortal(t, door.Options{Hosts: []string{"logs.example"}, CORS: "https://app.example"}, `ann , read: ["web"]`, `bob , read: ["*"]`)
	cookie := p.login("localhost:8516", "ann.s3cret-ann")
	text := cookie.String()
	for _, part := range []string{"blobtail-8516=", "Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	if strings.Contains(text, "Domain") || strings.Contains(text, "Secure") || strings.Contains(text, "s3cret") {
		t.Errorf("the cookie: %s", text)
	}
	changed := *cookie
	changed.Value = strings.Replace(cookie.Value, ".ann.", ".bob.", 1)
	for _, c := range []struct {
		name    string
		cookie  *http.Cookie
		headers []string
		want    int
		says    string
	}{
		{"no header, as old browsers", cookie, nil, 200, "ann until 1"},
		{"its page", cookie, []string{"Sec-Fetch-Site: same-origin"}, 200, "ann until"},
		{"its page, with its origin", cookie, []string{"Sec-Fetch-Site: same-origin", "Origin: http://localhost:8516"}, 200, "ann until"},
		{"a typed address", cookie, []string{"Sec-Fetch-Site: none"}, 200, "ann until"},
		{"another site", cookie, []string{"Sec-Fetch-Site: cross-site"}, 403, "another site"},
		{"another origin", cookie, []string{"Origin: https://evil.example"}, 403, "another site"},
		{"no origin", cookie, []string{"Origin: null"}, 403, "another site"},
		{"another host of the site", cookie, []string{"Sec-Fetch-Site: same-site"}, 401, "a token is needed"},
		{"another port of the host", cookie, []string{"Origin: http://localhost:9000"}, 403, "another site"},
		{"the allowed site", cookie, []string{"Origin: https://app.example", "Sec-Fetch-Site: same-site"}, 401, "a token is needed"},
		{"the allowed site, with a token", cookie, []string{"Origin: https://app.example", bearer("bob")}, 200, "bob until -"},
		{"another name", cookie, []string{"Host: evil.example:8516"}, 421, ""},
		{"the other port's cookie", cookie, []string{"Host: localhost:9000"}, 401, "a token is needed"},
		{"a token in the header", cookie, []string{bearer("bob")}, 200, "bob until -"},
		{"a wrong token in the header", cookie, []string{"Authorization: Bearer bob.x"}, 401, "not known"},
		{"a header that is none", cookie, []string{"Authorization: x"}, 401, "another word than Bearer"},
		{"nobody", nil, nil, 401, "a token is needed"},
		{"a page without a session", nil, []string{"Sec-Fetch-Site: same-origin"}, 401, "log in with a token"},
		{"another id", &changed, nil, 401, "log in with a token"},
		{"two", cookie, []string{"Cookie: " + cookie.Name + "=x"}, 401, "log in with a token"},
		{"an empty one", &http.Cookie{Name: cookie.Name}, nil, 401, "log in with a token"},
	} {
		w := p.ask("/api/x", c.cookie, c.headers...)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if kept := w.Header().Get("Cache-Control"); (c.want == 401 || strings.HasPrefix(c.says, "ann")) && kept != "no-store" {
			t.Errorf("%s: a cache may keep it: %q", c.name, kept)
		}
		// A browser asks its user for a name and a password only if he has typed the address.
		ofPage := strings.Contains(strings.Join(c.headers, " "), "Sec-Fetch-Site: same-")
		if schemes := len(w.Header().Values("WWW-Authenticate")); w.Code == 401 && (schemes == 1) != ofPage {
			t.Errorf("%s: %q", c.name, w.Header().Values("WWW-Authenticate"))
		}
	}
	if log := p.log.String(); !strings.Contains(log, `"token":"ann","remote"`) || strings.Contains(log, "s3cret") || strings.Contains(log, cookie.Value) {
		t.Errorf("the log:\n%s", log)
	}
	if got := count.Read(p.reg.Page())[`test_refused_total{reason="session"}`]; got != 4 {
		t.Errorf("%v without a session", got)
	}
}

// Over TLS, the server's or a proxy's, the cookie is that of one host, and of no other scheme.
func TestSessionsOverTLS(t *testing.T) {
	for name, o := range map[string]door.Options{"TLS": {TLS: true}, "proxy": {Proxied: true}} {
		o.Hosts = []string{"logs.example"}
		p := newPortal(t, o, `ann , read: ["web"]`)
		cookie := p.login("logs.example", "ann.s3cret-ann")
		if text := cookie.String(); !strings.HasPrefix(text, "__Host-blobtail=") || !strings.Contains(text, "; Secure") || strings.Contains(text, "Domain") || !strings.Contains(text, "Path=/;") {
			t.Errorf("%s: %s", name, text)
		}
		if w := p.ask("/api/x", cookie, "Host: logs.example", "Origin: https://logs.example"); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		plain := &http.Cookie{Name: "blobtail-8516", Value: cookie.Value}
		if w := p.ask("/api/x", plain); w.Code != 401 {
			t.Errorf("%s: without the prefix %d", name, w.Code)
		}
		if o.TLS {
			if w := p.ask("/api/x", cookie, "Host: logs.example", "Origin: http://logs.example"); w.Code != 403 {
				t.Errorf("%s: from plain HTTP %d", name, w.Code)
			}
		}
	}
}

// A session ends after 12 hours, and when its token is taken away.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPortal(t, door.Options{}, `ann , read: ["web"]`, `bob , read: ["web"]`)
		ann, bob := p.login("localhost:8516", "ann.s3cret-ann"), p.login("localhost:8516", "bob.s3cret-bob")
		time.Sleep(11 * time.Hour)
		writeTokens(t, p.tokens, `ann , read: ["web"]`, `bob , write: ["web"]`)
		if err := p.again(); err != nil {
			t.Fatal(err)
		}
		if w := p.ask("/api/x", ann); w.Code != 200 {
			t.Errorf("after 11 hours: %d %s", w.Code, w.Body)
		}
		if w := p.ask("/api/x", bob); w.Code != 403 {
			t.Errorf("a token that may read nothing any more: %d %s", w.Code, w.Body)
		}
		writeTokens(t, p.tokens, `ann , read: ["web"]`)
		if err := p.again(); err != nil {
			t.Fatal(err)
		}
		if w := p.ask("/api/x", bob); w.Code != 401 {
			t.Errorf("a token that is not there any more: %d %s", w.Code, w.Body)
		}
		time.Sleep(time.Hour)
		if w := p.ask("/api/x", ann); w.Code != 401 || !strings.Contains(w.Body.String(), "the session has ended") {
			t.Errorf("after 12 hours: %d %s", w.Code, w.Body)
		}
	})
}

// Metrics need the role operator, whether a header or a cookie shows the token.
func TestSessionsOfOperators(t *testing.T) {
	p := newPortal(t, door.Options{Proxied: true, Hosts: []string{"logs.example"}}, `ann , read: ["web"]`, `op , role: operator, read: ["web"]`)
	for id, want := range map[string]int{"ann": 403, "op": 200} {
		if w := p.ask("/metrics", p.login("logs.example", id+".s3cret-"+id), "Host: logs.example"); w.Code != want {
			t.Errorf("%s: %d %s", id, w.Code, w.Body)
		}
	}
}

// A login is refused to tokens that may read nothing, and to pages of other origins, also to those
// of the allowed site. No refusal sets a cookie.
func TestLoginRefused(t *testing.T) {
	p := newPortal(t, door.Options{CORS: "https://app.example"}, `ann , read: ["web"]`, `sends , write: ["web"]`)
	for _, c := range []struct {
		token, name, value string
		want               int
		says               string
	}{
		{"sends.s3cret-sends", "", "", 403, "may read no service"},
		{"ann.x", "", "", 401, "not known"},
		{"eve.x", "", "", 401, "not known"},
		{"ann", "", "", 401, "no dot"},
		{"Bearer ann.s3cret-ann", "", "", 401, "a token is ID.SECRET"},
		{"ann.s3cret-ann", "Sec-Fetch-Site", "same-site", 403, "only the page"},
		{"ann.s3cret-ann", "Origin", "https://app.example", 403, "only the page"},
		{"ann.s3cret-ann", "Origin", "https://evil.example", 403, "only the page"},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:8516/", nil)
		if c.name != "" {
			r.Header.Set(c.name, c.value)
		}
		w := httptest.NewRecorder()
		token, _, f := p.guard.Login(w, r, c.token)
		if f == nil || f.Status != c.want || !strings.Contains(f.Reason, c.says) || token != nil || len(w.Result().Cookies()) > 0 {
			t.Errorf("%+v: %v, cookies %v", c, f, w.Result().Cookies())
		}
		if c.want == 403 && c.name != "" {
			if f := p.guard.Logout(w, r); f == nil || len(w.Result().Cookies()) > 0 {
				t.Errorf("%+v: logged out", c)
			}
		}
	}
	if log := p.log.String(); strings.Contains(log, "s3cret") {
		t.Errorf("the log:\n%s", log)
	}
	none := door.New(door.Options{})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8516/", nil)
	if token, ends, f := none.Login(w, r, "a.b"); token != nil || !ends.IsZero() || f != nil || none.Logout(w, r) != nil || len(w.Result().Cookies()) > 0 {
		t.Errorf("without tokens: %v %v %v", token, ends, f)
	}
}

// No cookie header of a stranger lets anybody in, and none panics.
func FuzzCookie(f *testing.F) {
	tokens, _ := tokensOf(f, `ann , read: ["web"]`)
	sessions, err := access.OpenSessions(tokens, "", zerolog.Nop())
	if err != nil {
		f.Fatal(err)
	}
	guard := door.New(door.Options{Tokens: tokens, Sessions: sessions, Log: zerolog.Nop()})
	h := guard.Wrap(func(string) door.Kind { return door.Query }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }))
	w := httptest.NewRecorder()
	_, _, refused := guard.Login(w, httptest.NewRequest(http.MethodPost, "http://localhost/", nil), "ann.s3cret-ann")
	if refused != nil {
		f.Fatal(refused)
	}
	good := w.Result().Cookies()[0]
	f.Add(`blobtail-=x; blobtail-="1.ann.1.x"`, "localhost", uint(3))
	f.Add("=;=,;;blobtail-8516", "localhost:8516", uint(0))
	f.Add("a=b", "[::1]:x\x00y", uint(80))
	f.Fuzz(func(t *testing.T, header, host string, at uint) {
		changed := []byte(good.Value)
		changed[at%uint(len(changed))] ^= 1
		for _, cookie := range []string{header, good.Name + "=" + string(changed), header + "; " + good.Name + "=" + string(changed)} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host, r.Header["Cookie"] = host, []string{cookie}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 401 && w.Code != 421 {
				t.Errorf("%q at %q: %d", cookie, host, w.Code)
			}
		}
	})
}
