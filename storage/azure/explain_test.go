package azure_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// openAs opens a container of the emulator with a SAS or a key.
func openAs(t *testing.T, a *testenv.Azurite, container, sas, key string) *azure.Store {
	t.Helper()
	var pairs []string
	for _, v := range a.Environ(sas, key) {
		name, value, _ := strings.Cut(v, "=")
		pairs = append(pairs, name, value)
	}
	s, err := azure.Open(container, azure.Options{Getenv: env2(pairs...), Client: once(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each refusal by the service is explained by its cause and its fix, in one line without
// the signature.
func TestExplainRefusals(t *testing.T) {
	a := env.Azurite(t)
	name := testenv.Name("c")
	through(t, name, http.DefaultTransport.RoundTrip)
	table := testenv.Name("explain")
	yesterday, tomorrow := time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	with := func(rights string, end time.Time) *azure.Store {
		token, err := a.SAS(rights, end)
		if err != nil {
			t.Fatal(err)
		}
		return openAs(t, a, name, token, "")
	}
	create := func(s *azure.Store) error { return s.TryCreate(t.Context()) }
	get := func(s *azure.Store) error { _, err := s.Get(t.Context(), "k", 0, 1); return err }
	list := func(s *azure.Store) error { return last(s.List(t.Context(), "", "")) }
	upsert := func(s *azure.Store) error {
		return s.Upsert(t.Context(), table, "p", []storage.Row{{Key: "k"}})
	}
	wrong := base64.StdEncoding.EncodeToString([]byte("wrong"))
	for what, c := range map[string]struct {
		s    *azure.Store
		do   func(*azure.Store) error
		want string
	}{
		"wrong key":               {openAs(t, a, name, "", wrong), create, "the key of account " + a.Account + " is refused; look it up: az storage account keys list --account-name " + a.Account},
		"wrong key, tables":       {openAs(t, a, name, "", wrong), upsert, "the key of account " + a.Account + " is refused"},
		"expired SAS":             {with("rlacwu", yesterday), get, "the SAS expired at " + yesterday.UTC().Format(time.RFC3339) + "; make a new one"},
		"expired SAS, tables":     {with("rlacwu", yesterday), upsert, "the SAS expired at " + yesterday.UTC().Format(time.RFC3339)},
		"SAS that only reads":     {with("rl", tomorrow), create, "the SAS has sp=rl and lacks c (create); make one for blobs and tables (ss=bt, srt=sco): logquery needs sp=rl, ingest sp=rlacwu"},
		"SAS that reads tables":   {with("rl", tomorrow), upsert, "the SAS has sp=rl and lacks a (add)"},
		"SAS that does not list":  {with("rc", tomorrow), list, "the SAS has sp=rc and lacks l (list)"},
		"SAS that does not read":  {with("lc", tomorrow), get, "the SAS has sp=lc and lacks r (read)"},
		"SAS of another account":  {openAs(t, a, name, "sv=2019-12-12&ss=bt&srt=sco&sp=rl&se=2999-01-01&sig=c2VjcmV0", ""), list, "the signature of the SAS is wrong: it has 8 characters, and must have 44"},
		"SAS cut off at the amp":  {openAs(t, a, name, "sv=2019-12-12", ""), list, "AZURE_STORAGE_SAS_TOKEN is no SAS: it has no sig=; copy it whole, in quotes"},
		"SAS cut in a character":  {openAs(t, a, name, "sv=2019-12-12&ss=bt&srt=sco&sp=rl&se=2999-01-01&sig=c2VjcmV0%2", ""), list, "the SAS was cut or changed: a % in it is not followed by two digits; copy it whole, in quotes"},
		"SAS of a day to come":    {openAs(t, a, name, "sv=2019-12-12&ss=bt&srt=sco&sp=rl&st=2998-01-01T00:00Z&se=2999-01-01&sig=c2VjcmV0", ""), list, "the SAS is valid from 2998-01-01T00:00:00Z on; is this host's clock right?"},
		"SAS of a container":      {openAs(t, a, name, "sv=2019-12-12&sr=c&sp=rlcw&se=2999-01-01&sig=c2VjcmV0", ""), upsert, "the SAS is for blobs alone (sr=c) and tables are needed too"},
		"missing container":       {openAs(t, a, "nosuch", "", testenv.Key), create, "account " + a.Account + " has no container nosuch; an ingester makes it if it may, or: az storage container create --account-name " + a.Account + " --name nosuch"},
		"missing container, list": {openAs(t, a, "nosuch", "", testenv.Key), list, "account " + a.Account + " has no container nosuch"},
	} {
		t.Run(what, func(t *testing.T) {
			err := c.do(c.s)
			got := c.s.Explain(err)
			if err == nil || !strings.HasPrefix(got, c.want) || strings.ContainsAny(got, "\n") || strings.Contains(got, "c2VjcmV0") {
				t.Errorf("%v: %q, want %q", err, got, c.want)
			}
		})
	}
	if s := with("rlacwu", tomorrow); create(s) != nil || upsert(s) != nil || list(s) != nil {
		t.Errorf("the rights that are named do not suffice: %v, %v, %v", create(s), upsert(s), list(s))
	}
}

// Credentials that may write to a container, but not make one, are told that it is missing.
func TestExplainContainerNotMade(t *testing.T) {
	a := env.Azurite(t)
	refuse := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && r.URL.Query().Get("restype") == "container" {
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"X-Ms-Error-Code": {"AuthorizationPermissionMismatch"}},
				Body: http.NoBody, Request: r}, nil
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	s, err := azure.Open("nosuch", azure.Options{Getenv: a.Getenv, Create: true, Client: once(refuse)})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.TryCreate(t.Context()), s.Create(t.Context(), "k", nil, storage.Attrs{})} {
		if got := s.Explain(err); !strings.HasPrefix(got, "account "+a.Account+" has no container nosuch") {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// The store explains failures to reach an account too. The first try shows that an account does
// not exist.
func TestExplainUnreachable(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("key"))
	tries := 0
	broken := func(cause error) azcore.ClientOptions {
		o := once(roundTripper(func(*http.Request) (*http.Response, error) { tries++; return nil, cause }))
		o.Retry.MaxRetries, o.Retry.RetryDelay = 3, time.Millisecond
		o.Retry.TryTimeout = testkit.Patience
		return o
	}
	for _, c := range []struct {
		cause error
		tries int
		want  string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "acct.blob.core.windows.net", IsNotFound: true}}, 1,
			"there is no storage account acct (acct.blob.core.windows.net); correct the name in --store, or AZURE_STORAGE_ACCOUNT"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, 4, ""},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 4, "nothing listens at acct.blob.core.windows.net or acct.table.core.windows.net"},
	} {
		s, err := azure.Open("acct/logs", azure.Options{Getenv: env2("AZURE_STORAGE_KEY", key), Client: broken(c.cause)})
		if err != nil {
			t.Fatal(err)
		}
		tries = 0
		_, err = s.Stat(t.Context(), "k")
		if got := s.Explain(err); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || tries != c.tries {
			t.Errorf("%v after %d tries: %q, want %q after %d", err, tries, got, c.want, c.tries)
		}
	}
}

