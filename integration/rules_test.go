package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
)

// planted are secrets that no rule may let through, in the forms in which senders write them.
var planted = []string{"4111111111111111", "4111-1111-1111-1111", "0034111111111111111", "hunter2", "s3cr3t-in-a-word", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl"}

const ruleConfig = `
flush: {age: 1h, max-age: 1h}
counters:
  - {name: declined, service: "pay*", where: 'status == 402'}
  - {name: rejected, service: _rejected}
rules:
  - {name: health, service: "*", where: 'path == "/health"', drop: true}
  - {name: half, service: sampled, sample: 0.5}
  - name: secrets
    service: "*"
    mask:
      - {kind: card}
      - {kind: jwt}
      - {field: "*password*"}
      - {pattern: "s3cr3t\\S+"}
`

// withTimes is a body of records with times.
const withTimes = `{"time":"2026-11-10T12:00:00.5Z","level":"error","msg":"marker card 4111111111111111 declined","status":402}
{"time":"2026-11-10T12:00:01.5Z","level":"info","msg":"ok","path":"/health"}
{"time":"2026-11-10T12:00:02.5Z","level":"s3cr3t-in-a-word","msg":"\u0034111-1111-1111-1111","user":{"Password":"hunter2","n":[4111111111111111]}}
{"time":"2026-11-10T12:00:03.5Z","msg":"marker","auth":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl"}
`

// broken is a body with two records that are not valid.
const broken = `{"time":"2026-11-10T12:00:04.5Z","msg":"whole","card":"4111-1111-1111-1111"}
{"password":"hunter2","card":"\u0034111111111111111","x":
{"msg":"marker of 4111111111111111 with s3cr3t-in-a-word","a":1,"a":02}
`

// A real ingester drops, samples and masks records before its log. Repeats are recognised with
// rules on, also after a kill, and the metrics count each record once. No secret is anywhere.
func TestRules(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	wal := t.TempDir()
	flag := config(t, ruleConfig)
	p := start(t, at, wal, flag)
	send := func(path, body string, headers ...string) answer {
		t.Helper()
		code, a, _, err := p.post(path, []byte(body), append(headers, "Content-Type", "application/x-ndjson")...)
		if err != nil || code != http.StatusOK {
			t.Fatalf("POST %s: %d %+v, %v", path, code, a, err)
		}
		return a
	}
	untimed := `{"msg":"marker s3cr3t-in-a-word","status":402}` + "\n" + `{"path":"/health"}`
	for _, again := range []bool{false, true} {
		if a := send("/ingest/pay", withTimes); a.Accepted != 4 || a.Rejected != 0 || a.Duplicate != again {
			t.Errorf("timed: %+v", a)
		}
		if a := send("/ingest/pay-2", untimed, "Idempotency-Key", "a-key"); a.Accepted != 2 || a.Duplicate != again {
			t.Errorf("with a key and without times: %+v", a)
		}
		if a := send("/ingest/pay", broken); a.Accepted != 1 || a.Rejected != 2 || a.Duplicate != again {
			t.Errorf("broken: %+v", a)
		}
	}
	var sampled strings.Builder
	for i := range 400 {
		fmt.Fprintf(&sampled, `{"time":"2026-11-10T12:00:00.%03dZ","msg":"GET /"}`+"\n", i)
	}
	if a := send("/ingest/sampled", sampled.String()); a.Accepted != 400 {
		t.Errorf("sampled: %+v", a)
	}
	kept := 400 - int(p.metric(`blobtail_rule_records_total{action="sample",rule="half"}`))
	for name, want := range map[string]float64{
		`blobtail_records_total{level="error",service="pay"}`:       1,
		`blobtail_records_total{level="info",service="pay"}`:        1, // it is counted before it is dropped
		`blobtail_records_total{level="other",service="pay"}`:       3,
		`blobtail_records_total{level="other",service="pay-2"}`:     2,
		`blobtail_records_total{level="warn",service="_rejected"}`:  2,
		`blobtail_records_total{level="other",service="sampled"}`:   400,
		`blobtail_selected_records_total{name="declined"}`:          2,
		`blobtail_selected_records_total{name="rejected"}`:          2,
		`blobtail_rule_records_total{action="drop",rule="health"}`:  2,
		`blobtail_rule_records_total{action="mask",rule="secrets"}`: 7,
		`blobtail_buffer_records_total`:                             7 + float64(kept),
		`blobtail_http_records_total{result="accepted"}`:            407,
	} {
		if got := p.metric(name); got != want {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	if kept < 150 || kept > 250 {
		t.Errorf("the sample kept %d of 400", kept)
	}
	nowhere(t, "log", wal, true)
	nowhere(t, "store", root, false)
	stderr := p.Log()

	p.kill()
	p = start(t, at, wal, flag)
	testkit.Until(t, "the log is read back", func() bool {
		return send("/ingest/pay", withTimes).Duplicate && send("/ingest/pay-2", untimed, "Idempotency-Key", "a-key").Duplicate &&
			send("/ingest/sampled", sampled.String()).Duplicate
	})
	testkit.Until(t, "the tail has the records", func() bool { return p.metric("blobtail_tail_pending_services") == 0 })
	p.mustFlush()
	stderr += p.Log()

	read := append(query(t, at, "pay*", "sampled", "-o", "json"), query(t, at, "_rejected", "-o", "json")...)
	tail, _, _ := answered(t, at, "tail", "pay", "-o", "json")
	for what, text := range map[string][]byte{"the blobs": read, "the tail": tail, "the ingester's log": []byte(stderr)} {
		for _, secret := range planted {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s: %s is there", what, secret)
			}
		}
	}
	nowhere(t, "store", root, false)
	if n := bytes.Count(read, []byte("\n")); n != 7+kept || bytes.Count(read, []byte("[masked]")) < 9 || bytes.Contains(read, []byte("/health")) {
		t.Errorf("%d records: %.3000s", n, read)
	}
	if !bytes.Contains(read, []byte(`"msg":"marker card [masked] declined","status":402}`)) {
		t.Errorf("%.3000s", read)
	}
	if out, errs, code := logquery(t, at, "verify"); code != 0 {
		t.Errorf("verify exits %d: %s%s", code, out, errs)
	}
}

// nowhere fails the test if a file below a directory has a planted secret. marked says that
// the files have the records uncompressed: then the marker in them must be found.
func nowhere(t *testing.T, what, dir string, marked bool) {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || bytes.Contains(text, []byte("marker"))
		for _, secret := range planted {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s: %s has %s", what, path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if marked && !found {
		t.Errorf("%s: the files do not show their records, so this looks for nothing", what)
	}
}

// A request that comes again after a change of masks is stored once with each: two records of
// one identity never differ, so compaction finds no contradiction.
func TestChangedMasks(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	const body = `{"time":"2026-11-10T12:00:00.5Z","msg":"pin 1234"}` + "\n" + `{"time":"2026-11-10T12:00:01.5Z","msg":"no number"}` + "\n"
	for i, rules := range []string{
		"[]",
		`[{name: a, service: web, mask: [{pattern: '\d+'}]}]`,
		`[{name: a, service: web, mask: [{pattern: '\d+', with: "#"}]}]`,
		`[{name: b, service: web, mask: [{pattern: '\d+', with: "#"}]}, {name: c, service: web, where: 'msg == "x"', drop: true}]`, // the same masks
	} {
		p := start(t, at, t.TempDir(), config(t, "rules: "+rules)) // it does not know the requests to the one before
		if a := p.mustPost("/ingest/web", []byte(body)); a.Accepted != 2 || a.Duplicate {
			t.Errorf("rules %d: %+v", i, a)
		}
		p.mustFlush()
		if code, _ := p.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	want := strings.Count(body, "\n") * 3 // the last two are copies
	for _, when := range []string{"before", "after"} {
		if n := count(t, at, "web"); n != want {
			t.Errorf("%s: %d records, want %d: %s", when, n, want, query(t, at, "web", "-o", "json"))
		}
		query(t, at, "verify")
		for _, args := range [][]string{{"close"}, {"compact", "--grace", "0s"}} {
			if out, errs, code := retain(t, at, args...); code > 1 {
				t.Errorf("%s exits %d: %s%s", args[0], code, out, errs)
			}
		}
	}
}
