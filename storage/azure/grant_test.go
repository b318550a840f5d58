package azure_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// delegating is the emulator as an account with a hierarchical namespace: it says that it is
// one. It notes the key that it gives to sign with.
type delegating struct {
	to   http.RoundTripper
	deep string // "" leaves the answer of the emulator, which is false
	// refuses the question for the kind of the account if a token asks it
	refuses bool
	key     []byte
	asked   int
}

func (d *delegating) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if q.Get("restype") == "account" {
		d.asked++
		bearer := r.Header.Get("Authorization") != ""
		switch {
		case d.refuses && bearer:
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"X-Ms-Error-Code": {"AuthorizationPermissionMismatch"}}, Body: http.NoBody, Request: r}, nil
		case d.refuses && (q.Get("sr") != "c" || q.Get("sp") != "r" || q.Get("spr") != "https"):
			return nil, fmt.Errorf("asked by %s", q)
		case d.deep != "":
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"X-Ms-Is-Hns-Enabled": {d.deep}}, Body: http.NoBody, Request: r}, nil
		}
	}
	resp, err := d.to.RoundTrip(r)
	if err == nil && q.Get("comp") == "userdelegationkey" {
		body, rerr := io.ReadAll(resp.Body)
		if rerr != nil {
			return nil, rerr
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if m := regexp.MustCompile(`<Value>(.*)</Value>`).FindSubmatch(body); m != nil {
			d.key, rerr = base64.StdEncoding.DecodeString(string(m[1]))
		}
		err = rerr
	}
	return resp, err
}

// hosted are the variables of an account of the emulator under a name of its own.
func hosted(a *testenv.Azurite) func(string) string {
	return env2("AZURE_STORAGE_ACCOUNT", a.Account, "AZURE_STORAGE_BLOB_ENDPOINT", "https://"+a.Account+".blob.localhost:"+port(a.BlobURL),
		"AZURE_STORAGE_TABLE_ENDPOINT", a.TableURL)
}

func port(at string) string {
	u, _ := url.Parse(at)
	return u.Port()
}

// A grant is a SAS of one directory, signed by a key of the identity. The service of the
// emulator gives that key. It knows no directories, so the signature is compared with one of
// the documented text alone.
func TestGrant(t *testing.T) {
	a := env.Secure(t)
	asClient(t)
	for _, c := range []struct {
		name    string
		g       azure.Grant
		refuses bool
		ip      string
	}{
		{"an hour", azure.Grant{Dir: "web", For: time.Hour}, false, ""},
		{"a day from one address", azure.Grant{Dir: "web", For: 24 * time.Hour, From: "192.0.2.7"}, false, "192.0.2.7"},
		{"from some addresses", azure.Grant{Dir: "web", For: time.Minute, From: "192.0.2.0-192.0.2.255"}, false, "192.0.2.0-192.0.2.255"},
		{"with a role for data alone", azure.Grant{Dir: "web", For: time.Minute}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &delegating{to: a.Transport(t), deep: "true", refuses: c.refuses}
			s, err := azure.Open("logs", azure.Options{Getenv: hosted(a), Client: once(d), Login: (&entra{}).login()})
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now().Add(c.g.For)
			granted, err := s.Grant(t.Context(), c.g)
			if err != nil {
				t.Fatal(err)
			}
			q, err := url.ParseQuery(granted.SAS)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"sr": "d", "sdd": "1", "sp": "rl", "spr": "https", "sip": c.ip, "skoid": testenv.ObjectID, "sktid": testenv.Tenant, "sks": "b"} {
				if q.Get(name) != want {
					t.Errorf("%s=%q, want %q", name, q.Get(name), want)
				}
			}
			end, err := time.Parse(time.RFC3339, q.Get("se"))
			if late := end.Sub(before); err != nil || late.Abs() > 10*time.Second || !end.Equal(granted.Until) || q.Get("ske") != q.Get("se") {
				t.Errorf("good until %s, %s, key until %s", q.Get("se"), granted.Until, q.Get("ske"))
			}
			text := strings.Join([]string{
				q.Get("sp"), q.Get("st"), q.Get("se"), "/blob/" + a.Account + "/logs/web", q.Get("skoid"), q.Get("sktid"), q.Get("skt"), q.Get("ske"), q.Get("sks"), q.Get("skv"),
				"", "", "", "", "", q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"), "", "", "", "", "", "", "", "", "",
			}, "\n")
			mac := hmac.New(sha256.New, d.key)
			mac.Write([]byte(text))
			if sig := base64.StdEncoding.EncodeToString(mac.Sum(nil)); sig != q.Get("sig") {
				t.Errorf("sig %s, want %s", q.Get("sig"), sig)
			}
		})
	}
}

