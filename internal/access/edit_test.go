package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
)

// add adds a secret to a token, and returns it.
func add(t *testing.T, path string, e access.Entry) (string, access.Added) {
	t.Helper()
	var secret string
	secret, e.Hash = access.NewSecret()
	done, err := access.Add(path, e)
	if err != nil {
		t.Fatal(err)
	}
	return secret, done
}

func check(t *testing.T, path, id, secret string) error {
	t.Helper()
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tokens.Check(id, secret)
	return err
}

// Files in several forms can be changed: entries come, get another secret, and go. The
// rest stays as it is.
func TestEdit(t *testing.T) {
	for name, text := range map[string]string{
		"none":            "",
		"comments":        "# who may\n\ntokens:\n  # the first\n  - id: a   # A\n    sha256: [SECRET] # its hash\n    write: [a]\n\n  # the last\n  - id: z\n    sha256: [SECRET]\n# end\n",
		"without indent":  "tokens:\n- id: a\n  sha256: [SECRET]\n- id: z\n  sha256:\n  - SECRET\n",
		"deep":            "tokens:\n      - sha256:\n          - SECRET\n          - SECRET\n        id: a\n      - id: z\n        certificate: [x]",
		"no entries":      "tokens:\n",
		"empty brackets":  "tokens: []\n",
		"entries in one":  "tokens:\n  - {id: z, sha256: [SECRET]}\n",
		"carriage return": "tokens:\r\n  - id: z\r\n    sha256: [SECRET]\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, text)
			hadA, hadZ := strings.Contains(text, "id: a"), strings.Contains(text, "id: z")
			first, _ := add(t, path, access.Entry{ID: "new", Read: []string{"web", "o-*"}, Role: access.Operator, Expires: time.Now().Add(time.Hour)})
			second, done := add(t, path, access.Entry{ID: "new"})
			if !done.Rotated || done.Dropped || check(t, path, "new", first) != nil || check(t, path, "new", second) != nil {
				t.Error("both secrets are good", done)
			}
			third, done := add(t, path, access.Entry{ID: "new"})
			if !done.Dropped || check(t, path, "new", first) == nil || check(t, path, "new", second) != nil || check(t, path, "new", third) != nil {
				t.Error("the newest two are good", done)
			}
			if hadA {
				fresh, _ := add(t, path, access.Entry{ID: "a"})
				if check(t, path, "a", fresh) != nil || check(t, path, "a", "s3cret") != nil {
					t.Error("a rotates")
				}
				if err := access.Revoke(path, "a"); err != nil {
					t.Error(err)
				}
			}
			if hadZ && !strings.Contains(text, "certificate") && check(t, path, "z", "s3cret") != nil {
				t.Error("z has gone")
			}
			if err := access.Revoke(path, "new"); err != nil {
				t.Error(err)
			}
			if err := access.Revoke(path, "new"); !errors.Is(err, access.ErrNoToken) {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, comment := range []string{"# who may", "# the last", "# end"} {
				if strings.Contains(text, comment) && !strings.Contains(string(got), comment) {
					t.Errorf("%q is gone:\n%s", comment, got)
				}
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	path := write(t, "tokens: [{id: a, sha256: [SECRET]}]\n")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, hash := access.NewSecret()
	if _, err := access.Add(path, access.Entry{ID: "b", Hash: hash}); err == nil || !strings.Contains(err.Error(), "brackets") {
		t.Error(err)
	}
	if _, err := access.Add(path, access.Entry{ID: "a", Hash: hash}); err == nil {
		t.Error("rotated in brackets")
	}
	if _, err := access.Add(path, access.Entry{ID: "a", Hash: hash, Write: []string{"x"}}); !errors.Is(err, access.ErrExists) {
		t.Error(err)
	}
	if err := access.Revoke(path, "a"); err == nil {
		t.Error("revoked in brackets")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("%s, %v", after, err)
	}
	if err := (access.Entry{ID: "a b", Hash: hash}).Check(); err == nil || !strings.Contains(err.Error(), "id: want letters") {
		t.Error(err)
	}
	if err := (access.Entry{ID: "a", Hash: hash, Read: []string{"W"}}).Check(); err == nil || err.Error() != `token a: read: [0]: "W": want a service or a glob in lower case, such as web or web-*` {
		t.Error(err)
	}
}

// A changed file keeps its mode, and a new one is for its owner alone. A link stays one.
func TestEditKeeps(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	mode := func() os.FileMode {
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Mode()
	}
	add(t, path, access.Entry{ID: "a"})
	if mode() != 0o600 {
		t.Error(mode())
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	add(t, link, access.Entry{ID: "b"})
	if mode() != 0o640 {
		t.Error(mode())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Error(files, err)
	}
}

// Changes at once, of any number of processes, are all in the file.
func TestEditsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			_, hash := access.NewSecret()
			if _, err := access.Add(path, access.Entry{ID: fmt.Sprintf("t%d", i), Hash: hash, Write: []string{"a"}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list, err := access.Read(path)
	if err != nil || len(list) != 20 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

// A file that is cut off while it is written takes no rights away. One without tokens does.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	secret, hash := access.NewSecret()
	if _, err := access.Add(path, access.Entry{ID: "a", Hash: hash, Write: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\n", "# who may\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tokens.Reload(); err == nil {
			t.Errorf("%q is no mistake", text)
		}
		if _, err := tokens.Check("a", secret); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, change := range map[string]func() error{
		"an empty list":  func() error { return os.WriteFile(path, []byte("tokens: []\n"), 0o600) },
		"the last token": func() error { return access.Revoke(path, "a") },
	} {
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tokens.Reload(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(), tokens.Reload()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tokens.Check("a", secret); err == nil {
			t.Errorf("%s: the token is accepted", name)
		}
	}
}
