package azure_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// refusing is a service of storage over TLS that refuses all requests.
func refusing(t *testing.T, status int, code string, clock time.Duration) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-ms-error-code", code)
		w.Header().Set("Date", time.Now().Add(clock).UTC().Format(http.TimeFormat))
		if strings.HasPrefix(r.URL.Path, "/tables") { // tables say it in the body too
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"odata.error":{"code":%q,"message":{"lang":"en-US","value":"no"}}}`, code)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Each answer by which Azure refuses is explained by its cause, with the command that fixes
// it. These answers were never seen from Azure itself: the codes and states are those of its
// documentation.
func TestExplainCodes(t *testing.T) {
	asClient(t)
	key := []string{"AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte("key"))}
	sas := func(text string) []string { return []string{"AZURE_STORAGE_SAS_TOKEN", text + "&sig=c2VjcmV0"} }
	whole := func(text string) []string {
		return []string{"AZURE_STORAGE_SAS_TOKEN", text + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(make([]byte, 32)))}
	}
	const account = "sv=2024-11-04&ss=bt&srt=sco&sp=rl&se=2999-01-01T00:00Z"
	var identity []string
	const container = "sv=2024-11-04&sr=c&sp=rl&se=2999-01-01T00:00Z"
	const mismatch = "AuthorizationPermissionMismatch"
	scope := `"$(az storage account show --name acct --query id --output tsv)`
	grants := func(role, at string) string {
		return fmt.Sprintf(`lacks the role %s; deploy/README.md has narrower ones. It takes up to 10 minutes after: az role assignment create --assignee %s --role "%s" --scope %s%s"`, role, testenv.ObjectID, role, scope, at)
	}
	const here = "/blobServices/default/containers/logs"
	for _, c := range []struct {
		name   string
		status int
		code   string
		clock  time.Duration // of the service, before ours
		with   []string
		op     string
		want   string
	}{
		{"create", 403, mismatch, 0, identity, "create", grants("Storage Blob Data Contributor", here)},
		{"get", 403, mismatch, 0, identity, "get", grants("Storage Blob Data Reader", here)},
		{"list", 403, mismatch, 0, identity, "list", grants("Storage Blob Data Reader", here)},
		{"delete", 403, mismatch, 0, identity, "delete", grants("Storage Blob Data Contributor", here)},
		{"rows are written", 403, mismatch, 0, identity, "upsert", grants("Storage Table Data Contributor", "")},
		{"rows are read", 403, mismatch, 0, identity, "scan", grants("Storage Table Data Reader", "")},
		{"firewall", 403, "AuthorizationFailure", 0, identity, "list", "the network rules of account acct refuse this host: az storage account network-rule add --account-name acct --ip-address"},
		{"firewall or key", 403, "AuthorizationFailure", 0, key, "list", "az storage account keys list --account-name acct; if it is right, the network rules of account acct refuse this host"},
		{"keys are off", 403, "KeyBasedAuthenticationNotPermitted", 0, key, "create", "account acct takes no keys; unset AZURE_STORAGE_KEY"},
		{"keys are off, SAS", 403, "KeyBasedAuthenticationNotPermitted", 0, sas(container), "get", "account acct takes no keys, and the SAS is signed by one"},
		{"wrong key", 403, "AuthenticationFailed", 0, key, "create", "the key of account acct is refused; look it up"},
		{"clock is slow", 403, "AuthenticationFailed", 20 * time.Minute, key, "create", "slow, and the service refuses its requests"},
		{"clock is fast", 403, "AuthenticationFailed", -20 * time.Minute, key, "list", "fast, and the service refuses its requests"},
		{"clock is fast, SAS", 403, "AuthenticationFailed", -20 * time.Minute, sas(container), "list", "timedatectl set-ntp true"},
		{"clock is off, rights are missing", 403, mismatch, time.Hour, identity, "create", "lacks the role Storage Blob Data Contributor"},
		{"token of another tenant", 401, "InvalidAuthenticationInfo", 0, identity, "list", "account acct refuses the token: it must be of the tenant of the account's subscription; az login --tenant TENANT"},
		{"no credentials arrive", 409, "PublicAccessNotPermitted", 0, identity, "list", "the request had no credentials when it arrived"},
		{"no credentials, 401", 401, "NoAuthenticationInformation", 0, identity, "list", "the request had no credentials when it arrived"},
		{"no container", 404, "ContainerNotFound", 0, identity, "list", "az storage container create --account-name acct --name logs --auth-mode login"},
		{"SAS from elsewhere", 403, "AuthorizationSourceIPMismatch", 0, sas(container + "&sip=192.0.2.1"), "list", "the SAS is for the addresses 192.0.2.1"},
		{"SAS over http", 403, "AuthorizationProtocolMismatch", 0, sas(container + "&spr=https"), "list", "the SAS is for https alone"},
		{"SAS of a wrong signature", 403, "AuthenticationFailed", 0, whole(account), "list", "the signature of the SAS is wrong: copy the SAS whole, in quotes: its sig= ends in %3D; or it is not of account acct, or the key that signed it has changed: make a new one"},
		{"SAS of another container", 403, "AuthenticationFailed", 0, whole(container), "get", "or it is not of account acct and the container or directory that it was made for (sr=c)"},
		{"SAS of a wrong signature, or firewall", 403, "AuthorizationFailure", 0, whole(account), "list", "make a new one; or else the network rules of account acct refuse this host"},
		{"SAS that was cut", 403, "AuthenticationFailed", 0, sas(account), "list", "the signature of the SAS is wrong: it has 8 characters, and must have 44"},
		{"SAS that was cut, firewall's answer", 403, "AuthorizationFailure", 0, sas(account), "create", "the signature of the SAS is wrong: it has 8 characters, and must have 44"},
		{"SAS with a plus", 403, "AuthenticationFailed", 0, []string{"AZURE_STORAGE_SAS_TOKEN", account + "&sig=c2Vj+mV0"}, "scan", "the signature of the SAS is wrong: it has a blank, or a + that must be %2B; copy the SAS whole"},
		{"SAS without the right", 403, mismatch, 0, whole(account), "create", "the SAS has sp=rl and lacks c (create)"},
		{"SAS of one directory", 403, mismatch, 0, whole(account), "list", "the SAS has sp=rl and does not reach so far"},
		{"SAS of a container, tables", 403, "AuthenticationFailed", 0, sas(container), "scan", "the SAS is for blobs alone (sr=c) and tables are needed too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := refusing(t, c.status, c.code, c.clock)
			vars := append([]string{"AZURE_STORAGE_BLOB_ENDPOINT", server.URL + "/blobs", "AZURE_STORAGE_TABLE_ENDPOINT", server.URL + "/tables"}, c.with...)
			s, err := azure.Open("acct/logs", azure.Options{Getenv: env2(vars...), Client: once(server.Client().Transport), Login: (&entra{}).login()})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			switch c.op {
			case "create":
				err = s.TryCreate(ctx)
			case "get":
				_, err = s.Get(ctx, "k", 0, 1)
			case "list":
				err = last(s.List(ctx, "", ""))
			case "delete":
				err = s.Delete(ctx, storage.Blob{Key: "k"})
			case "upsert":
				err = s.Upsert(ctx, "tail", "p", []storage.Row{{Key: "k"}})
			case "scan":
				err = last(s.Scan(ctx, "tail", "p", "", "", 0))
			}
			got := s.Explain(err)
			if err == nil || !strings.Contains(got, c.want) || strings.Contains(got, "\n") || strings.Contains(got+err.Error(), "c2VjcmV0") {
				t.Errorf("%v: %q, want %q", err, got, c.want)
			}
		})
	}
}
