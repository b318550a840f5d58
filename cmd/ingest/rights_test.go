package main

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testenv"
)

// refusing is a storage service that refuses all requests by one code.
func refusing(status int, code string, clock time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-ms-error-code", code)
		w.Header().Set("Date", time.Now().Add(clock).UTC().Format(http.TimeFormat))
		w.WriteHeader(status)
	})
}

// The check names each obstacle of an ingester in Azure with the command that removes it, for
// blobs and for tables.
func TestCheckAzureRights(t *testing.T) {
	key := []string{"AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte("key"))}
	sas := []string{"AZURE_STORAGE_SAS_TOKEN", "sv=2024-11-04&sr=c&sp=rl&se=2999-01-01T00:00Z&sig=c2VjcmV0"}
	for _, c := range []struct {
		name   string
		status int
		code   string
		clock  time.Duration
		with   []string
		want   map[string]string // parts of lines
	}{
		{"keys are off", 403, "KeyBasedAuthenticationNotPermitted", 0, key, map[string]string{
			"blobs": "account acctlogs takes no keys; unset AZURE_STORAGE_KEY", "tables": "account acctlogs takes no keys"}},
		{"wrong key", 403, "AuthenticationFailed", 0, key, map[string]string{
			"blobs": "az storage account keys list --account-name acctlogs", "tables": "the key of account acctlogs is refused"}},
		{"firewall", 403, "AuthorizationFailure", 0, key, map[string]string{
			"blobs": "az storage account network-rule add --account-name acctlogs", "tables": "az storage account network-rule add"}},
		{"clock", 403, "AuthenticationFailed", -time.Hour, key, map[string]string{
			"blobs": "the clock of this host is", "tables": "fast, and the service refuses its requests", "clock": "problem"}},
		{"SAS of a container that reads", 403, "AuthorizationPermissionMismatch", 0, sas, map[string]string{
			"blobs": "the SAS has sp=rl and lacks c (create)", "tables": "the SAS is for blobs alone (sr=c)"}},
		{"public access", 409, "PublicAccessNotPermitted", 0, key, map[string]string{
			"blobs": "the request had no credentials when it arrived", "tables": "the request had no credentials"}},
		{"no container, and no right to make it", 404, "ContainerNotFound", 0, sas, map[string]string{
			"blobs": "az storage container create --account-name acctlogs --name logs --auth-mode login"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(refusing(c.status, c.code, c.clock))
			defer server.Close()
			for _, name := range []string{"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"} {
				t.Setenv(name, "")
			}
			for _, v := range [][]string{c.with, {"AZURE_STORAGE_ACCOUNT", "acctlogs"}, {"AZURE_STORAGE_BLOB_ENDPOINT", server.URL}, {"AZURE_STORAGE_TABLE_ENDPOINT", server.URL}} {
				t.Setenv(v[0], v[1])
			}
			code, lines := checked(t, append(anywhere(), "--store", "azure:logs", "--wal", t.TempDir())...)
			if code != cli.Failed {
				t.Errorf("exit code %d", code)
			}
			for name, want := range c.want {
				if line := lines[name]; !strings.HasPrefix(line, "problem: ") || !strings.Contains(line, want) || strings.Contains(line, "c2VjcmV0") {
					t.Errorf("%s: %q, want %q", name, line, want)
				}
			}
		})
	}
}

// An identity without roles is told which ones it needs, with its own id in the commands.
func TestCheckIdentity(t *testing.T) {
	server := httptest.NewUnstartedServer(refusing(http.StatusForbidden, "AuthorizationPermissionMismatch", 0))
	pair, trust := testenv.Certify(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho '{\"accessToken\":\"%s\",\"expires_on\":%d}'\n", testenv.Token(time.Now(), time.Hour), time.Now().Add(time.Hour).Unix())
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "ingest")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, append(append([]string{"check"}, anywhere()...), "--store", "azure:logs", "--wal", dir+"/wal")...)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), "SSL_CERT_FILE=" + trust, "AZURE_TOKEN_CREDENTIALS=AzureCLICredential",
		"AZURE_STORAGE_ACCOUNT=acctlogs", "AZURE_STORAGE_BLOB_ENDPOINT=" + server.URL, "AZURE_STORAGE_TABLE_ENDPOINT=" + server.URL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != cli.Failed {
		t.Errorf("%v", err)
	}
	scope := `"$(az storage account show --name acctlogs --query id --output tsv)`
	for _, want := range []string{
		`az role assignment create --assignee ` + testenv.ObjectID + ` --role "Storage Blob Data Contributor" --scope ` + scope + `/blobServices/default/containers/logs"`,
		`az role assignment create --assignee ` + testenv.ObjectID + ` --role "Storage Table Data Contributor" --scope ` + scope + `"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\ndoes not say %s", out.String(), want)
		}
	}
}
