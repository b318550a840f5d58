package access_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/internal/access"
)

// A file that can be read can be changed without an effect on its other tokens, or is
// left alone.
func FuzzFile(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(three, "SECRET", hash("s3cret"))))
	f.Add([]byte("tokens: [{id: a, certificate: [b]}]"))
	f.Add([]byte("tokens:\n- id: a\n  certificate: [b]\n# c\n- certificate:\n  - |\n   x\n  id: c\n"))
	f.Add([]byte("tokens:\n - &x {id: a}\n - *x\n - ? id\n   : b\n"))
	path := filepath.Join(f.TempDir(), "tokens.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := access.Read(path)
		if err != nil {
			return
		}
		_, hash := access.NewSecret()
		if _, err := access.Add(path, access.Entry{ID: "fuzz", Hash: hash}); err != nil {
			return
		}
		_ = access.Revoke(path, "fuzz")
		after, err := access.Read(path)
		if err != nil || len(after) < len(before) {
			t.Errorf("%d tokens became %d: %v", len(before), len(after), err)
		}
	})
}

func FuzzCredentials(f *testing.F) {
	for _, header := range []string{"Bearer a.b", "Basic eDphLmI=", "ApiKey YTpi", "Splunk a.b", "x"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Authorization"] = []string{header}
		c, ok := access.CredentialsOf(r)
		if ok != (header != "") {
			t.Error(c, ok)
		}
		if len(c.ID)+len(c.Secret) > len(header) || utf8.ValidString(header) && strings.Contains(c.ID, ":") {
			t.Errorf("%+v", c)
		}
	})
}
