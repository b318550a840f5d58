package azure_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// machine is the address of the metadata service of a virtual machine.
const machine = "169.254.169.254"

// entra stands for Entra ID, and for the metadata service of a virtual machine.
type entra struct {
	valid time.Duration // of a token; 0: an hour

	mu    sync.Mutex
	hosts []string     // asked for tokens
	forms []url.Values // of questions for tokens; of the metadata service: its query
}

// RoundTrip answers as the servers do.
func (e *entra) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	at := "https://" + r.URL.Host
	valid := e.valid
	if valid == 0 {
		valid = time.Hour
	}
	token := map[string]any{"access_token": testenv.Token(time.Now(), valid), "token_type": "Bearer", "resource": "https://storage.azure.com"}
	switch path := r.URL.Path; {
	case r.URL.Host == machine && r.Header.Get("Metadata") == "":
		return answerJSON(r, http.StatusBadRequest, map[string]any{"error": "invalid_request"}), nil // to a probe
	case r.URL.Host == machine:
		e.note(r.URL.Host, r.URL.Query())
		token["expires_in"], token["expires_on"] = strconv.Itoa(int(valid.Seconds())), strconv.FormatInt(time.Now().Add(valid).Unix(), 10)
		return answerJSON(r, http.StatusOK, token), nil
	case strings.HasSuffix(path, "/discovery/instance"):
		return answerJSON(r, http.StatusOK, map[string]any{"tenant_discovery_endpoint": at + "/" + testenv.Tenant + "/v2.0/.well-known/openid-configuration",
			"metadata": []any{map[string]any{"preferred_network": r.URL.Host, "preferred_cache": r.URL.Host, "aliases": []string{r.URL.Host}}}}), nil
	case strings.HasSuffix(path, "/.well-known/openid-configuration"):
		base := at + "/" + testenv.Tenant
		return answerJSON(r, http.StatusOK, map[string]any{"authorization_endpoint": base + "/oauth2/v2.0/authorize",
			"token_endpoint": base + "/oauth2/v2.0/token", "issuer": base + "/v2.0"}), nil
	case strings.HasSuffix(path, "/oauth2/v2.0/token"):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		e.note(r.URL.Host, form)
		token["expires_in"] = int(valid.Seconds())
		return answerJSON(r, http.StatusOK, token), nil
	}
	return answerJSON(r, http.StatusNotFound, map[string]any{"error": "not here: " + r.URL.Path}), nil
}

func (e *entra) note(host string, form url.Values) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hosts, e.forms = append(e.hosts, host), append(e.forms, form)
}

// asked returns the hosts and the questions so far.
func (e *entra) asked() ([]string, []url.Values) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.hosts), slices.Clone(e.forms)
}

func answerJSON(r *http.Request, status int, v any) *http.Response {
	text, _ := json.Marshal(v)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}
}

// login sends the questions for tokens to e.
func (e *entra) login() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: &http.Client{Transport: e}, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// endpoints are the variables that name the services of an account, without credentials.
func endpoints(a *testenv.Azurite) []string {
	return []string{"AZURE_STORAGE_ACCOUNT", a.Account, "AZURE_STORAGE_BLOB_ENDPOINT", a.BlobURL, "AZURE_STORAGE_TABLE_ENDPOINT", a.TableURL}
}

// noIdentity removes all variables with which the SDK finds an identity.
func noIdentity(t *testing.T) {
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
		"AZURE_TOKEN_CREDENTIALS", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_USERNAME", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET"} {
		t.Setenv(name, "")
		os.Unsetenv(name) // Setenv brings it back
	}
}

// asClient makes a client with a secret the identity of this process. The SDK keeps the tokens
// of a managed identity for the whole process, for other tests too.
func asClient(t *testing.T) {
	noIdentity(t)
	for name, value := range map[string]string{"AZURE_TENANT_ID": testenv.Tenant, "AZURE_CLIENT_ID": "a-client", "AZURE_CLIENT_SECRET": "s3cret"} {
		t.Setenv(name, value)
	}
}

