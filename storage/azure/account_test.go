package azure_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

func env2(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// Open accepts or refuses a spec and an environment, and requests go to the right host.
func TestOpen(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("secret-key"))
	conn := "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=" + key + ";EndpointSuffix=core.windows.net"
	const cs, acc, k, sas = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"
	const blobEnd, tableEnd = "AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_TABLE_ENDPOINT"
	for _, c := range []struct {
		name, spec string
		env        []string
		host, err  string // one of them
	}{
		{"connection string", "logs", []string{cs, conn}, "acct.blob.core.windows.net", ""},
		{"and the account named", "acct/logs", []string{cs, conn}, "acct.blob.core.windows.net", ""},
		{"another account named", "other/logs", []string{cs, conn}, "", "of account acct, not of other"},
		{"account and key", "logs", []string{acc, "acct", k, key}, "acct.blob.core.windows.net", ""},
		{"account in the spec", "acct/logs", []string{k, key}, "acct.blob.core.windows.net", ""},
		{"SAS", "acct/logs", []string{sas, "?sv=1&sig=s3cr3t"}, "acct.blob.core.windows.net", ""},
		{"SAS in a connection string", "logs", []string{cs, "BlobEndpoint=https://acct.blob.core.chinacloudapi.cn/;TableEndpoint=https://acct.table.core.chinacloudapi.cn/;SharedAccessSignature=sv=1&sig=s3cr3t"},
			"acct.blob.core.chinacloudapi.cn", ""},
		{"identity", "acct/logs", nil, "", ""}, // the identity is looked up later
		{"sovereign cloud", "acct/logs", []string{k, key, blobEnd, "https://acct.blob.core.usgovcloudapi.net/", tableEnd, "https://acct.table.core.usgovcloudapi.net"},
			"acct.blob.core.usgovcloudapi.net", ""},
		{"development", "logs", []string{cs, "UseDevelopmentStorage=true"}, "127.0.0.1:10000", ""},
		{"no account", "logs", nil, "", "AZURE_STORAGE_ACCOUNT"},
		{"container name", "acct/Logs", []string{k, key}, "", "container name"},
		{"account name", "a.b/logs", []string{k, key}, "", "account name"},
		{"two slashes", "acct/logs/x", []string{k, key}, "", "container name"},
		{"key that is none", "acct/logs", []string{k, "s3cr3t!"}, "", "not base64"},
		{"emulator next door", "logs", []string{cs, "AccountName=devstoreaccount1;AccountKey=" + testenv.Key +
			";BlobEndpoint=http://azurite:10000/devstoreaccount1;TableEndpoint=http://azurite:10002/devstoreaccount1"}, "azurite:10000", ""},
		{"plain http", "acct/logs", []string{k, key, blobEnd, "http://storage.example.com/"}, "", "https only"},
		{"Cosmos DB", "acct/logs", []string{k, key, tableEnd, "https://acct.table.cosmos.azure.com"}, "", "order of their keys"},
		{"Cosmos DB with a port", "acct/logs", []string{k, key, tableEnd, "https://acct.table.cosmos.azure.com:443/"}, "", "order of their keys"},
		{"Cosmos DB of old", "acct/logs", []string{k, key, tableEnd, "https://acct.table.cosmosdb.azure.com"}, "", "order of their keys"},
		{"Cosmos DB in China", "acct/logs", []string{k, key, tableEnd, "https://acct.table.cosmos.azure.cn"}, "", "order of their keys"},
		{"Cosmos DB for governments", "acct/logs", []string{k, key, tableEnd, "https://acct.table.cosmos.azure.us"}, "", "order of their keys"},
		{"Cosmos DB in capitals", "acct/logs", []string{k, key, tableEnd, "https://acct.TABLE.Cosmos.Azure.COM."}, "", "order of their keys"},
		{"Cosmos DB by its other API", "acct/logs", []string{k, key, tableEnd, "https://acct.documents.azure.com"}, "", "order of their keys"},
		{"SAS in an endpoint", "acct/logs", []string{k, key, blobEnd, "https://a.example.com/?sig=s3cr3t"}, "", "bad storage endpoint"},
		{"garbage", "logs", []string{cs, "s3cr3t"}, "", "NAME=VALUE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var host string
			transport := roundTripper(func(r *http.Request) (*http.Response, error) {
				host = r.URL.Host
				return nil, errors.New("no network here")
			})
			s, err := azure.Open(c.spec, azure.Options{Getenv: env2(c.env...), Client: once(transport)})
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("Open: %v, want an error with %q", err, c.err)
			case c.err == "" && err != nil:
				t.Error(err)
			case c.host != "":
				if _, err := s.Stat(t.Context(), "x"); err == nil || host != c.host {
					t.Errorf("asked %q, want %q; %v", host, c.host, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// No error contains the signature, neither one of the transport nor one of the service.
func TestErrorsHoldNoSecrets(t *testing.T) {
	for name, transport := range map[string]roundTripper{
		"transport": func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("dial " + r.URL.String() + ": refused")
		},
		"service": func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.WriteHeader(http.StatusForbidden)
			w.WriteString("string to sign: " + r.URL.String())
			resp := w.Result()
			resp.Request = r
			return resp, nil
		},
		"nonsense": func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "text/html")
			w.WriteString("<html>" + r.URL.String())
			resp := w.Result()
			resp.Request = r
			return resp, nil
		},
	} {
		s, err := azure.Open("acct/logs", azure.Options{
			Getenv: env2("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=s3cr3t%2B"), Client: once(transport),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		_, statErr := s.Stat(ctx, "k")
		_, getErr := s.Get(ctx, "k", 0, -1)
		_, nowErr := s.Now(ctx)
		_, addErr := s.Swap(ctx, "tail", "p", storage.Row{Key: "k"})
		_, updateErr := s.Swap(ctx, "tail", "p", storage.Row{Key: "k", Version: `W/"x"`})
		for op, err := range map[string]error{
			"Create": s.Create(ctx, "k", nil, storage.Attrs{}), "Stat": statErr, "Get": getErr, "Now": nowErr,
			"List": last(s.List(ctx, "", "")), "Dirs": last(s.Dirs(ctx, "")), "Delete": s.Delete(ctx, storage.Blob{Key: "k"}),
			"Upsert": s.Upsert(ctx, "tail", "p", []storage.Row{{Key: "k"}}), "Scan": last(s.Scan(ctx, "tail", "p", "", "", 0)),
			"Swap, no row": addErr, "Swap": updateErr,
			"Tables": last(s.Tables(ctx, "")), "Drop": s.Drop(ctx, "tail"), "EnsureContainer": s.EnsureContainer(ctx),
		} {
			if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s, %s: %v", name, op, err)
			}
			if name == "service" && op != "Now" && !errors.Is(err, storage.ErrUnauthorized) {
				t.Errorf("%s, %s: %v, want ErrUnauthorized", name, op, err)
			}
			if name == "transport" && (err == nil || errors.Is(err, storage.ErrExist) || errors.Is(err, storage.ErrNotExist)) {
				t.Errorf("%s, %s: %v", name, op, err)
			}
		}
	}
}

func last[T any](seq func(func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return true })
	return err
}

var _ interface {
	storage.BlobStore
	storage.TableStore
	storage.Clock
	EnsureContainer(context.Context) error
} = (*azure.Store)(nil)