// No SAS of an account without directories is for less than a container, so none is made, and
// the condition of a role is named that limits a reader there.
func TestGrantOfFlatAccount(t *testing.T) {
	a := env.Secure(t)
	asClient(t)
	d := &delegating{to: a.Transport(t)}
	s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: hosted(a), Client: once(d), Login: (&entra{}).login()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Grant(t.Context(), azure.Grant{Dir: "web", For: time.Hour})
	flat, ok := errors.AsType[*azure.FlatError](err)
	if !ok || d.asked != 1 {
		t.Fatalf("%v after %d questions", err, d.asked)
	}
	for _, want := range []string{
		"az role assignment create --assignee ASSIGNEE --role \"Storage Blob Data Reader\"", "--condition-version 2.0",
		"blobs:path] StringStartsWith 'web/'", "blobs:prefix] StringStartsWith '_horizon/web/'", "StringEquals '_store'",
	} {
		if !strings.Contains(flat.Advice(), want) {
			t.Errorf("%s\ndoes not say %s", flat.Advice(), want)
		}
	}
}

// The store refuses an impossible grant before any request, or names the role that is missing.
func TestGrantRefused(t *testing.T) {
	a := env.Secure(t)
	asClient(t)
	reject := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("restype") == "account" {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"X-Ms-Is-Hns-Enabled": {"true"}}, Body: http.NoBody, Request: r}, nil
		}
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"X-Ms-Error-Code": {"AuthorizationPermissionMismatch"}}, Body: http.NoBody, Request: r}, nil
	})
	open := func(getenv func(string) string) *azure.Store {
		s, err := azure.Open("logs", azure.Options{Getenv: getenv, Client: once(reject), Login: (&entra{}).login()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good := azure.Grant{Dir: "web", For: time.Hour}
	for _, c := range []struct {
		name   string
		getenv func(string) string
		g      azure.Grant
		want   string
	}{
		{"too long", hosted(a), azure.Grant{Dir: "web", For: 25 * time.Hour}, "between 1m and 24h0m0s"},
		{"no time", hosted(a), azure.Grant{Dir: "web"}, "between 1m and 24h0m0s"},
		{"two levels", hosted(a), azure.Grant{Dir: "web/2026", For: time.Hour}, "no directory at the top"},
		{"quote", hosted(a), azure.Grant{Dir: "web' OR '", For: time.Hour}, "no directory at the top"},
		{"all above", hosted(a), azure.Grant{Dir: "..", For: time.Hour}, "no directory at the top"},
		{"everything", hosted(a), azure.Grant{For: time.Hour}, "no directory at the top"},
		{"no address", hosted(a), azure.Grant{Dir: "web", For: time.Hour, From: "::1"}, "bad addresses"},
		{"range backwards", hosted(a), azure.Grant{Dir: "web", For: time.Hour, From: "192.0.2.9-192.0.2.1"}, "bad addresses"},
		{"key", a.Getenv, good, "an identity signs it"},
		{"endpoint without the name", env2(endpoints(a)...), good, "does not begin with the account's name"},
	} {
		if _, err := open(c.getenv).Grant(t.Context(), c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	s := open(hosted(a))
	_, err := s.Grant(t.Context(), good)
	if got := s.Explain(err); !errors.Is(err, storage.ErrUnauthorized) || !strings.Contains(got, `--role "Storage Blob Delegator" --scope "$(az storage account show --name `+a.Account+` --query id --output tsv)"`) {
		t.Errorf("%v: %s", err, got)
	}
}
