package azuretry

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"blobtail/internal/dev/testkit"
)

// again is a process that tries the account of y, as make azure-try does, by a SAS.
func (y *try) again(t *testing.T, tests string, vars map[string]string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests, "-test.v")
	cmd.Env = append(os.Environ(), "BLOBTAIL_AZURE_TRY=1")
	for _, of := range []map[string]string{y.vars, y.signed(t, "rwdlacu"), vars} {
		for name, value := range of {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// A service that does not do as claimed is found out. It stands here as a proxy that takes a header
// away: a SAS does not sign them.
func TestFoundOut(t *testing.T) {
	testkit.FullOnly(t, "it runs itself")
	y := newTry(t)
	for _, c := range []struct{ method, header, test string }{
		{http.MethodPut, "If-None-Match", "contracts/Blobs/CreateNeverOverwrites"},
		{http.MethodPut, "If-None-Match", "contracts/Blobs/CreateRace"},
		{http.MethodPut, "Content-Md5", "claims/wrong_MD5"},
		{http.MethodPut, "X-Ms-Meta-Batch", "contracts/Blobs/Attributes"},
		{http.MethodGet, "X-Ms-Range", "contracts/Blobs/Ranges"},
		{http.MethodDelete, "If-Match", "contracts/Blobs/DeleteVersion"},
		{http.MethodPut, "If-Match", "contracts/Tables/SwapChanged"},
		{http.MethodPut, "If-Match", "contracts/Tables/SwapAtOnce"},
	} {
		vars := map[string]string{}
		for _, name := range []string{"AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_TABLE_ENDPOINT"} {
			to, err := url.Parse(y.vars[name])
			y.must(t, err)
			forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == c.method {
					r.Header.Del(c.header)
				}
				forward.ServeHTTP(w, r)
			}))
			defer server.Close()
			vars[name] = server.URL + to.Path
		}
		name := "TestTry/" + c.test
		out, err := y.again(t, "^"+strings.ReplaceAll(name, "/", "$/^")+"$", vars).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
			t.Errorf("%s without %s: %v\n%s", c.test, c.header, err, out)
		}
	}
}

// Ctrl-C, once or twice, deletes what was made.
func TestInterrupted(t *testing.T) {
	testkit.FullOnly(t, "it runs itself")
	y := newTry(t)
	cmd := y.again(t, "TestTry", nil)
	var out strings.Builder
	cmd.Stdout = &out
	y.must(t, cmd.Start())
	testkit.Until(t, "tables are made", func() bool {
		all, err := y.names(containers, tables)
		return err == nil && len(all) > 3
	})
	for range 2 {
		y.must(t, cmd.Process.Signal(syscall.SIGINT))
	}
	_ = cmd.Wait()
	if all, err := y.names(containers, tables); err != nil || len(all) > 0 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("left: %v, %v\n%s", all, err, &out)
	}
}
