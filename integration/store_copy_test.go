package integration_test

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A directory store is copied while its ingester runs. A read of the copy is whole while the
// ingester holds all that came since. Once that is in blobs of the first store, a read of the copy
// exits 3 and asks whether this is a copy, also about a service that the copy has no blob of. So do
// the answers of a server of the copy. The first store is read as before.
func TestStoreCopy(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, filepath.Join(t.TempDir(), "wal"))
	send := func(service, msg string) {
		t.Helper()
		p.mustPost("/ingest/"+service, fmt.Appendf(nil, `{"time":%q,"msg":%q}`, time.Now().UTC().Format(time.RFC3339Nano), msg))
	}
	send("web", "one")
	p.mustFlush()
	send("web", "two")
	send("app", "three")
	copied := place{store: "dir:" + filepath.Join(t.TempDir(), "copy")}
	if out, err := exec.Command("cp", "-a", root, strings.TrimPrefix(copied.store, "dir:")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for service, want := range map[string]int{"web": 2, "app": 1, "*": 3} {
		if n := count(t, copied, service); n != want {
			t.Errorf("before the flush the copy has %d records of %s, want %d", n, service, want)
		}
	}
	p.mustFlush()
	server := serve(t, copied)
	for service, want := range map[string]int{"web": 2, "app": 1, "*": 3} {
		for _, kind := range [][]string{{service}, {service, "--count"}, {"hist", service}, {service, "-n", "5"}, {service, "--from", "-30m"}} {
			out, errs, code := answered(t, copied, kind...)
			if code != 3 || !strings.Contains(errs, "is this a copy of that ingester's store") {
				t.Errorf("the copy, %q: exit %d, %.200s\n%s", kind, code, out, errs)
			}
			if strings.Contains(errs, "no service") {
				t.Errorf("the copy denies %s: %s", service, errs)
			}
		}
		if n := count(t, at, service); n != want {
			t.Errorf("the first store has %d records of %s, want %d", n, service, want)
		}
		code, body, err := server.get("/api/v1/count?service=" + url.QueryEscape(service))
		if err != nil || code != 200 || !strings.Contains(string(body), `"complete":false`) || !strings.Contains(string(body), "is this a copy") {
			t.Errorf("a server of the copy, %s: %d %v %.300s", service, code, err, body)
		}
	}
	code, body, err := server.get("/loki/api/v1/query_range?query=" + url.QueryEscape(`{service="app"}`))
	if err != nil || code == 200 && !strings.Contains(string(body), "is this a copy") {
		t.Errorf("Loki's API of the copy: %d %v %.300s", code, err, body)
	}
	if out, errs, code := answered(t, copied, "web", "--live", "off", "--count"); code != 0 || strings.TrimSpace(string(out)) != "1" {
		t.Errorf("the blobs of the copy: exit %d, %s, %s", code, out, errs)
	}
	if _, errs, code := answered(t, copied, "tail", "web"); code != 3 || !strings.Contains(errs, "is this a copy") {
		t.Errorf("the tail of the copy: exit %d, %s", code, errs)
	}
}
