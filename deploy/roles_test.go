package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/azure"
)

// needs returns lists of actions for a request to Azure Storage, by "Permissions for calling data
// operations". Each list alone suffices. tables says that the table service gets the request.
func needs(r *http.Request, tables bool) [][]string {
	// /ACCOUNT/CONTAINER/NAME
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	for len(parts) < 3 {
		parts = append(parts, "")
	}
	q := r.URL.Query()
	const blobs, rows = "blobServices/containers/blobs/", "tableServices/tables/entities/"
	what := r.Method
	switch {
	case tables && parts[1] == "Tables" && r.Method == http.MethodPost:
		return [][]string{{"tableServices/tables/write"}}
	case tables && parts[1] == "Tables":
		return [][]string{{"tableServices/tables/read"}}
	case tables && strings.HasPrefix(parts[1], "Tables("):
		return [][]string{{"tableServices/tables/delete"}}
	case tables && parts[1] == "$batch", tables && what == http.MethodPut:
		return [][]string{{rows + "write"}, {rows + "add/action", rows + "update/action"}}
	case tables && what == http.MethodPost:
		return [][]string{{rows + "write"}, {rows + "add/action"}}
	case tables:
		return [][]string{{rows + "read"}}
	case q.Get("comp") == "list":
		return [][]string{{blobs + "read"}}
	case q.Get("comp") == "batch", q.Get("restype") == "container" && what == http.MethodPut:
		return [][]string{{"blobServices/containers/write"}}
	case q.Get("restype") == "container":
		return [][]string{{"blobServices/containers/read"}}
	case what == http.MethodPut && r.Header.Get("If-None-Match") == "*":
		return [][]string{{blobs + "write"}, {blobs + "add/action"}}
	case what == http.MethodPut:
		return [][]string{{blobs + "write"}}
	case what == http.MethodDelete:
		return [][]string{{blobs + "delete"}}
	}
	return [][]string{{blobs + "read"}}
}

// guard stands before the services of an account and refuses requests that a role does not allow.
type guard struct {
	allowed []string

	mu      sync.Mutex
	used    map[string]bool // actions that some request needed
	refused map[string]bool // the refused requests
}

// before returns the connection string of the account behind the guard.
func (g *guard) before(t *testing.T, a *testenv.Azurite) string {
	serve := func(endpoint string, tables bool) string {
		to, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !g.allows(r, tables) {
				w.Header().Set("x-ms-error-code", "AuthorizationPermissionMismatch")
				w.WriteHeader(http.StatusForbidden)
				return
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return server.URL + to.Path
	}
	return fmt.Sprintf("AccountName=%s;AccountKey=%s;BlobEndpoint=%s;TableEndpoint=%s", a.Account, testenv.Key, serve(a.BlobURL, false), serve(a.TableURL, true))
}

func (g *guard) allows(r *http.Request, tables bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, way := range needs(r, tables) {
		if !slices.ContainsFunc(way, func(action string) bool { return !slices.Contains(g.allowed, action) }) {
			for _, action := range way {
				g.used[action] = true
			}
			return true
		}
	}
	q := r.URL.Query()
	g.refused[strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, q.Get("restype"), q.Get("comp")))] = true
	return false
}

// guarded returns a guard with the actions of a role in azure/roles.
func guarded(t *testing.T, name string) *guard {
	t.Helper()
	var r struct{ Actions, DataActions []string }
	if err := json.Unmarshal([]byte(read(t, "azure/roles/"+name+".json")), &r); err != nil {
		t.Fatal(err)
	}
	g := &guard{used: map[string]bool{}, refused: map[string]bool{}}
	for _, action := range slices.Concat(r.Actions, r.DataActions) {
		g.allowed = append(g.allowed, strings.TrimPrefix(action, "Microsoft.Storage/storageAccounts/"))
	}
	return g
}

// check reports refusals that were not expected, and actions that no request needed.
func (g *guard) check(t *testing.T, refused ...string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for what := range g.refused {
		if !slices.Contains(refused, what) {
			t.Errorf("the role does not allow %q", what)
		}
	}
	for _, action := range g.allowed {
		if !g.used[action] {
			t.Errorf("nothing needs %s", action)
		}
	}
}

