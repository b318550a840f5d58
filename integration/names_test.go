package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobtail/record"
)

// hostileNames are names of services that mean something to a file system, to a table, to a
// terminal, or to HTTP.
func hostileNames() []string {
	return []string{
		"../../etc/passwd", "..", ".", "/abs", `..\..\x`, "a/../../b", "nul\x00byte", "cr\r\nX-Evil: 1", "\x1b[2J\x1b]0;evil\x07", "_rejected", "_store",
		"web' or PartitionKey ne '", "a%2e%2e%2fb", "*", "[a-z]", "$logs", strings.Repeat("long", 300), "\xff\xfe", "ТЕСТ", "\u202eevil", "con", "-rf", "--store=x", " ",
	}
}

// Senders choose the names of services, in every protocol. An ingester makes a valid name of any
// choice, keeps each record, and writes nothing outside of the store.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, t.TempDir())
	sent := 0
	for i, name := range hostileNames() {
		for _, r := range requestsNamed(name, i) {
			q, err := http.NewRequest("POST", p.listen+r.path, strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Type", r.contentType)
			res, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatalf("%s %q: %v", r.path, name, err)
			}
			res.Body.Close()
			if evil := res.Header.Get("X-Evil"); evil != "" {
				t.Errorf("%s %q: a header of the sender's in the answer", r.path, name)
			}
			switch {
			case res.StatusCode/100 == 2:
				sent++
			case !strings.HasPrefix(r.path, "/ingest/"): // a path may be none
				t.Errorf("%s %q: %s", r.path, name, res.Status)
			}
		}
	}
	p.mustFlush()
	outside(t, filepath.Dir(root), root)
	out, errs, code := answered(t, at, "*", "-o", "json", "--from", "2020-01-01")
	if code != 0 || bytes.Count(out, []byte("\n")) != sent {
		t.Errorf("%d records of %d, exit code %d: %s", bytes.Count(out, []byte("\n")), sent, code, errs)
	}
	for line := range bytes.Lines(out) {
		var l struct{ Service string }
		if err := json.Unmarshal(line, &l); err != nil || !record.ValidStored(l.Service) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// outside fails the test for each file of a directory that is neither in the store nor a
// directory on the way to it.
func outside(t *testing.T, dir, store string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == store {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			t.Errorf("%s is outside of the store", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// namedRequest is a request with one record of a service.
type namedRequest struct{ path, contentType, body string }

// requestsNamed makes a request with a name in each protocol.
func requestsNamed(name string, i int) []namedRequest {
	text, _ := json.Marshal(name) // a string has a form in JSON
	const ns = 1_795_519_265_000_000_000
	at := ns + int64(i)*1_000_001
	return []namedRequest{
		{"/ingest/" + url.PathEscape(name), "text/plain", "x"},
		{"/ingest", "application/json", fmt.Sprintf(`{"service":%s,"msg":"x"}`, text)},
		{"/loki/api/v1/push", "application/json", fmt.Sprintf(`{"streams":[{"stream":{"app":%s},"values":[["%d","x"]]}]}`, text, at)},
		{"/_bulk", "application/x-ndjson", fmt.Sprintf("{\"create\":{\"_index\":%s}}\n{\"message\":\"x\"}\n", text)},
		{"/v1/logs", "application/json", fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%s}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"%d","body":{"stringValue":"x"}}]}]}]}`, text, at)},
		{"/services/collector", "", fmt.Sprintf(`{"source":%s,"event":"x"}`, text)},
		{"/api/v2/logs", "application/json", fmt.Sprintf(`[{"service":%s,"message":"x"}]`, text)},
		{"/gelf", "", fmt.Sprintf(`{"host":%s,"short_message":"x"}`, text)},
		{"/upload", "application/vnd.fdo.journal", fmt.Sprintf("__CURSOR=%d\n__REALTIME_TIMESTAMP=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE=x\n\n", i, at/1000, strings.ReplaceAll(name, "\n", " "))},
	}
}

// Names, texts and times on the command line of logquery are data: none is a filter of a table, a
// prefix of another service, or an option of a program.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	p.mustPost("/ingest/secret", []byte(two))
	p.mustPost("/ingest/web", []byte(two), "Ack", "stored")
	for _, name := range append(hostileNames(), "web' or 'a' eq 'a", "web/../secret", "web\x00secret", "we", "secret/2026") {
		if name == "*" || name == "[a-z]" || strings.Contains(name, "\x00") {
			continue // a glob may match; no argument can have a NUL
		}
		for _, verb := range []string{"read", "tail", "ls", "stats"} {
			flags := []string{"--from=2026-11-01"}
			if verb == "tail" {
				flags = []string{"-n", "5"}
			}
			out, errs, code := logquery(t, at, slices.Concat([]string{verb}, flags, []string{"--", name})...)
			if bytes.Contains(out, []byte("first")) || bytes.Contains(out, []byte("secret")) || strings.Contains(errs, "panic") || strings.Contains(errs, "\x1b") {
				t.Errorf("%s %q: exit code %d\n%s%s", verb, name, code, out, errs)
			}
		}
	}
}
