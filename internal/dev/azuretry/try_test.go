// Package azuretry tries the product on an account of Azure Storage: the contracts of a store, what
// else the product rests on, and the three programs as processes. It has tests only. `make
// azure-try` runs TestTry on a real account (docs/start/azure.md), `go test` on an emulator.
package azuretry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// env is shared by the tests of this package.
var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// The names of all that a try makes begin with these.
const (
	containers = "blobtail-try-"
	tables     = "blobtailtry"
)

// A try is one run on one account.
type try struct {
	ctx               context.Context   // Ctrl-C ends it
	vars              map[string]string // of the account, by their names
	container, tables string            // tables is how the names of its tables begin
	store             *azure.Store
	account           *azure.Account

	mu   sync.Mutex
	seen map[string]int             // answers by what they tell of the service
	took map[string][]time.Duration // by kind of request
}

// newTry opens the account of BLOBTAIL_AZURE_TRY, which the variables of all Azure stores name, or
// one of an emulator.
func newTry(t *testing.T) *try {
	id := strings.Map(func(r rune) rune { // the prefix of the tables of the tail has no digits
		if r < 'a' {
			r += 'a' - '0'
		}
		return r
	}, testenv.Name(""))
	y := &try{ctx: t.Context(), container: containers + id, tables: tables + id,
		vars: map[string]string{}, seen: map[string]int{}, took: map[string][]time.Duration{}}
	for _, name := range []string{"ACCOUNT", "KEY", "SAS_TOKEN", "BLOB_ENDPOINT", "TABLE_ENDPOINT"} {
		y.vars["AZURE_STORAGE_"+name] = os.Getenv("AZURE_STORAGE_" + name)
	}
	if os.Getenv("BLOBTAIL_AZURE_TRY") == "" {
		for _, v := range env.Azurite(t).Environ("", testenv.Key) {
			name, value, _ := strings.Cut(v, "=")
			y.vars[name] = value
		}
	}
	var err error
	if y.store, err = azure.Open(y.container, y.options(nil)); err == nil {
		y.account, err = azure.OpenAccount(y.vars["AZURE_STORAGE_ACCOUNT"], y.options(nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// options are those of the account, with some variables in place of its own.
func (y *try) options(instead map[string]string) azure.Options {
	return azure.Options{Client: azcore.ClientOptions{Transport: y}, Getenv: func(name string) string {
		for _, vars := range []map[string]string{instead, y.vars} {
			if value, ok := vars[name]; ok {
				return value
			}
		}
		return os.Getenv(name) // of an identity
	}}
}

// signed are variables with a SAS of some rights in place of the key.
func (y *try) signed(t *testing.T, rights string) map[string]string {
	account, key := y.vars["AZURE_STORAGE_ACCOUNT"], y.vars["AZURE_STORAGE_KEY"]
	sas, err := testenv.AccountSAS(account, key, rights, "https,http", time.Now().Add(time.Hour))
	y.must(t, err)
	return map[string]string{"AZURE_STORAGE_KEY": "", "AZURE_STORAGE_SAS_TOKEN": sas}
}

// Do implements the transporter of the SDK.
func (y *try) Do(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	kind := r.Method + " " + r.URL.Query().Get("comp")
	if strings.Contains(r.Header.Get("Accept"), "json") {
		kind += "of tables"
	}
	y.took[kind] = append(y.took[kind], time.Since(begun))
	y.seen[answer.Proto]++
	y.seen["x-ms-version "+answer.Header.Get("x-ms-version")]++
	if answer.TLS != nil {
		y.seen[tls.VersionName(answer.TLS.Version)]++
	}
	if answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests {
		y.seen[fmt.Sprint("slowed down by ", answer.StatusCode)]++
	}
	return answer, nil
}

// must ends a test by an error, with its remedy.
func (y *try) must(t *testing.T, err error) {
	t.Helper()
	if y.ctx.Err() != nil {
		t.Skip("interrupted")
	}
	if err != nil {
		t.Fatal(y.store.Explain(err), err)
	}
}

// TestTry tries all, and deletes what it made, also after Ctrl-C.
func TestTry(t *testing.T) {
	testkit.FullOnly(t, "it runs the three programs")
	y := newTry(t)
	ctx, stop := signal.NotifyContext(y.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	y.ctx = ctx
	left, err := y.names(containers, tables)
	y.must(t, err)
	if len(left) > 0 {
		t.Logf("earlier runs left %v; to delete them: make azure-try CLEAN=1", left)
	}
	defer func() {
		if y.ctx.Err() != nil {
			time.Sleep(2 * time.Second) // a request of a killed program may still come
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
		defer cancel()
		y.ctx = last
		if err := y.deleteAll(y.container, y.tables); err != nil {
			t.Error(err)
		}
		t.Log("answers:", y.seen)
		for kind, all := range y.took {
			slices.Sort(all)
			t.Logf("%s: median %s, at most %s of %d", kind, all[len(all)/2], all[len(all)-1], len(all))
		}
	}()
	y.must(t, y.store.EnsureContainer(y.ctx))
	t.Run("claims", y.testClaims)
	if os.Getenv("BLOBTAIL_AZURE_TRY") != "" { // TestConformance of storage/azure has them on an emulator
		t.Run("contracts", y.testContracts)
	}
	t.Run("programs", y.testPrograms)
}

// testPrograms runs the three programs. With a key each has a SAS of the rights of its role.
func (y *try) testPrograms(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	script, err := filepath.Abs("programs.sh")
	y.must(t, err)
	cmd := exec.CommandContext(y.ctx, script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BLOBTAIL_") })
	vars := maps.Clone(y.vars)
	vars["AZURE_STORAGE_CONNECTION_STRING"] = ""
	for name, rights := range map[string]string{"ingest": "rlacwu", "logquery": "rl", "retention": "rlacwd"} {
		y.must(t, testkit.Build("../../..", bin, name))
		vars["SAS_"+name] = vars["AZURE_STORAGE_SAS_TOKEN"]
		if y.vars["AZURE_STORAGE_KEY"] != "" {
			vars["SAS_"+name], vars["AZURE_STORAGE_KEY"] = y.signed(t, rights)["AZURE_STORAGE_SAS_TOKEN"], ""
		}
	}
	vars["BIN"], vars["BLOBTAIL_CONFIG"] = bin, filepath.Join(dir, "blobtail.yaml")
	vars["BLOBTAIL_STORE"] = "azure:" + y.vars["AZURE_STORAGE_ACCOUNT"] + "/" + y.container
	for name, value := range vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	old := y.tables + time.Now().AddDate(0, 0, -40).Format("20060102")
	y.must(t, os.WriteFile(vars["BLOBTAIL_CONFIG"], []byte("tail: {prefix: "+y.tables+"}\n"), 0o600))
	y.must(t, y.store.Upsert(y.ctx, old, "p", nil))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	y.must(t, err)
	if err := last(y.store.Scan(y.ctx, old, "p", "", "", 1)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("an old table is still there: %v", err)
	}
	for b, err := range y.store.List(y.ctx, "expired/", "") {
		t.Errorf("%s has expired, and is still there (%v)", b.Key, err)
	}
}