// TestBicep ensures that the template has the roles of files that exist, and that no rule of it
// deletes or archives blobs: only the job deletes, and archived blobs cannot be read.
func TestBicep(t *testing.T) {
	text := regexp.MustCompile(`(?m)^\s*//.*\n`).ReplaceAllString(read(t, "azure/store.bicep"), "")
	roles := regexp.MustCompile(`loadJsonContent\('([^']*)'\)`).FindAllStringSubmatch(text, -1)
	for _, m := range roles {
		read(t, "azure/"+m[1])
	}
	if len(roles) != 3 || !strings.Contains(text, "tierToCool") || strings.Contains(text, "delete:") || strings.Contains(text, "tierToArchive") {
		t.Errorf("%d roles, or a rule that does not only cool:\n%s", len(roles), text)
	}
}

// TestRolesSuffice runs the processes, each with the actions of its role and no others. They
// work, and use each action.
func TestRolesSuffice(t *testing.T) {
	testkit.FullOnly(t, "it builds three programs")
	accounts, stop, err := testenv.Start(1)
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	defer stop()
	a, container := accounts[0], testenv.Name("c")
	s, err := azure.Open(container, azure.Options{Getenv: a.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "blobtail.yaml")
	if err := os.WriteFile(conf, []byte("retention: {default: 90d}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(g *guard, dir, bin string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, append(args, "--store", "azure:"+container)...)
		cmd.Env = []string{"HOME=" + dir, "AZURE_STORAGE_CONNECTION_STRING=" + g.before(t, a)}
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}

	t.Run("ingester", func(t *testing.T) {
		g := guarded(t, "ingester")
		ingesting(t, g, a, container, func(dir, bin string) {
			if out, code := run(g, dir, bin, "check", "--wal", dir+"/other", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"); code != 0 {
				t.Errorf("check: exit %d\n%s", code, out)
			}
		})
		// The start tries to make the container, and goes on if it exists.
		g.check(t, "PUT container")
	})
	t.Run("reader", func(t *testing.T) {
		g, bin := guarded(t, "reader"), testkit.Command(t, "..", "logquery")
		for _, args := range []string{"web -n 5", "tail web", "ls", "verify", "ingesters", "hist web", "bill"} {
			if out, code := run(g, t.TempDir(), bin, strings.Fields(args)...); code != 0 {
				t.Errorf("logquery %s: exit %d\n%s", args, code, out)
			}
		}
		g.check(t)
	})
	t.Run("retention", func(t *testing.T) {
		g, bin := guarded(t, "retention"), job(t)
		if out, code := run(g, t.TempDir(), bin, "apply", "--config", conf); code != 0 {
			t.Errorf("apply: exit %d\n%s", code, out)
		}
		if out, code := run(g, t.TempDir(), bin, "compact", "--config", conf); code != 0 {
			t.Errorf("compact: exit %d\n%s", code, out)
		}
		day := time.Now().UTC().Format(time.DateOnly)
		out, _ := run(g, t.TempDir(), bin, "drop", "web", "--day", day)
		hash := regexp.MustCompile(`(?m)^plan ([0-9a-f]{64})$`).FindStringSubmatch(out)
		if hash == nil {
			t.Fatalf("no plan:\n%s", out)
		}
		if out, code := run(g, t.TempDir(), bin, "drop", "web", "--day", day, "--confirm", hash[1]); code != 0 || !regexp.MustCompile("dropped (1 table|2 tables);").MatchString(out) { // that of tomorrow is there an hour before
			t.Errorf("drop: exit %d\n%s", code, out)
		}
		// The job deletes one by one if it may not delete many at once. It goes on without the rows of
		// ingesters, that an older version may have written.
		g.check(t, "POST container batch", "GET")
	})
}

// ingesting runs an ingester until it has stored records of web, and calls while meanwhile.
func ingesting(t *testing.T, g *guard, a *testenv.Azurite, container string, while func(dir, bin string)) {
	dir, bin := t.TempDir(), ingester(t)
	cmd := exec.CommandContext(t.Context(), bin, "--store", "azure:"+container, "--wal", dir+"/wal", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Env = []string{"HOME=" + dir, "AZURE_STORAGE_CONNECTION_STRING=" + g.before(t, a)}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	said := func() string {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ask := func(method, url, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	var addresses []string // for records and for operators
	testkit.Until(t, "the ingester is ready", func() bool {
		addresses = regexp.MustCompile(`"listen":"([^"]+)","admin":"([^"]+)".*"message":"ready"`).FindStringSubmatch(said())
		return addresses != nil
	})
	for range 3 { // one blob each
		for _, question := range []string{"http://" + addresses[1] + "/ingest/web", "http://" + addresses[2] + "/flush"} {
			if code, text := ask(http.MethodPost, question, `{"msg":"a record"}`); code != http.StatusOK {
				t.Fatalf("%s: %d %s", question, code, text)
			}
		}
	}
	while(dir, bin)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said())
	}
}
