package openstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/storage"
)

// Tables are in the same store as the blobs, and opening makes none.
func TestOpen(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a;TableEndpoint=http://127.0.0.1:9/a")
	root := t.TempDir() + "/store"
	for _, text := range []string{"dir:" + root, "azure:logs"} {
		spec, err := openstore.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openstore.Open(t.Context(), spec, false); spec.Dir() != "" && !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s: %v", text, err)
		}
		store, err := openstore.Open(t.Context(), spec, !spec.Remote())
		if err != nil {
			t.Fatal(err)
		}
		if !spec.Remote() {
			for name, err := range store.Tables.Tables(t.Context(), "") {
				t.Errorf("table %q, %v", name, err)
			}
		}
		if _, ok := store.Blobs.(storage.Clock); ok != spec.Remote() {
			t.Errorf("%s: has a clock of its own: %v", text, ok)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The store explains an error in one line: the event without the id of the request, and the fix. No
// word of it is cut: drivers keep their errors short. Its cause stays. Errors without a fix are left alone.
func TestExplained(t *testing.T) {
	cause := fmt.Errorf("%w: 403 No (request 1-2): %s", storage.ErrUnauthorized, strings.Repeat("x", 300))
	s := &openstore.Store{Explain: func(err error) string {
		if errors.Is(err, storage.ErrUnauthorized) {
			return "ask nicely"
		}
		return ""
	}}
	got := s.Explained(cause)
	text := got.Error()
	if !errors.Is(got, storage.ErrUnauthorized) || text != "not authorized: 403 No: "+strings.Repeat("x", 300)+"; ask nicely" {
		t.Errorf("%v", got)
	}
	other := errors.New("other")
	if s.Explained(nil) != nil || s.Explained(other) != other {
		t.Errorf("%v, %v", s.Explained(nil), s.Explained(other))
	}
}

// A text names a complete store, or the error shows how to write one.
func TestSpec(t *testing.T) {
	for text, want := range map[string]struct {
		name, dir string
		remote    bool
	}{
		"dir:./data":         {dir: "./data"},
		"dir:azure:x":        {dir: "azure:x"},
		"azure:logs":         {name: "logs", remote: true},
		"azure:account/logs": {name: "logs", remote: true},
	} {
		s, err := openstore.Parse(text)
		if err != nil || s.String() != text || s.Name() != want.name || s.Dir() != want.dir || s.Remote() != want.remote {
			t.Errorf("%s: %q, name %q, dir %q, remote %v, %v", text, s, s.Name(), s.Dir(), s.Remote(), err)
		}
	}
	bad := (*openstore.BadSpecError)(nil)
	for _, text := range []string{"", "data", "dir", "dir:", "mem:x", "azure:", "azure:Logs", "azure:a/logs", "s3:bucket"} {
		if s, err := openstore.Parse(text); !errors.As(err, &bad) || s != (openstore.Spec{}) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	for text, shown := range map[string]string{
		"azure:logs?sv=1&sig=s3cret":                       "azure:logs...",
		"azure:acctlogs/logs;SharedAccessSignature=s3cret": "azure:acctlogs/logs...",
		"azure:AccountKey=s3cret":                          "azure:...",
		"azure:SIG=s3cret":                                 "azure:...",
		"azurelogs:acctlogs/$logs?s3cret":                  "azurelogs:acctlogs/$logs...",
		"AccountName=a;AccountKey=s3cret":                  "AccountName=a...",
		"SharedAccessSignature=sv=1&s3cret":                "SharedAccess...",
		"https://me:s3cret@h/logs":                         "https:...",
		"s3cret@h":                                         "...",
		"https://a.blob.core.windows.net/logs?sig=s3cret":  "https://a.blob.core.windows.net/logs...",
	} {
		_, err := openstore.Parse(text)
		if !errors.As(err, &bad) || strings.Contains(err.Error(), "s3cret") || bad.Spec != shown || !strings.Contains(err.Error(), "AZURE_STORAGE_SAS_TOKEN") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, err := openstore.Parse("dir:./a;b?sig=@c"); err != nil || s.Dir() != "./a;b?sig=@c" {
		t.Errorf("a directory: %v, %v", s, err)
	}
	if _, err := openstore.Open(t.Context(), openstore.Spec{}, true); !errors.As(err, &bad) {
		t.Errorf("no store: %v", err)
	}
	if s := openstore.Default(); s.String() != "dir:./data" {
		t.Errorf("default %q", s)
	}
}

// Root may read the store of another user, and is told to write as that user. A store that root has
// made is its own, in whatever directory.
func TestStoreOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	root := t.TempDir()
	if err := os.Chown(root, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	spec, err := openstore.Parse("dir:" + root)
	if err != nil {
		t.Fatal(err)
	}
	open := func(reads bool) error {
		store, err := openstore.OpenWith(t.Context(), spec, false, openstore.Options{Reads: reads})
		if err != nil {
			return err
		}
		return store.Close()
	}
	made := filepath.Join(root, storeid.Key)
	if err := errors.Join(open(false), os.WriteFile(made, nil, 0o400), open(false), os.Chown(made, 65534, 65534), open(true)); err != nil {
		t.Fatal(err)
	}
	want := "not authorized: the store " + root + " belongs to user nobody, who could not read what root makes there; run this as nobody: runuser -u nobody -- COMMAND"
	if err := open(false); !errors.Is(err, storage.ErrUnauthorized) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A store as other programs write it is answered with the text for it.
func TestStores(t *testing.T) {
	for text, want := range map[string]string{
		"https://acct.blob.core.windows.net/logs": "azure:acct/logs", "https://acct.dfs.core.windows.net/logs/web/": "azure:acct/logs",
		"az://acct/logs": "azure:acct/logs", "azure://logs": "azure:logs", "file:///var/data": "dir:/var/data", "file:./data": "dir:./data",
		"./data2": "dir:./data2", "data2": "dir:data2", "/var/data": "dir:/var/data",
		"acct/logs": "azure:acct/logs", "var/log/data": "dir:var/log/data",
		"s3://bucket/x": "", "https://acct.blob.core.windows.net/logs?sig=x": "",
	} {
		_, err := openstore.Parse(text)
		if err == nil {
			t.Fatalf("%s is a store", text)
		}
		if _, got, _ := strings.Cut(err.Error(), "; write "); got != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
