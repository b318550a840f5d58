package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"blobtail/serve/page"
)

// most is the size that all files of the page may have together, as browsers get them: in gzip. It
// only shrinks.
const most = 52_250

// read returns the files of the page.
func read(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := os.ReadDir("files")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, f := range all {
		if strings.HasSuffix(f.Name(), ".d.ts") {
			continue // for `make lint` alone
		}
		text, err := os.ReadFile(filepath.Join("files", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name()] = text
	}
	return files
}

// get sends a request to the handler.
func get(h http.Handler, method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// decoded is the body of an answer without its encoding.
func decoded(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	var body io.Reader = resp.Body
	var err error
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		body, err = gzip.NewReader(body)
	case "zstd":
		body, err = zstd.NewReader(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// path is the path of a file.
func path(name string) string {
	if name == "index.html" {
		return "/"
	}
	return page.Prefix + name
}

// Each file comes whole in each encoding, with a type that browsers need, and is not sent again
// to a client that has it.
func TestFiles(t *testing.T) {
	h := page.New()
	for name := range read(t) {
		want := decoded(t, get(h, "GET", path(name)))
		for accept, encoding := range map[string]string{
			"": "", "gzip": "gzip", "gzip, deflate, br, zstd": "zstd", "gzip;q=1, zstd;q=0.5": "gzip", "br": "", "gzip;q=0": "",
		} {
			resp := get(h, "GET", path(name)+"?a=b", "Accept-Encoding", accept)
			got := decoded(t, resp)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != encoding || !bytes.Equal(got, want) {
				t.Errorf("%s with %q: %d %v, %d bytes, want %d", name, accept, resp.StatusCode, resp.Header, len(got), len(want))
			}
			tag := resp.Header.Get("ETag")
			if resp.Header.Get("Cache-Control") != "no-cache" || !slices.Contains(resp.Header.Values("Vary"), "Accept-Encoding") || !strings.HasPrefix(tag, `"`) {
				t.Errorf("%s: %v", name, resp.Header)
			}
			for _, has := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
				again := get(h, "GET", path(name), "Accept-Encoding", accept, "If-None-Match", has)
				if body := decoded(t, again); again.StatusCode != 304 || len(body) > 0 || again.Header.Get("ETag") != tag || again.Header.Get("Content-Encoding") != "" {
					t.Errorf("%s with %s: %d %v %q", name, has, again.StatusCode, again.Header, body)
				}
			}
			if again := get(h, "GET", path(name), "If-None-Match", `"x"`); again.StatusCode != 200 {
				t.Errorf("%s with another tag: %d", name, again.StatusCode)
			}
			head := get(h, "HEAD", path(name), "Accept-Encoding", accept)
			if body := decoded(t, get(h, "HEAD", path(name))); head.StatusCode != 200 || len(body) > 0 || head.Header.Get("Content-Length") != resp.Header.Get("Content-Length") {
				t.Errorf("HEAD %s: %d %v %q", name, head.StatusCode, head.Header, body)
			}
		}
		kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".txt": "text/plain"}
		if kind := get(h, "GET", path(name)).Header.Get("Content-Type"); kind != kinds[filepath.Ext(name)]+"; charset=utf-8" {
			t.Errorf("%s is %q", name, kind)
		}
	}
}

// No other path and no other method is answered, and each answer has the headers that keep
// markup of a record from being run.
func TestHeaders(t *testing.T) {
	h := page.New()
	for _, path := range []string{"/ui/", "/ui/index.html", "/ui/none.js", "/ui/../page.go", "/ui/files/app.js", "/ui/app.js/", "/ui/%2e%2e/page.go", "/ui/./app.js", "/app.js", "/ui"} {
		if resp := get(h, "GET", path); resp.StatusCode != 404 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		if resp := get(h, method, "/"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, resp.StatusCode, resp.Header)
		}
	}
	for _, resp := range []*http.Response{get(h, "GET", "/"), get(h, "GET", "/ui/app.js"), get(h, "GET", "/ui/none"), get(h, "POST", "/"), get(h, "GET", "/", "If-None-Match", "*")} {
		policy := resp.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !slices.Contains(strings.Split(policy, "; "), part) {
				t.Errorf("no %s in %q", part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("the policy lets too much in: %q", policy)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// vendored are the files that others wrote, as npm has them.
func vendored() map[string]string {
	return map[string]string{
		"preact.js": "node_modules/preact/dist/preact.mjs", "hooks.js": "node_modules/preact/hooks/dist/hooks.mjs",
		"preact-LICENSE.txt": "node_modules/preact/LICENSE",
	}
}

// The vendored files are those of npm, but for the path of an import and the comment that names a
// source map. So they have its hashes once both are put back.
func TestVendored(t *testing.T) {
	list, err := os.ReadFile("preact.sha256")
	if err != nil {
		t.Fatal(err)
	}
	files := read(t)
	for name, from := range vendored() {
		text := string(files[name])
		if module := filepath.Base(from); strings.HasSuffix(name, ".js") {
			text = strings.ReplaceAll(text, `from"./preact.js"`, `from"preact"`) + "//# sourceMappingURL=" + module + ".map\n"
		}
		sum := sha256.Sum256([]byte(strings.TrimSuffix(text, "\n")))
		whole := sha256.Sum256([]byte(text))
		hash := func(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) + "  " + from }
		if lines := strings.Split(string(list), "\n"); !slices.Contains(lines, hash(sum)) && !slices.Contains(lines, hash(whole)) {
			t.Errorf("%s is not what npm has, by preact.sha256", name)
		}
		npm, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(from)))
		if os.IsNotExist(err) {
			t.Logf("%s is not installed (npm ci), so only the hash was checked", from)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSuffix(string(npm), "\n") != strings.TrimSuffix(text, "\n") {
			t.Errorf("%s is not that of %s; package-lock.json has another version?", name, from)
		}
	}
}

// No file of ours makes markup or code of a text, loads anything from elsewhere, or keeps a token.
func TestForbidden(t *testing.T) {
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|setHTMLUnsafe|parseHTMLUnsafe|createContextualFragment|` +
		`DOMParser|srcdoc|document\.write|\beval\b|new Function\b|[^.\w]Function\(|javascript:|document\.cookie|trustedTypes|` +
		`setTimeout\(\s*["'` + "`" + `]|sourceMappingURL|serviceWorker|importScripts`)
	stored := regexp.MustCompile(`(?i)(localStorage|sessionStorage|indexedDB).*(token|secret|password)|(token|secret|password).*(localStorage|sessionStorage|indexedDB)`)
	elsewhere := regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?\s*(https?:)?//|@import|url\(\s*["']?(?:https?:)?//|from\s*["'](?:https?:)?//|fetch\(\s*["'](?:https?:)?//`)
	inline := regexp.MustCompile(`(?i)<script(?:\s+[^>]*)?>[^<]|\son[a-z]+\s*=\s*["']|<style|\sstyle\s*=`)
	theirs := vendored()
	for name, text := range read(t) {
		if _, not := theirs[name]; not {
			continue
		}
		rules := []*regexp.Regexp{never, stored, elsewhere}
		if filepath.Ext(name) == ".html" {
			rules = append(rules, inline)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, rule := range rules {
				if found := rule.FindString(line); found != "" {
					t.Errorf("files/%s:%d has %s", name, i+1, found)
				}
			}
		}
	}
}

// The page is small: a person on a slow line has it at once.
func TestSize(t *testing.T) {
	sum, h := 0, page.New()
	for name := range read(t) {
		sent, err := io.ReadAll(get(h, "GET", path(name), "Accept-Encoding", "gzip").Body)
		if err != nil {
			t.Fatal(err)
		}
		sum += len(sent)
		if filepath.Ext(name) == "" || name != filepath.Base(name) {
			t.Errorf("files/%s is not served", name)
		}
	}
	if sum > most {
		t.Errorf("the files of the page have %d bytes in gzip, more than %d", sum, most)
	}
}

// Each file that another file names is there, and each that is there is named.
func TestNamed(t *testing.T) {
	files := read(t)
	names := regexp.MustCompile(`(?:from\s*"\./|import\s*"\./|ui/)([a-z-]+\.(?:js|css))"`)
	named := []string{"index.html", "preact-LICENSE.txt"}
	for name, text := range files {
		for _, m := range names.FindAllStringSubmatch(string(text), -1) {
			if _, ok := files[m[1]]; !ok {
				t.Errorf("files/%s names %s, which is not there", name, m[1])
			}
			named = append(named, m[1])
		}
	}
	for name := range files {
		if !slices.Contains(named, name) && name != "hooks.js" {
			t.Errorf("no file names files/%s", name)
		}
	}
}

// The small form of a file is a program without comments, which gives other files what they import
// and passes the tests of the module.
func TestSmall(t *testing.T) {
	h, folder := page.New(), t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range read(t) {
		got := decoded(t, get(h, "GET", path(name)))
		if filepath.Ext(name) == ".js" {
			if err := os.WriteFile(filepath.Join(folder, "files", name), got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if filepath.Ext(name) != ".js" && filepath.Ext(name) != ".css" || name == "preact.js" || name == "hooks.js" {
			continue
		}
		if len(got) > len(text)*9/10 || bytes.Contains(got, []byte("/**")) {
			t.Errorf("%s is served with %d of %d bytes", name, len(got), len(text))
		}
	}
	const link = `const fs = require("fs"), vm = require("vm"), dir = process.argv[1]
		const all = fs.readdirSync(dir).map((name) => new vm.SourceTextModule(fs.readFileSync(dir + "/" + name, "utf8"), { identifier: "./" + name }))
		const named = (name) => all.find((one) => one.identifier === name)
		named("./app.js").link(named)`
	node(t, "--experimental-vm-modules", "-e", link, filepath.Join(folder, "files"))
	if err := os.CopyFS(filepath.Join(folder, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	tests(t, folder)
}