// HTTPS at a port of plain HTTP is named after one try.
func TestExplainScheme(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	at := strings.Replace(plain.URL, "http:", "https:", 1)
	key := base64.StdEncoding.EncodeToString([]byte("key"))
	tries := 0
	o := azcore.ClientOptions{Transport: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		tries++
		return http.DefaultTransport.RoundTrip(r)
	})}}
	s, err := azure.Open("acct/logs", azure.Options{Getenv: env2("AZURE_STORAGE_KEY", key, "AZURE_STORAGE_BLOB_ENDPOINT", at, "AZURE_STORAGE_TABLE_ENDPOINT", at), Client: o})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(t.Context(), "k")
	want := "the endpoint speaks plain HTTP, and the address begins with https: write http:// in"
	if got := s.Explain(err); !strings.HasPrefix(got, want) || tries != 1 {
		t.Errorf("%v after %d tries: %q, want %q", err, tries, got, want)
	}
}

// An error of credentials is one line of bearable length, without answers of servers between
// rows of dashes. A client secret that no server can be asked about fails at once.
func TestCredentialErrorsAreShort(t *testing.T) {
	for name, value := range map[string]string{
		"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential", "AZURE_TENANT_ID": "not a tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "s3cret",
	} {
		t.Setenv(name, value)
	}
	s, err := azure.Open("acct/logs", azure.Options{Getenv: env2(), Client: once(nil)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(t.Context(), "k")
	if !errors.Is(err, storage.ErrUnauthorized) || len(err.Error()) > 360 || strings.Contains(err.Error(), "----") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%d characters: %v", len(err.Error()), err)
	}
}

// Without any credentials the fix is a login, or one of the variables.
func TestExplainNoCredentials(t *testing.T) {
	s, err := azure.Open("acct/logs", azure.Options{Getenv: env2()})
	if err != nil {
		t.Fatal(err)
	}
	err = fmt.Errorf("%w: DefaultAzureCredential: failed to acquire a token", storage.ErrUnauthorized)
	got := s.Explain(storage.AtKey("list", "", err))
	for _, want := range []string{"run az login", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not name %s", got, want)
		}
	}
	err = fmt.Errorf("%w: DefaultAzureCredential: Attempted credentials: EnvironmentCredential authentication failed. POST ...", storage.ErrUnauthorized)
	if got := s.Explain(err); !strings.HasPrefix(got, "the identity in AZURE_TENANT_ID and AZURE_CLIENT_ID is refused") {
		t.Errorf("a secret that is refused: %q", got)
	}
	err = fmt.Errorf("%w: ManagedIdentityCredential authentication failed. 403 Forbidden", storage.ErrUnauthorized) // a proxy's
	if got := s.Explain(err); !strings.Contains(got, "run az login; set AZURE_STORAGE_KEY") || !strings.Contains(got, "az vm identity assign") {
		t.Errorf("no metadata service: %q", got)
	}
	err = fmt.Errorf("%w: ManagedIdentityCredential: failed to authenticate a system assigned identity. The endpoint responded with {\"error_description\":\"Identity not found\"}", storage.ErrUnauthorized)
	if got := s.Explain(err); !strings.HasPrefix(got, "this host has no such managed identity; assign it: az vm identity assign") || !strings.Contains(got, "az login") {
		t.Errorf("a machine without an identity: %q", got)
	}
	err = fmt.Errorf("list: %w", &azure.ServiceError{Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch"})
	if got := s.Explain(errors.Join(storage.ErrUnauthorized, err)); !strings.HasPrefix(got, "the identity of this process lacks the role Storage Blob Data Reader; ") {
		t.Errorf("a role that is missing: %q", got)
	}
	if got := s.Explain(errors.New("anything else")); got != "" {
		t.Errorf("an error without advice: %q", got)
	}
}