// exercise uses both services in each way.
func exercise(t *testing.T, s *azure.Store) {
	t.Helper()
	ctx, table := t.Context(), testenv.Name("t")
	if err := s.EnsureContainer(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.TryCreate(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Create(ctx, "web/1", []byte("x"), storage.Attrs{}); err != nil {
		t.Error(err)
	}
	if err := last(s.List(ctx, "web/", "")); err != nil {
		t.Error(err)
	}
	if err := s.Upsert(ctx, table, "p", []storage.Row{{Key: "k"}}); err != nil {
		t.Error(err)
	}
	if err := last(s.Scan(ctx, table, "p", "", "", 0)); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, storage.Blob{Key: "web/1"}); err != nil {
		t.Error(err)
	}
	if err := s.Drop(ctx, table); err != nil {
		t.Error(err)
	}
}

// Each kind of credentials opens both services of an account over HTTPS, and those of an
// identity ask for a token where they should, with the right proof.
func TestCredentials(t *testing.T) {
	a := env.Secure(t)
	federated := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(federated, []byte("an assertion"), 0o600); err != nil {
		t.Fatal(err)
	}
	sas, err := a.SAS("rlacwdu", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	client := []string{"AZURE_TENANT_ID", testenv.Tenant, "AZURE_CLIENT_ID", "a-client"}
	for _, c := range []struct {
		name        string
		process     []string // the variables of the process, for an identity
		storage     []string // and those for the storage
		host, field string   // the proof in the question for a token
		want        string
	}{
		{name: "connection string", storage: []string{"AZURE_STORAGE_CONNECTION_STRING", a.ConnectionString}},
		{name: "key", storage: append(endpoints(a), "AZURE_STORAGE_KEY", testenv.Key)},
		{name: "SAS", storage: append(endpoints(a), "AZURE_STORAGE_SAS_TOKEN", sas)},
		{name: "SAS in a URL", storage: append(endpoints(a), "AZURE_STORAGE_SAS_TOKEN", a.BlobURL+"/logs?"+sas)},
		{name: "SAS in a connection string", storage: []string{"AZURE_STORAGE_CONNECTION_STRING",
			"AccountName=" + a.Account + ";BlobEndpoint=" + a.BlobURL + ";TableEndpoint=" + a.TableURL + ";SharedAccessSignature=?" + sas}},
		{name: "client secret", process: append(client, "AZURE_CLIENT_SECRET", "s3cret"), storage: endpoints(a),
			host: "login.microsoftonline.com", field: "client_secret", want: "s3cret"},
		{name: "client secret in another cloud", process: append(client, "AZURE_CLIENT_SECRET", "s3cret", "AZURE_AUTHORITY_HOST", "https://login.chinacloudapi.cn/"),
			storage: endpoints(a), host: "login.chinacloudapi.cn", field: "client_secret", want: "s3cret"},
		{name: "workload identity", process: append(client, "AZURE_FEDERATED_TOKEN_FILE", federated), storage: endpoints(a),
			host: "login.microsoftonline.com", field: "client_assertion", want: "an assertion"},
		{name: "managed identity of a machine", storage: endpoints(a), host: machine, field: "resource", want: "https://storage.azure.com"},
		{name: "managed identity with a client id", process: []string{"AZURE_CLIENT_ID", "mine"}, storage: endpoints(a), host: machine, field: "client_id", want: "mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			noIdentity(t)
			for i := 0; i < len(c.process); i += 2 {
				t.Setenv(c.process[i], c.process[i+1])
			}
			e := &entra{}
			if c.host == machine {
				e.valid = 4 * time.Minute // so short that the SDK does not keep it for the next run of this test
			}
			s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: env2(c.storage...), Client: once(a.Transport(t)), Login: e.login()})
			if err != nil {
				t.Fatal(err)
			}
			exercise(t, s)
			hosts, forms := e.asked()
			if c.host == "" {
				if len(hosts) > 0 {
					t.Errorf("tokens were asked for at %v", hosts)
				}
				return
			}
			if len(hosts) == 0 || hosts[0] != c.host || forms[0].Get(c.field) != c.want {
				t.Errorf("asked %v with %v, want %s=%s at %s", hosts, forms, c.field, c.want, c.host)
			}
			if len(hosts) > 2 && c.host != machine { // one for each service at most
				t.Errorf("%d tokens for one run", len(hosts))
			}
		})
	}
}

// A login by az gives the token, for the identity of a person.
func TestCredentialsOfCLI(t *testing.T) {
	a := env.Secure(t)
	noIdentity(t)
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s/asked\necho '{\"accessToken\":\"%s\",\"expires_on\":%d}'\n", dir, testenv.Token(time.Now(), time.Hour), time.Now().Add(time.Hour).Unix())
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	// A machine without a metadata service.
	nowhere := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}, Transport: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("no route to host")
	})}}
	s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: env2(endpoints(a)...), Client: once(a.Transport(t)), Login: nowhere})
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, s)
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || !strings.HasPrefix(string(asked), "account get-access-token -o json --resource https://storage.azure.com") {
		t.Errorf("az %s, %v", asked, err)
	}
}

