package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
)

// env is shared by the tests of this package.
var env testenv.Env

// suite runs the tests of this package, and stops their servers.
type suite struct{ m *testing.M }

func (s suite) Run() int { return env.Run(s.m) }

// A fence stands before the blob service, notes the requests of a reader, and refuses those that a
// rule forbids, as Azure does.
type fence struct {
	allows func(names string) bool // the prefix of a list, or the name of a blob

	mu    sync.Mutex
	lists []string // prefixes
	gets  []string // names
}

// before returns the URL of a fence before the blob service of an account.
func (f *fence) before(t *testing.T, a *testenv.Azurite) string {
	to, err := url.Parse(a.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// /ACCOUNT/CONTAINER/NAME
		name := ""
		if parts := strings.SplitN(r.URL.Path, "/", 4); len(parts) == 4 {
			name = parts[3]
		}
		f.mu.Lock()
		q := r.URL.Query()
		list := q.Get("comp") == "list"
		switch {
		case list:
			name = q.Get("prefix")
			f.lists = append(f.lists, name)
		case name != "":
			f.gets = append(f.gets, name)
		}
		f.mu.Unlock()
		if f.allows != nil && (list || name != "") && !f.allows(name) {
			w.Header().Set("x-ms-error-code", "AuthorizationPermissionMismatch")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path
}

// seen returns the prefixes and names that were asked for, each once.
func (f *fence) seen() (lists, gets []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	once := func(names []string) []string {
		slices.Sort(names)
		return slices.Compact(names)
	}
	return once(slices.Clone(f.lists)), once(slices.Clone(f.gets))
}

// theHour is that of the records of a filled container.
var theHour = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

// stocked makes a container with two records of web and one of orders.
func stocked(t *testing.T, a *testenv.Azurite) (container string, s *azure.Store) {
	t.Helper()
	container = testenv.Name("c")
	s, err := azure.Open(container, azure.Options{Getenv: a.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureContainer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, service := range []string{"web", "web", "orders"} {
		at := theHour.Add(time.Duration(i) * time.Minute).Unix()
		if err := addBlob(s, fmt.Appendf(nil, `{"ts":%d,"service":%q,"msg":"record %d","status":500}`, at, service, i), i+1); err != nil {
			t.Fatal(err)
		}
	}
	return container, s
}

// reader sets the environment of a reader with a SAS.
func reader(t *testing.T, a *testenv.Azurite, blobs, sas string) {
	t.Helper()
	for name, value := range map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": "", "AZURE_STORAGE_KEY": "", "AZURE_STORAGE_ACCOUNT": a.Account, "AZURE_STORAGE_SAS_TOKEN": sas,
		"AZURE_STORAGE_BLOB_ENDPOINT": blobs, "AZURE_STORAGE_TABLE_ENDPOINT": a.TableURL,
	} {
		t.Setenv(name, value)
	}
}

// logquery runs the command in this process.
func logquery(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(context.Background(), environment{
		args: args, stdout: &out, stderr: &errs, isFile: func(string) bool { return false }, getenv: func(string) string { return "" },
		now: theHour.Add(time.Hour), local: time.UTC,
	})
	return code, out.String(), errs.String()
}

// dark is the problem of a read that cannot know whether all records are in blobs.
const dark = "whether all records are in blobs is not known: these credentials may not read the table of ingesters"

// A SAS of the container that reads and lists is enough for blobs. The tables of the account
// are out of its reach, so a read that needs them says so and exits 3; --live off needs none.
func TestContainerSAS(t *testing.T) {
	a := env.Azurite(t)
	container, _ := stocked(t, a)
	sas, err := a.ContainerSAS(container, "rl", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	reader(t, a, a.BlobURL, sas)
	for _, c := range []struct {
		args string
		code int
		out  string // a part of it
		says string
	}{
		{"web --live off -o raw", cli.OK, "record 0\nrecord 1\n", ""},
		{"web -o raw", cli.Incomplete, "record 0\nrecord 1\n", dark},
		{"tail web -n 1 --live off -o raw", cli.OK, "record 1\n", ""},
		{"tail web -n 1 -o raw", cli.Incomplete, "record 1\n", dark},
		{"web --live off --count", cli.OK, "2\n", ""},
		{"web --live off --count --stats", cli.OK, "2\n", "requests"},
		{"hist web --live off --by 1h -o csv", cli.OK, "2026-11-20T14:00:00.000000000Z,2,", ""},
		{"top status web --live off -o csv", cli.OK, "500,2\n", ""},
		{"ls --live off", cli.OK, "web\t2\t2\t", ""},
		{"verify", cli.OK, "", "3 blobs with 3 records in"},
		{"verify web", cli.OK, "", "2 blobs with 2 records in"},
		{"* --live off --count", cli.OK, "3\n", ""},
		{"ingesters", cli.Refused, "", "seeing the ingesters needs the role Storage Table Data Reader"},
	} {
		code, out, errs := logquery(t, append([]string{"--store", "azure:" + container}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.says) {
			t.Errorf("logquery %s: exit %d, want %d\n%s\n%s", c.args, code, c.code, out, errs)
		}
		if sig := sas[strings.Index(sas, "sig=")+4:]; strings.Contains(out+errs, sig) {
			t.Errorf("logquery %s shows the signature:\n%s", c.args, errs)
		}
	}
}

// A read of a named service asks for nothing but that service, its dropped days, and the id
// of the store. It asks for roots if nothing was there on a closed day: these name no service. Only a
// glob lists the services.
func TestNamedServiceAsksForNoOther(t *testing.T) {
	a := env.Azurite(t)
	container, _ := stocked(t, a)
	sas, err := a.SAS("rl", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"web", "web -n 1", "web --since 2h", "web --day 2026-11-20", "web --from 2026-01-01 --to 2026-02-01", "tail web", "tail web -n 1 --live off", "web --count", "hist web",
		"top status web", "fields web", "ls web", "ls web 2026-11-20", "verify web", "web --explain", "web -F record -C 1", "bill web",
	} {
		f := &fence{}
		reader(t, a, f.before(t, a), sas)
		code, _, errs := logquery(t, append([]string{"--store", "azure:" + container}, strings.Fields(args)...)...)
		if code != cli.OK && code != cli.Nothing {
			t.Errorf("logquery %s: exit %d, %s", args, code, errs)
		}
		lists, gets := f.seen()
		for _, prefix := range lists {
			known := slices.Contains([]string{"_horizon/web/", "_dropped/web/", "_closed/"}, prefix)
			if !known && !strings.HasPrefix(prefix, "web/") {
				t.Errorf("logquery %s lists %q", args, prefix)
			}
		}
		for _, name := range gets {
			if name != "_store" && !strings.HasPrefix(name, "web/") {
				t.Errorf("logquery %s gets %q", args, name)
			}
		}
		if len(lists) == 0 {
			t.Errorf("logquery %s lists nothing", args)
		}
	}
}

// The right to one prefix is enough for its service. Days that were dropped cannot be known
// then, which a note says: their records are shown as long as they are there.
func TestPrefixAlone(t *testing.T) {
	a := env.Azurite(t)
	container, s := stocked(t, a)
	sas, err := a.ContainerSAS(container, "rl", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	const unseen = "records of dropped days may be among these"
	f := &fence{allows: func(name string) bool { return strings.HasPrefix(name, "web/") }}
	reader(t, a, f.before(t, a), sas)
	check := func(args string, code int, out string, says ...string) {
		t.Helper()
		got, stdout, errs := logquery(t, append([]string{"--store", "azure:" + container}, strings.Fields(args)...)...)
		if got != code || stdout != out {
			t.Errorf("logquery %s: exit %d, want %d\n%s\n%s", args, got, code, stdout, errs)
		}
		for _, text := range says {
			if strings.Count(errs, text) != 1 {
				t.Errorf("logquery %s does not say %q once:\n%s", args, text, errs)
			}
		}
	}
	check("web --live off -o raw", cli.OK, "record 0\nrecord 1\n", unseen)
	check("web -n 1 --live off -o raw", cli.OK, "record 1\n", unseen)
	check("web -o raw", cli.Incomplete, "record 0\nrecord 1\n", unseen, dark, "INCOMPLETE: 1 part")
	check("tail web -n 1 -o raw", cli.Incomplete, "record 1\n", unseen, dark, "INCOMPLETE: 1 part")
	check("tail web -n 1 --live off -o raw", cli.OK, "record 1\n", unseen)
	check("web --live off --count", cli.OK, "2\n", unseen)
	check("web --live off --from 2026-01-01 --to 2026-02-01", cli.Nothing, "", unseen)
	check("verify web", cli.OK, "", unseen, "2 blobs with 2 records")
	check("cat web/2026/11/20/1400/000002.log -o raw", cli.OK, "record 1\n", unseen)
	check("cat orders/2026/11/20/1400/000001.log", cli.Refused, "", "403")
	check("orders --live off", cli.Refused, "", "403 AuthorizationPermissionMismatch; the SAS has sp=rl and does not reach so far")
	check("* --live off", cli.Refused, "", "not authorized")

	// The same reader with the right to the marks hides a dropped day.
	if err := horizon.Publish(t.Context(), s, "web", horizon.DayOf(theHour)+1); err != nil {
		t.Fatal(err)
	}
	check("web --live off -o raw", cli.OK, "record 0\nrecord 1\n", unseen)
	f = &fence{allows: func(name string) bool {
		return strings.HasPrefix(name, "web/") || name == "_horizon/web/" || name == "_dropped/web/"
	}}
	reader(t, a, f.before(t, a), sas)
	check("web --live off -o raw", cli.Nothing, "", "older than 2026-11-21 has expired")
}

// A container that is empty under the only prefix that a reader may list has no such
// service, as far as that reader can tell.
func TestPrefixAloneOfNoService(t *testing.T) {
	a := env.Azurite(t)
	container, s := stocked(t, a)
	if err := s.Delete(t.Context(), storage.Blob{Key: "web/2026/11/20/1400/000001.log"}, storage.Blob{Key: "web/2026/11/20/1400/000002.log"}); err != nil {
		t.Fatal(err)
	}
	sas, err := a.ContainerSAS(container, "rl", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f := &fence{allows: func(name string) bool { return strings.HasPrefix(name, "web/") }}
	reader(t, a, f.before(t, a), sas)
	if code, _, errs := logquery(t, "--store", "azure:"+container, "web", "--live", "off"); code != cli.Usage || !strings.Contains(errs, `no service "web"`) {
		t.Errorf("exit %d, %s", code, errs)
	}
}
