package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

// log is the output of a process, which a test reads while it grows.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// If its store fails, an ingester shows no credential, neither in its log nor in its answers.
func TestNoSecretsOfAzure(t *testing.T) {
	const planted = "s3cr3tPlanted"
	key := base64.StdEncoding.EncodeToString([]byte(planted + "Key"))
	sas := "sv=2024-11-04&ss=bt&srt=sco&sp=rlacwu&se=2999-01-01T00:00Z&sig=" + planted + "%2BSig%3D"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, way, variable string }{
		{"key", "refused", "AZURE_STORAGE_KEY=" + key},
		{"SAS", "refused", "AZURE_STORAGE_SAS_TOKEN=" + sas},
		{"SAS, nonsense", "nonsense", "AZURE_STORAGE_SAS_TOKEN=" + sas},
		{"SAS, nobody", "nobody", "AZURE_STORAGE_SAS_TOKEN=" + sas},
		{"connection string", "missing", "AZURE_STORAGE_CONNECTION_STRING=AccountName=acctlogs;AccountKey=" + key + ";BlobEndpoint=ENDPOINT;TableEndpoint=ENDPOINT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			endpoint, dir := testenv.Telltale(t, c.way), t.TempDir()
			bin := filepath.Join(dir, "ingest")
			if err := os.Symlink(self, bin); err != nil {
				t.Fatal(err)
			}
			command := func(args ...string) (*exec.Cmd, *log) {
				cmd := exec.CommandContext(t.Context(), bin, append(args, append(anywhere(), "--store", "azure:logs", "--wal", dir+"/wal", "--flush-max-age", "1s")...)...)
				cmd.Env = []string{"HOME=" + dir, "AZURE_STORAGE_ACCOUNT=acctlogs", "AZURE_STORAGE_BLOB_ENDPOINT=" + endpoint, "AZURE_STORAGE_TABLE_ENDPOINT=" + endpoint,
					strings.ReplaceAll(c.variable, "ENDPOINT", endpoint)}
				out := new(log)
				cmd.Stdout, cmd.Stderr = out, out
				return cmd, out
			}
			silent := func(what, text string) {
				t.Helper()
				for _, secret := range []string{planted, key[:12]} {
					if strings.Contains(text, secret) {
						t.Errorf("%s shows %s:\n%s", what, secret, text)
					}
				}
			}
			for _, verb := range []string{"check", "print-config"} {
				cmd, out := command(verb)
				_ = cmd.Run() // a check finds problems
				silent(verb, out.String())
				if out.String() == "" {
					t.Errorf("%s says nothing", verb)
				}
			}
			cmd, out := command()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var listens []string // its addresses for records and for operators
			testkit.Until(t, "it listens", func() bool {
				listens = regexp.MustCompile(`"listen":"([^"]+)","admin":"([^"]+)"`).FindStringSubmatch(out.String())
				return listens != nil
			})
			for _, question := range []string{"http://" + listens[2] + "/readyz", "http://" + listens[2] + "/metrics", "http://" + listens[1] + "/ingest/web"} {
				ask := func() (*http.Response, error) { return http.Get(question) }
				if strings.Contains(question, "/ingest/") {
					ask = func() (*http.Response, error) {
						return http.Post(question, "text/plain", strings.NewReader("a record"))
					}
				}
				resp, err := ask()
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				silent(question, string(answer))
			}
			testkit.Until(t, "it reports that it cannot use the store", func() bool {
				return strings.Contains(out.String(), `"part":"premises","error"`)
			})
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // records are left in the log
			silent("the log", out.String())
			if !strings.Contains(out.String(), "acctlogs") && !strings.Contains(out.String(), "azure:logs") {
				t.Errorf("the log does not name the store:\n%s", out.String())
			}
		})
	}
}

// A secret in a setting that has no place for one is not in the message about it.
func TestNoSecretsOfSettings(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "ingest")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	const store, url = "azure:logs?sv=1&sig=s3cret", "http://me:s3cret@h:1"
	for _, c := range []struct{ variable, want string }{
		{"BLOBTAIL_STORE=" + store, "AZURE_STORAGE_SAS_TOKEN (from BLOBTAIL_STORE)"},
		{"BLOBTAIL_ADVERTISE=" + url, `ingest.advertise: "http://..."`},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		flag := "--" + strings.ToLower(strings.TrimPrefix(name, "BLOBTAIL_")) + "=" + value
		for _, verb := range []string{"check", "print-config", "run"} {
			for _, given := range []string{flag, ""} {
				cmd := exec.CommandContext(t.Context(), bin, verb)
				cmd.Env, cmd.Dir = []string{"HOME=" + dir, c.variable}, dir
				if given != "" {
					cmd.Args, cmd.Env = append(cmd.Args, given), cmd.Env[:1]
				}
				out, err := cmd.CombinedOutput()
				want := c.want
				if given != "" {
					want, _, _ = strings.Cut(want, " (from")
				}
				if err == nil || strings.Contains(string(out), "s3cret") || !strings.Contains(string(out), want) {
					t.Errorf("%s %s, %s: %v, %s", verb, given, c.variable, err, out)
				}
			}
		}
	}
}