// A refusal by Entra ID may repeat the request, and a proxy may repeat the headers. No error shows
// them.
func TestErrorsHoldNoTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cr3t.assertion"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		process []string
		refuses bool // Entra ID; else the storage
		fix     string
	}{
		"client secret":    {[]string{"AZURE_CLIENT_SECRET", "s3cr3t+/="}, true, "the identity in AZURE_TENANT_ID and AZURE_CLIENT_ID is refused"},
		"federated":        {[]string{"AZURE_FEDERATED_TOKEN_FILE", file, "AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential"}, true, "the token in AZURE_FEDERATED_TOKEN_FILE is refused"},
		"token of storage": {[]string{"AZURE_CLIENT_SECRET", "s3cr3t"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			noIdentity(t)
			for pair := range slices.Chunk(append([]string{"AZURE_TENANT_ID", testenv.Tenant, "AZURE_CLIENT_ID", "a-client", "AZURE_TOKEN_CREDENTIALS", "prod"}, c.process...), 2) {
				t.Setenv(pair[0], pair[1])
			}
			token := testenv.Token(time.Now(), time.Hour)
			e := &entra{}
			login := e.login()
			login.Transport = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if c.refuses && strings.HasSuffix(r.URL.Path, "/token") {
					body, _ := io.ReadAll(r.Body)
					form, _ := url.ParseQuery(string(body))
					form = url.Values{"client_secret": form["client_secret"], "client_assertion": form["client_assertion"]}
					return answerJSON(r, http.StatusUnauthorized, map[string]any{"a": form.Encode(), "error": "invalid_client"}), nil
				}
				return e.RoundTrip(r)
			})}
			storage := roundTripper(func(r *http.Request) (*http.Response, error) {
				return nil, fmt.Errorf("proxy refuses %s with Authorization: %s", r.URL, r.Header.Get("Authorization"))
			})
			s, err := azure.Open("acct/logs", azure.Options{Getenv: env2(), Client: once(storage), Login: login})
			if err != nil {
				t.Fatal(err)
			}
			_, statErr := s.Stat(t.Context(), "k")
			if got := s.Explain(statErr); !strings.HasPrefix(got, c.fix) {
				t.Errorf("%q, want %q", got, c.fix)
			}
			_, grantErr := s.Grant(t.Context(), azure.Grant{Dir: "web", For: time.Hour})
			for _, err := range []error{statErr, grantErr, last(s.List(t.Context(), "", "")), last(s.Scan(t.Context(), "tail", "p", "", "", 0))} {
				if err == nil || !strings.Contains(err.Error(), "REDACTED") || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), token[:20]) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A machine without an identity, and a host without any credentials, are told the ways to get one;
// no word of the error is cut.
func TestErrorsOfLogin(t *testing.T) {
	nowhere := func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }
	machine := func(r *http.Request) (*http.Response, error) {
		return answerJSON(r, http.StatusBadRequest, map[string]any{"error": "invalid_request", "error_description": "Identity not found"}), nil
	}
	proxy := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader("denied destination")), Request: r}, nil
	}
	for name, c := range map[string]struct {
		answer roundTripper
		id     string // AZURE_CLIENT_ID
		fix    []string
	}{
		"no network":              {nowhere, "", []string{"there are no credentials, and each of these is enough: run az login; set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING; or run on a host of Azure with an identity"}},
		"proxy":                   {proxy, "", []string{"there are no credentials", "az login"}},
		"machine without its id":  {machine, "", []string{"this host has no such managed identity; assign it: az vm identity assign", "or run az login, or set AZURE_STORAGE_KEY"}},
		"machine without that id": {machine, "mine", []string{"this host has no such managed identity; assign it: az vm identity assign", "AZURE_CLIENT_ID names it"}},
	} {
		t.Run(name, func(t *testing.T) {
			noIdentity(t)
			t.Setenv("PATH", t.TempDir()) // without az
			if c.id != "" {
				t.Setenv("AZURE_CLIENT_ID", c.id)
			}
			login := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}, Transport: &http.Client{Transport: c.answer}}
			s, err := azure.Open("acct/logs", azure.Options{Getenv: env2(), Client: once(nil), Login: login})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Stat(t.Context(), "k")
			if !errors.Is(err, storage.ErrUnauthorized) || len(err.Error()) > 360 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d characters: %v", len(err.Error()), err)
			}
			for word := range strings.FieldsSeq(err.Error()) {
				if strings.Contains(word, "Cred") && !strings.Contains(word, "Credential") {
					t.Errorf("%q is cut: %v", word, err)
				}
			}
			for _, text := range c.fix {
				if got := s.Explain(err); !strings.Contains(got, text) {
					t.Errorf("%v: %q, want %q", err, got, text)
				}
			}
		})
	}
}

// The token that a cluster gives to a pod is read again from its file, which the cluster
// replaces, and an access token is replaced before it expires.
func TestFederatedTokenRotates(t *testing.T) {
	noIdentity(t)
	file := filepath.Join(t.TempDir(), "token")
	rotate := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"AZURE_TENANT_ID": testenv.Tenant, "AZURE_CLIENT_ID": "a-client", "AZURE_FEDERATED_TOKEN_FILE": file} {
		t.Setenv(name, value)
	}
	synctest.Test(t, func(t *testing.T) {
		var bearers []string
		service := roundTripper(func(r *http.Request) (*http.Response, error) {
			bearers = append(bearers, r.Header.Get("Authorization"))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Length": {"0"}}, Body: http.NoBody, Request: r}, nil
		})
		e := &entra{valid: time.Hour}
		rotate("first")
		s, err := azure.Open("acct/logs", azure.Options{Getenv: env2(), Client: once(service), Login: e.login()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := s.Stat(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				rotate("second")
				continue
			}
			time.Sleep(61 * time.Minute)
		}
		_, forms := e.asked()
		var proofs []string
		for _, f := range forms {
			proofs = append(proofs, f.Get("client_assertion"))
		}
		if !slices.Equal(proofs, []string{"first", "second"}) || len(bearers) != 3 || bearers[0] != bearers[1] || bearers[1] == bearers[2] {
			t.Errorf("proofs %q, %d requests", proofs, len(bearers))
		}
	})
}
