package access_test

import (
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/access"
)

// Credentials that cannot be those of a token get an answer that names the fault, and nothing of
// them. It is the same whether the id exists or not.
func TestFaults(t *testing.T) {
	tokens := open(t, "tokens: [{id: web, sha256: [SECRET], write: [web]}]")
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, c := range []struct{ header, value, want, reason string }{
		{"Authorization", "ID.s3cret", "the word Bearer is missing", "unknown"},
		{"Authorization", "Token ID.s3cret", "another word than Bearer", "unknown"},
		{"Authorization", "Digest username=ID.s3cret", "another word than Bearer", "unknown"},
		{"Authorization", "s3cret", "another word than Bearer", "unknown"},
		{"Authorization", "BearerID.s3cret", "no blank behind the word Bearer", "unknown"},
		{"Authorization", "Bearer: ID.s3cret", "a colon", "unknown"},
		{"Authorization", "Bearer", "no token follows", "unknown"},
		{"Authorization", "Bearer ", "no token follows", "unknown"},
		{"Authorization", "Bearer Bearer ID.s3cret", "there twice", "unknown"},
		{"Authorization", `Bearer "ID.s3cret"`, "quotation marks", "unknown"},
		{"Authorization", "Bearer 'ID.s3cret'", "quotation marks", "unknown"},
		{"Authorization", "Bearer \u201cID.s3cret\u201d", "quotation marks", "unknown"},
		{"Authorization", "Bearer <ID.s3cret>", "brackets", "unknown"},
		{"Authorization", "Bearer $TOKEN", "the name of a variable", "unknown"},
		{"Authorization", "Bearer {{ token }}", "the name of a variable", "unknown"},
		{"Authorization", "Bearer ID s3cret", "a blank in it", "unknown"},
		{"Authorization", "Bearer ID:s3cret", "want a dot", "unknown"},
		{"Authorization", "Bearer ID", "no dot", "unknown"},
		{"Authorization", "Bearer s3cret", "no dot", "unknown"},
		{"Authorization", "Bearer ID.", "the secret behind the dot is missing", "secret"},
		{"Authorization", "Bearer .s3cret", "the id before the dot is missing", "unknown"},
		{"Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.s3cret", "a JWT", "unknown"},
		{"Authorization", "Bearer " + basic("ID:s3cret")[len("Basic "):], "in base64", "unknown"},
		{"Authorization", "Splunk s3cret", "no dot", "unknown"},
		{"Authorization", "ApiKey s3cret", "no dot", "unknown"},
		{"Authorization", "Basic ID.s3cret", "wants the word Bearer", "unknown"},
		{"Authorization", "Basic s3cret", "no base64", "unknown"},
		{"Authorization", "Basic", "nothing follows", "unknown"},
		{"Authorization", basic("ID.s3cret:"), "the name is the whole token", "unknown"},
		{"Authorization", basic("ID:"), "the password is empty", "secret"},
		{"Authorization", basic("ID:ID.s3cret"), "the secret alone", "secret"},
		{"Authorization", basic("user:ID.s3cret"), "the password is a whole token", "unknown"},
		{"Authorization", basic("x:s3cret"), "no dot", "unknown"},
		{"DD-API-KEY", "s3cret", "no dot", "unknown"},
		{"X-Seq-ApiKey", "s3cret", "no dot", "unknown"},
		{"X-Seq-ApiKey", "ID.s3cret-of-another", "is not known, or its secret is another one", "secret"},
		{"X-API-Key", "ID.s3cret", "X-API-Key is not read", "missing"},
		{"X-Auth-Token", "ID.s3cret", "X-Auth-Token is not read", "missing"},
		{"?token", "ID.s3cret", "a token in the URL is not read", "missing"},
		{"?api_key", "ID.s3cret", "a token in the URL is not read", "missing"},
		{"X-Request-Id", "1", "a token is needed", "missing"},
		{"Authorization", "Bearer ID.s3cret-of-another", "is not known, or its secret is another one", "secret"},
	} {
		var first string
		for _, id := range []string{"web", "nobody"} {
			value := strings.ReplaceAll(c.value, "ID", id)
			if plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.value, "Basic ")); err == nil && strings.Contains(string(plain), "ID") {
				value = basic(strings.ReplaceAll(string(plain), "ID", id))
			} else if plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.value, "Bearer ")); err == nil && strings.Contains(string(plain), "ID") {
				value = "Bearer " + basic(strings.ReplaceAll(string(plain), "ID", id))[len("Basic "):]
			}
			r := httptest.NewRequest("POST", "/ingest/web", nil)
			if name, ok := strings.CutPrefix(c.header, "?"); ok {
				r = httptest.NewRequest("POST", "/ingest/web?"+name+"="+value, nil)
			} else {
				r.Header.Set(c.header, value)
			}
			token, err := tokens.Of(r)
			if err == nil {
				t.Errorf("%s: %s is token %s", c.header, c.value, token.ID)
				continue
			}
			told := access.Told(err)
			if !strings.Contains(told, c.want) || !strings.Contains(told, "Bearer ID.SECRET") && !strings.Contains(told, "ingest token new") {
				t.Errorf("%s: %s: %q, want %q", c.header, c.value, told, c.want)
			}
			if strings.Contains(told+err.Error(), "s3cret") {
				t.Errorf("%s: %s: the secret is told: %q, %q", c.header, c.value, told, err)
			}
			if want := c.reason; id == "web" && access.Reason(err) != want {
				t.Errorf("%s: %s: reason %s, want %s", c.header, c.value, access.Reason(err), want)
			}
			if first == "" {
				first = told
			}
			if told != first {
				t.Errorf("%s: %s: the answer tells which ids exist: %q, %q", c.header, c.value, first, told)
			}
		}
	}
}

// A header with two values has the fault of that.
func TestTwice(t *testing.T) {
	tokens := open(t, "tokens: [{id: web, sha256: [SECRET], write: [web]}]")
	for _, name := range []string{"Authorization", "Dd-Api-Key", "X-Seq-Apikey"} {
		r := httptest.NewRequest("POST", "/ingest/web", nil)
		r.Header[name] = []string{"Bearer web.s3cret", "Bearer web.s3cret"}
		if _, err := tokens.Of(r); err == nil || !strings.Contains(access.Told(err), "twice") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No header panics, and none is told again.
func FuzzFault(f *testing.F) {
	tokens := open(f, "tokens: [{id: web, sha256: [SECRET], write: [web]}]")
	for _, header := range []string{"Bearer a.b", "Basic eDphLmI=", "ApiKey YTpi", "Token x", `Bearer "a.b"`, "Bearer \u201ca.b\u201d"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		const mark = "Zq9"
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Authorization"] = []string{header + mark}
		if _, err := tokens.Of(r); err == nil || strings.Contains(access.Told(err)+err.Error(), mark) {
			t.Errorf("%q: %v", header, err)
		}
	})
}
