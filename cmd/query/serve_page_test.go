package main

import (
	"strings"
	"testing"
)

// A browser gets the page at /, without a token, also by a link on another site. Other programs get
// the list of paths, for which they need one as before. A name that was turned to this address
// gets neither.
func TestServePage(t *testing.T) {
	s := serve(t, "--tokens", tokenFile(t, `web , read: ["web"]`))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, path := range []string{"/", "/?a=b", "/ui/app.js", "/ui/page.css"} {
		for _, site := range []string{"none", "same-origin", "cross-site"} {
			resp, text := s.send("GET", path, "", "Accept", browser, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate")
			if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "require-trusted-types-for") || text == "" {
				t.Errorf("%s from %s: %d %v", path, site, resp.StatusCode, resp.Header)
			}
			if tag := resp.Header.Get("ETag"); path == "/" {
				if again, _ := s.send("GET", path, "", "Accept", browser, "If-None-Match", tag); again.StatusCode != 304 {
					t.Errorf("again: %d", again.StatusCode)
				}
			}
		}
		if resp, _ := s.send("GET", path, "", "Accept", browser, "Host", "evil.example"); resp.StatusCode != 421 {
			t.Errorf("%s of another name: %d", path, resp.StatusCode)
		}
	}
	if resp, text := s.send("GET", "/", "", "Accept", "*/*"); resp.StatusCode != 401 {
		t.Errorf("a list without a token: %d %s", resp.StatusCode, text)
	}
	if resp, text := s.send("GET", "/", "", "Accept", "*/*", "Authorization", "Bearer web.s3cret"); resp.StatusCode != 200 || !strings.Contains(text, "/loki/api/v1/") {
		t.Errorf("the list: %d %s", resp.StatusCode, text)
	}
	if resp, _ := s.send("GET", "/ui/none.js", ""); resp.StatusCode != 404 {
		t.Errorf("no such file: %d", resp.StatusCode)
	}
	if resp, _ := s.send("POST", "/ui/app.js", "x"); resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}
