package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testenv"
)

// deepAccount is an account with a hierarchical namespace. It gives keys to
// sign grants with, and checks each SAS as Azure documents it. The blobs are those of the
// emulator, which knows no directories.
type deepAccount struct {
	flat      atomic.Bool
	key       []byte
	inside    string // a SAS for the emulator
	container string
	forward   http.Handler
	base      string // the path of the account in the emulator
}

func (d *deepAccount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	refuse := func(code string) {
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(http.StatusForbidden)
	}
	bearer := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case q.Get("comp") == "userdelegationkey" && bearer:
		asked, _ := io.ReadAll(r.Body)
		part := func(name string) string {
			_, rest, _ := strings.Cut(string(asked), "<"+name+">")
			text, _, _ := strings.Cut(rest, "<")
			return text
		}
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><UserDelegationKey><SignedOid>%s</SignedOid><SignedTid>%s</SignedTid><SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService><SignedVersion>2026-06-06</SignedVersion><Value>%s</Value></UserDelegationKey>`,
			testenv.ObjectID, testenv.Tenant, part("Start"), part("Expiry"), base64.StdEncoding.EncodeToString(d.key))
	case q.Get("restype") == "account" && bearer:
		w.Header().Set("x-ms-is-hns-enabled", fmt.Sprint(!d.flat.Load()))
	case !d.signed(q):
		refuse("AuthenticationFailed")
	default:
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+d.container), "/")
		if q.Get("comp") == "list" {
			name = q.Get("prefix")
		}
		if !strings.HasPrefix(name, "web/") {
			refuse("AuthorizationPermissionMismatch")
			return
		}
		sas, _ := url.ParseQuery(d.inside)
		for _, field := range []string{"sv", "sr", "sp", "se", "spr", "sig", "sdd", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv"} {
			if q.Del(field); sas.Has(field) {
				q.Set(field, sas.Get(field))
			}
		}
		r.URL.RawQuery, r.URL.Path, r.URL.RawPath = q.Encode(), d.base+r.URL.Path, ""
		r.Host = "" // the emulator would take the account from it
		d.forward.ServeHTTP(w, r)
	}
}

// signed reports whether a SAS is one of the directory web, and good now.
func (d *deepAccount) signed(q url.Values) bool {
	text := strings.Join([]string{
		q.Get("sp"), q.Get("st"), q.Get("se"), "/blob/acctlogs/" + d.container + "/web", q.Get("skoid"), q.Get("sktid"), q.Get("skt"), q.Get("ske"), q.Get("sks"), q.Get("skv"),
		"", "", "", "", "", q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"), "", "", "", "", "", "", "", "", "",
	}, "\n")
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(text))
	end, err := time.Parse(time.RFC3339, q.Get("se"))
	return err == nil && time.Now().Before(end) && q.Get("sr") == "d" && q.Get("sdd") == "1" && q.Get("sig") == base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// tunnel is a proxy that leads every connection to one address: a name of the account needs no
// resolver.
func tunnel(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", to)
		if err != nil || r.Method != http.MethodConnect {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusOK)
		here, pending, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		go func() {
			io.Copy(there, pending)
			there.Close()
		}()
		io.Copy(here, there)
		here.Close()
	})
}

// process returns a function that runs the command in a process of its own, with these
// variables.
func process(t *testing.T, vars ...string) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "logquery")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (int, string, string) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = append([]string{"HOME=" + t.TempDir(), "TZ=UTC", "PATH=" + os.Getenv("PATH")}, vars...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
}

// start serves the account until the test ends. It returns the variables with which processes
// reach it, and those of a person logged in by az besides.
func (d *deepAccount) start(t *testing.T, a *testenv.Azurite) (vars, login []string) {
	t.Helper()
	var err error
	if d.inside, err = a.ContainerSAS(d.container, "rl", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(a.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	d.base, d.forward = to.Path, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	server := httptest.NewUnstartedServer(d)
	pair, trust := testenv.Certify(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := httptest.NewServer(tunnel(server.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho '{\"accessToken\":\"%s\",\"expires_on\":%d}'\n", testenv.Token(time.Now(), time.Hour), time.Now().Add(time.Hour).Unix())
	if err := os.WriteFile(filepath.Join(bin, "az"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"SSL_CERT_FILE=" + trust, "HTTPS_PROXY=" + proxy.URL, "AZURE_STORAGE_ACCOUNT=acctlogs", "AZURE_STORAGE_BLOB_ENDPOINT=https://acctlogs.blob.localhost",
		"AZURE_STORAGE_TABLE_ENDPOINT=" + a.TableURL, "BLOBTAIL_STORE=azure:" + d.container}, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "AZURE_TOKEN_CREDENTIALS=AzureCLICredential"}
}

// A person logged in by az grants one service, and the holder of the grant reads that service and
// no other.
func TestGrant(t *testing.T) {
	a := env.Azurite(t)
	container, _ := stocked(t, a)
	d := &deepAccount{key: []byte("a key to sign with"), container: container}
	vars, login := d.start(t, a)
	owner := process(t, append(login, vars...)...)
	code, sas, errs := owner("grant", "web", "--for", "30m", "--ip", "127.0.0.1")
	if code != cli.OK || !strings.HasPrefix(sas, "sdd=1&se=") || strings.Count(sas, "\n") != 1 ||
		!strings.Contains(errs, "AZURE_STORAGE_SAS_TOKEN=SAS logquery web --store azure:acctlogs/"+container+" --live off") || strings.Contains(errs, "sig=") {
		t.Fatalf("exit %d\n%s\n%s", code, sas, errs)
	}
	sas = strings.TrimSuffix(sas, "\n")
	holder := process(t, append(vars, "AZURE_STORAGE_SAS_TOKEN="+sas)...)
	for _, c := range []struct {
		args, out string
		code      int
	}{
		{"web --live off -o raw", "record 0\nrecord 1\n", cli.OK},
		{"tail web -n 1 --live off -o raw", "record 1\n", cli.OK},
		{"web --live off --count", "2\n", cli.OK},
		{"verify web", "", cli.OK},
		{"orders --live off", "", cli.Refused},
		{"* --live off", "", cli.Refused},
	} {
		if code, out, errs := holder(strings.Fields(c.args)...); code != c.code || out != c.out || strings.Contains(errs, sas[strings.Index(sas, "sig="):]) {
			t.Errorf("logquery %s: exit %d\n%s\n%s", c.args, code, out, errs)
		}
	}
	// Somebody changes the end of the grant.
	q, err := url.ParseQuery(sas)
	if err != nil {
		t.Fatal(err)
	}
	q.Set("se", time.Now().Add(48*time.Hour).UTC().Format("2006-01-02T15:04:05Z"))
	if code, _, errs := process(t, append(vars, "AZURE_STORAGE_SAS_TOKEN="+q.Encode())...)("web", "--live", "off"); code != cli.Refused {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, _, errs := holder("grant", "web"); code == cli.OK || !strings.Contains(errs, "an identity signs it") {
		t.Errorf("granted by a grant: exit %d, %s", code, errs)
	}
	d.flat.Store(true)
	code, out, errs := owner("grant", "web")
	if code != cli.Usage || out != "" || !strings.Contains(errs, "has no hierarchical namespace") || !strings.Contains(errs, "az role assignment create --assignee ASSIGNEE") {
		t.Errorf("flat: exit %d\n%s\n%s", code, out, errs)
	}
}

// A mistake in the arguments is found before any request.
func TestGrantMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"grant web --for 25h": "between 1m and 24h0m0s", "grant web --for 0": "", "grant 'web*'": "is no name of one", "grant web/x": "is no name of one",
		"grant web --ip nowhere": "bad addresses", "grant": "which service?", "grant web --for 1h": "grant is for a store azure:",
	} {
		args = strings.ReplaceAll(args, "'", "")
		code, out, errs := logquery(t, append([]string{"--store", "dir:" + t.TempDir()}, strings.Fields(args)...)...)
		if code != cli.Usage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("logquery %s: exit %d, %s", args, code, errs)
		}
	}
}
