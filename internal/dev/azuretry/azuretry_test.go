package main

import (
	"bytes"
	"context"
	"encoding/base64"
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
	"blobtail/storage"
	"blobtail/storage/azure"
)

// env is shared by the tests of this package.
var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

const root = "../../.."

// commands puts the product's commands into a directory.
func commands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if err := testkit.Build(root, dir, name); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// program builds this program.
func program(t *testing.T, args ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-o", to)...)
	if args[0] == "test" {
		cmd.Args = append(cmd.Args, "./storage/azure")
	} else {
		cmd.Args = append(cmd.Args, "./internal/dev/azuretry")
	}
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// of returns variables with a key of the emulator's account.
func of(a *testenv.Azurite, sas, key string) func(string) string {
	m := map[string]string{}
	for _, v := range a.Environ(sas, key) {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	return func(name string) string { return m[name] }
}

// left returns the containers and tables of an account.
func left(t *testing.T, a *testenv.Azurite) (all []string) {
	t.Helper()
	o := azure.Options{Getenv: a.Getenv}
	account, err := azure.OpenAccount(a.Account, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := azure.Open("any", o)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range account.Containers(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	for name, err := range s.Tables(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	return all
}

// outcomes are the states of the steps in a report.
func outcomes(report string) map[string]string {
	m := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| (ok|FAILED|not tried) \| [0-9.]+ s \| (.*) \|$`).FindAllStringSubmatch(report, -1) {
		m[row[1]] = row[2] + ": " + row[3]
	}
	return m
}

// secret fails the test if a report has a secret or the name of the account.
func secret(t *testing.T, a *testenv.Azurite, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, s := range []string{testenv.Key, "sig=", testenv.ObjectID} {
			if strings.Contains(strings.ReplaceAll(text, "its sig= ends", ""), s) {
				t.Errorf("the report has %q", s)
			}
		}
		if regexp.MustCompile(`\b` + a.Account + `\b`).MatchString(text) {
			t.Errorf("the report has the name %s:\n%s", a.Account, text)
		}
	}
}

// Each step that an emulator can do is ok, the others say why they were not tried, and nothing is
// left of the run.
func TestWhole(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "it builds four programs")
	a := env.Azurite(t)
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "report", "try.md")
	code := run(t.Context(), []string{"-bin", commands(t), "-tests", program(t, "test", "-c"), "-report", file}, of(a, "", testenv.Key), &out, &errs)
	if code != done {
		t.Errorf("exit %d\n%s", code, &errs)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != out.String() {
		t.Errorf("the file has %d bytes, stdout %d: %v", len(text), out.Len(), err)
	}
	secret(t, a, out.String())
	if !strings.Contains(errs.String(), "cents (USD)") {
		t.Error("the price is not said")
	}
	got := outcomes(out.String())
	for step, want := range map[string]string{
		"account": "ok: reached", "container": "ok: made; StorageV2", "check": "ok: exit 0", "rights": "ok: ingester (sp=rlacwu): all it needs, refused: delete",
		"claims": "ok: ", "contracts": "ok: ", "latencies": "ok: ", "kills": "ok: 2000 records, 3 times kill -9", "tail": "ok: 10 records", "tiers": "ok: Cool",
		"retention": "ok: ", "import": "ok: ", "logs": "not tried: $logs cannot be listed", "grant": "not tried: it needs an identity", "roles": "not tried: ", "clean up": "ok: ",
	} {
		if !strings.HasPrefix(got[step], want) {
			t.Errorf("step %s: %q, want %q", step, got[step], want)
		}
		delete(got, step)
	}
	if len(got) > 0 {
		t.Errorf("steps that no one expects: %v", got)
	}
	if n := strings.Count(out.String(), "| yes |"); n < 20 || strings.Contains(out.String(), "| NO |") {
		t.Errorf("%d claims hold", n)
	}
	if all := left(t, a); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// An identity is tried too: the emulator takes any token over HTTPS.
func TestIdentity(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "it builds four programs")
	a := env.Secure(t)
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho '{\"accessToken\":\"%s\",\"expires_on\":%d}'\n", testenv.Token(time.Now(), time.Hour), time.Now().Add(time.Hour).Unix())
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program(t, "build"), "-bin", commands(t), "-records", "400")
	cmd.Env = append(a.Environ("", ""), "SSL_CERT_FILE="+a.Certificate, "AZURE_TOKEN_CREDENTIALS=AzureCLICredential", "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, &errs)
	}
	secret(t, a, string(out))
	got := outcomes(string(out))
	for step, want := range map[string]string{
		"check": "ok: ", "rights": "ok: an identity (Entra ID): create, read, list, delete, write rows, read rows, list tables, delete tables; refused: none",
		"kills": "ok: 400 records", "retention": "ok: ", "import": "ok: ", "grant": "not tried: ", "roles": "not tried: a new role works after up to 10 minutes",
		"contracts": "not tried: -tests names no tests", "clean up": "ok: ",
	} {
		if !strings.HasPrefix(got[step], want) {
			t.Errorf("step %s: %q, want %q", step, got[step], want)
		}
	}
}

// A SAS that may do little is reported with its refusals, and whatever it made is deleted.
func TestSAS(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	sas, err := a.SAS("rwdlacu", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	bin := commands(t)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-bin", bin, "-records", "200"}, of(a, sas, ""), &out, &errs); code != done {
		t.Errorf("exit %d\n%s", code, &errs)
	}
	got := outcomes(out.String())
	if want := "ok: a SAS: create, read, list, delete, write rows, read rows, list tables, delete tables; refused: none; enough for: ingester, retention, reader"; got["rights"] != want {
		t.Errorf("rights: %q", got["rights"])
	}
	secret(t, a, out.String())
	if all := left(t, a); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
	if sas, err = a.SAS("rl", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run(t.Context(), []string{"-bin", bin}, of(a, sas, ""), &out, &errs); code != failed || !strings.Contains(outcomes(out.String())["container"], "FAILED: ") {
		t.Errorf("a SAS that only reads: exit %d\n%s", code, &out)
	}
}

// A step that fails does not stop the others, and the run leaves nothing. It names an older run's
// container, and lets that and a table of others be.
func TestFails(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	older, err := azure.Open("blobtail-try-older", azure.Options{Getenv: a.Getenv})
	if err == nil {
		err = older.EnsureContainer(t.Context())
	}
	if err == nil {
		err = older.Upsert(t.Context(), "blobtailcheck", "check", []storage.Row{{Key: "check"}}) // somebody's ingest check
	}
	if err != nil {
		t.Fatal(err)
	}
	bin := commands(t)
	if err := os.Remove(filepath.Join(bin, "logquery")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "logquery"), []byte("#!/bin/sh\necho nothing works >&2\nexit 5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-bin", bin, "-records", "200"}, of(a, "", testenv.Key), &out, &errs); code != failed {
		t.Errorf("exit %d\n%s", code, &errs)
	}
	got := outcomes(out.String())
	if !strings.HasPrefix(got["kills"], "FAILED: logquery try: exit 5, want 0: nothing works") || !strings.HasPrefix(got["clean up"], "ok: ") || !strings.Contains(out.String(), "parts FAILED") {
		t.Errorf("%v\n%s", got, &out)
	}
	if want := "earlier runs left container blobtail-try-older; to delete them: make azure-try CLEAN=1"; !strings.Contains(errs.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, &errs)
	}
	if all := fmt.Sprint(left(t, a)); all != "[blobtail-try-older blobtailcheck]" {
		t.Errorf("left: %s", all)
	}
}

// A wrong key ends the run with the reason, and without any account the run is skipped.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	bin := commands(t)
	var out, errs bytes.Buffer
	wrong := base64.StdEncoding.EncodeToString([]byte("wrong"))
	code := run(t.Context(), []string{"-bin", bin}, of(a, "", wrong), &out, &errs)
	got := outcomes(out.String())
	if code != failed || !strings.Contains(got["account"], "the key of account ACCOUNT is refused; look it up: az storage account keys list") || len(got) != 2 || got["clean up"] != "not tried: nothing was made" {
		t.Errorf("exit %d: %v", code, got)
	}
	secret(t, a, out.String(), regexp.MustCompile(`(?m)^azure-try: account .*$`).ReplaceAllString(errs.String(), ""))
	out.Reset()
	if code := run(t.Context(), nil, func(string) string { return "" }, &out, &errs); code != done || !strings.HasPrefix(out.String(), "azure-try is skipped: it needs a storage account") {
		t.Errorf("exit %d\n%s", code, &out)
	}
}

// Ctrl-C, once or twice, deletes what was made.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	cmd := exec.CommandContext(t.Context(), program(t, "build"), "-bin", commands(t))
	cmd.Env = append(a.Environ("", testenv.Key), "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir())
	var out bytes.Buffer
	errs := &growing{}
	cmd.Stdout, cmd.Stderr = &out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "records were sent", func() bool { return strings.Contains(errs.String(), "ok        kills") })
	if len(left(t, a)) == 0 {
		t.Error("nothing was there before")
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != interrupted || !strings.Contains(out.String(), "| clean up | ok |") || !strings.Contains(out.String(), "Storage: interrupted") {
		t.Errorf("exit %d\n%s\n%s", code, errs, &out)
	}
	if all := left(t, a); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// growing is the output of a process that still writes.
type growing struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *growing) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *growing) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// What a killed run left is named by the next one, and -clean deletes it. Containers, tables and
// rows of others stay.
func TestClean(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	ctx := context.Background()
	open := func(name string) *azure.Store {
		s, err := azure.Open(name, azure.Options{Getenv: a.Getenv})
		if err == nil {
			err = s.EnsureContainer(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("blobtail-try-killed")
	open("logs")
	for _, row := range []struct{ table, partition, key, store string }{
		{"ingesters", "i", "11111111", "blobtail-try-killed"}, {"ingesters", "i", "22222222", "logs"},
		{"migrations", "m~blobtail-try-killed", "000001", ""}, {"blobtailcheck", "check", "check", ""},
		{"blobtailtrykilled20261120", "p", "k", ""}, {"tail20261120", "p", "k", ""},
	} {
		if err := s.Upsert(ctx, row.table, row.partition, []storage.Row{{Key: row.key, Props: map[string]any{"store": row.store}}}); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	wrong := of(a, "", testenv.Key)
	if code := run(ctx, []string{"-bin", t.TempDir()}, wrong, &out, &errs); code != usage || !strings.Contains(errs.String(), "make build makes it") {
		t.Errorf("without commands: exit %d, %s", code, &errs)
	}
	if code := run(ctx, []string{"-clean"}, wrong, &out, &errs); code != done || out.String() != "deleted container blobtail-try-killed, table blobtailtrykilled20261120\n" {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
	if all := fmt.Sprint(left(t, a)); all != "[logs blobtailcheck ingesters tail20261120]" {
		t.Errorf("left: %s", all)
	}
	var rows []string
	for r, err := range s.Scan(ctx, "ingesters", "i", "", "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r.Key)
	}
	if fmt.Sprint(rows) != "[22222222]" {
		t.Errorf("rows: %v", rows)
	}
}

// A service that does not do as claimed is found out. It stands here as a proxy that takes headers
// away: a SAS does not sign them.
func TestClaimsFail(t *testing.T) {
	t.Parallel()
	a := env.Azurite(t)
	sas, err := a.SAS("rwdlacu", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method string
		header []string
		want   []string
	}{
		{http.MethodPut, []string{"If-None-Match"}, []string{"A conditional PUT never overwrites", "Of 8 writers of one name"}},
		{http.MethodPut, []string{"Content-Md5"}, []string{"A body with a wrong MD5"}},
		{http.MethodPut, []string{"X-Ms-Meta-Batch"}, []string{"Metadata, type and encoding"}},
		{http.MethodGet, []string{"X-Ms-Range", "Range"}, []string{"A range that ends past the end"}},
		{http.MethodDelete, []string{"If-Match"}, []string{"DELETE with the ETag"}},
		{http.MethodPut, []string{"If-Match"}, []string{"A write on the condition of a version", "Of 8 writers on one version"}},
	} {
		t.Run(c.method+" without "+c.header[0], func(t *testing.T) {
			t.Parallel()
			behind := func(endpoint string) string {
				to, err := url.Parse(endpoint)
				if err != nil {
					t.Fatal(err)
				}
				forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for _, name := range c.header {
						if r.Method == c.method {
							r.Header.Del(name)
						}
					}
					forward.ServeHTTP(w, r)
				}))
				t.Cleanup(server.Close)
				return server.URL + to.Path
			}
			b := *a
			b.BlobURL, b.TableURL = behind(a.BlobURL), behind(a.TableURL)
			try, err := newTry(options{clean: true}, of(&b, sas, ""), io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(try.dir)
			if _, err := try.makeContainer(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = try.tryClaims(t.Context())
			var wrong []string
			for _, c := range try.claims {
				if c.holds == no {
					wrong = append(wrong, c.about)
				}
			}
			if err == nil || len(wrong) < len(c.want) {
				t.Errorf("%v: %q", err, wrong)
			}
			for _, about := range c.want {
				if !slices.ContainsFunc(wrong, func(text string) bool { return strings.HasPrefix(text, about) }) {
					t.Errorf("%q is taken for true; %q", about, wrong)
				}
			}
			if err := try.deleteAll(t.Context(), try.container, try.tables); err != nil {
				t.Error(err)
			}
		})
	}
}
