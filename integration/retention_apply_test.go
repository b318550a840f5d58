package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/catalog/horizon"
)

// A policy is planned and confirmed. It hides blobs, and deletes them a grace later.
// Kept days stay to the last record, also those of services with similar names.
func TestRetention(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		e := newEstate(t, at, "default: 30d, rules: [{service: app, age: 3d}, {service: \"audit-*\", age: keep}]")
		wal := t.TempDir()
		p := start(t, at, wal, e.flag)
		e.fill(p, "app", 5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		e.fill(p, "app2", 5, 1, 3, 4, 5, 44, 43, 42)
		e.fill(p, "app-2", 5, 5, 30)
		e.fill(p, "audit-db", 5, 400, 1)
		e.fill(p, "web", 5, 28, 29, 30, 31, 32, 33, 34)
		first := map[string]horizon.Day{"app": e.day(3), "app2": e.day(30), "app-2": e.day(30), "audit-db": 0, "web": e.day(30)}
		before := logs(t, at)
		var kept, gone []string
		for s, from := range first {
			kept = append(kept, of(before, s, func(d horizon.Day) bool { return d >= from })...)
			gone = append(gone, of(before, s, func(d horizon.Day) bool { return d < from })...)
		}
		slices.Sort(kept)
		if len(kept) != 4+4+2+2+3 || len(gone) != 6+3+4 {
			t.Fatalf("%d blobs are to stay and %d to go", len(kept), len(gone))
		}

		// A plan deletes nothing and reports the same in both forms.
		out, _ := e.must(0, "plan")
		hash := planHash(t, out)
		for s, from := range first {
			for d, n := range e.want[s] {
				line := regexp.MustCompile(fmt.Sprintf(`(?m)^.*\b%s\b.*$`, d)).FindAllString(out, -1)
				has := slices.ContainsFunc(line, func(l string) bool { return slices.Contains(strings.Fields(l), s) })
				if has != (d < from) {
					t.Errorf("the plan tells of %s of %s: %v, first kept is %s, %d records\n%s", d, s, has, from, n, out)
				}
			}
		}
		out, _ = e.must(0, "plan", "-o", "json")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Errorf("no JSON: %s", l)
			}
		}
		if want := `{"plan":"` + hash + `"}`; lines[len(lines)-1] != want {
			t.Errorf("last line %s, want %s", lines[len(lines)-1], want)
		}
		// The first policy must be confirmed with exactly this hash.
		_, errs := e.must(2, "apply")
		if !strings.Contains(errs, " --confirm "+hash) {
			t.Errorf("it does not say how to confirm: %s", errs)
		}
		e.must(2, "apply", "--confirm", strings.Repeat("0", 64))
		if got := keys(t, at, ""); !slices.Equal(got, before) {
			t.Fatalf("something happened to the store: %v", got)
		}

		// Once confirmed, the policy hides blobs and deletes none yet. The next run,
		// within the grace, does the same.
		e.must(0, "apply", "--confirm", hash)
		e.must(0, "apply")
		if got := logs(t, at); !slices.Equal(got, before) {
			t.Errorf("a run without a grace before it deletes: %v", got)
		}
		for s, from := range first {
			e.counts(s, from)
		}
		// A read that asks for expired days is told of them, and one of all that is there is not.
		_, note, code := answered(t, at, "web", "-o", "raw", "--from", e.day(40).String())
		if code != 0 || !strings.Contains(note, "expired") || !strings.Contains(note, e.day(30).String()) {
			t.Errorf("exit code %d, and what is said of expired days: %s", code, note)
		}
		if _, note, code = answered(t, at, "web", "-o", "raw"); code != 0 || strings.Contains(note, "expired") {
			t.Errorf("exit code %d, and a reader of all is told %s", code, note)
		}
		if n := bytes.Count(query(t, at, "ls", "web"), []byte("\n")); n != 3 {
			t.Errorf("ls web: %d days, want 3", n)
		}
		if out, _, code := logquery(t, at, "cat", of(gone, "web", func(horizon.Day) bool { return true })[0]); code != 1 || len(out) > 0 {
			t.Errorf("cat of an expired blob: exit code %d, %q", code, out)
		}
		query(t, at, "verify")

		// A grace later the hidden blobs are deleted, and nothing else.
		metrics := filepath.Join(t.TempDir(), "retention.prom")
		_, errs = e.must(0, "apply", "--grace", "0s", "--metrics-file", metrics)
		if got := logs(t, at); !slices.Equal(got, kept) {
			t.Errorf("what stays:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(kept, "\n"))
		}
		checkAudit(t, errs, hash, e, first)
		checkMetrics(t, metrics, len(gone))
		for s, from := range first {
			e.counts(s, from)
		}
		query(t, at, "verify")

		// From here on there is nothing to do.
		all := keys(t, at, "")
		e.sweep()
		if got := keys(t, at, ""); !slices.Equal(got, all) {
			t.Errorf("a run with nothing to do: %v, want %v", got, all)
		}
		// An ingester that has read the horizon answers older records as expired, and
		// does not store them.
		p.stop()
		p = start(t, at, wal, e.flag)
		e.knows(p, "app", e.day(7))
		if a := p.expired("/ingest/app", e.lines("app", 3, 7, 1)); a != (expiring{Accepted: 3, Expired: 3}) {
			t.Errorf("%+v", a)
		}
		p.mustFlush()
		if got := of(logs(t, at), "app", func(d horizon.Day) bool { return d < e.day(3) }); len(got) > 0 {
			t.Errorf("stored below the horizon: %v", got)
		}
		e.counts("app", e.day(3))
	})
}

// expiring is the answer to a request with some expired records.
type expiring struct{ Accepted, Rejected, Expired int }

func (p *ingester) expired(path string, data []byte) (a expiring) {
	p.t.Helper()
	resp, err := http.Post(p.listen+path, "", bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Errorf("POST %s: %d, %v", path, resp.StatusCode, err)
	}
	return a
}

// checkAudit wants one line for each deleted service and day, with the plan of the
// deletion.
func checkAudit(t *testing.T, log, hash string, e *estate, first map[string]horizon.Day) {
	t.Helper()
	type line struct {
		Plan, Service, Day string
		Records            int
	}
	seen := map[string]int{}
	for l := range strings.Lines(log) {
		var a line
		if json.Unmarshal([]byte(l), &a) == nil && a.Day != "" && a.Records > 0 {
			seen[a.Service+" "+a.Day] += a.Records
			if len(a.Plan) != 64 {
				t.Errorf("no plan in %s", l)
			}
		}
	}
	for s, from := range first {
		for d, n := range e.want[s] {
			key := s + " " + d.String()
			if d < from && seen[key] != n {
				t.Errorf("the log tells of %d records of %s, want %d", seen[key], key, n)
			} else if d >= from && seen[key] > 0 {
				t.Errorf("the log tells that %s went", key)
			}
		}
	}
	if t.Failed() {
		t.Logf("log:\n%s", log)
	}
}

// checkMetrics reads the metrics that a run leaves for a node exporter.
func checkMetrics(t *testing.T, path string, blobs int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"last_success_timestamp_seconds": `[1-9][0-9.e+]+`, "last_run_timestamp_seconds": `[1-9][0-9.e+]+`, "last_run_exit_code": "0",
		"oldest_blob_age_seconds": `[1-9][0-9.e+]+`, "freed_bytes_total": `[1-9][0-9.e+]+`, "deleted_blobs_total": fmt.Sprint(blobs), "failed_deletes": "0",
	} {
		if !regexp.MustCompile(`(?m)^blobtail_retention_` + name + `(\{[^}]*\})? ` + want + `$`).Match(text) {
			t.Errorf("no %s %s in\n%s", name, want, text)
		}
	}
}

// A changed policy needs a confirmation only if it deletes much. An unchanged one
// never does, even if a large backlog has piled up.
func TestRetentionGuard(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	e := newEstate(t, at, "default: 60d")
	p := start(t, at, t.TempDir(), e.flag)
	days := make([]int, 50)
	for i := range days {
		days[i] = i
	}
	e.fill(p, "web", 3, days...)
	e.fill(p, "db", 3, 1, 2)
	e.must(0, "apply") // hides nothing, so there is nothing to confirm
	horizonOf := func(service string) string {
		marks := keys(t, at, "_horizon/"+service+"/")
		if len(marks) == 0 {
			return ""
		}
		return marks[len(marks)-1][len("_horizon/"+service+"/"):]
	}
	compact := func(ago int) string { return strings.ReplaceAll(e.day(ago).String(), "-", "") }

	e.policy("default: 48d") // hides two days that have blobs: 4 %
	e.must(0, "apply")
	if got := horizonOf("web"); got != compact(48) {
		t.Errorf("horizon %s, want %s", got, compact(48))
	}
	e.policy("default: 45d") // hides three more
	_, errs := e.must(2, "apply")
	if !strings.Contains(errs, "web") || !strings.Contains(errs, "--confirm") {
		t.Errorf("%s", errs)
	}
	e.policy("default: 30d, rules: [{service: web, age: 1d}]")
	e.must(2, "apply")
	if got := horizonOf("web"); got != compact(48) {
		t.Errorf("horizon %s, want %s", got, compact(48))
	}
	// One day of db is most of its bytes, but little of the store's.
	e.policy("default: 60d, rules: [{service: db, age: 1d}]")
	e.must(0, "apply")
	if got := horizonOf("db"); got != compact(1) {
		t.Errorf("horizon %s, want %s", got, compact(1))
	}

	// Weeks later, under the same policy: the backlog is deleted without a
	// confirmation.
	e.policy("default: 20d")
	now := e.now
	e.now = now.AddDate(0, 0, -19)
	e.confirm()
	e.now = now
	e.must(0, "apply")
	if got := horizonOf("web"); got != compact(20) {
		t.Errorf("horizon %s, want %s", got, compact(20))
	}
	e.sweep()
	if got := of(logs(t, at), "web", func(d horizon.Day) bool { return true }); len(got) != 21 {
		t.Errorf("%d blobs of web stay, want 21", len(got))
	}
}

// Commands that must be mistakes are refused, with a code for the kind of mistake.
func TestRetentionRefuses(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	e := newEstate(t, at, "default: 3d")
	p := start(t, at, t.TempDir(), e.flag)
	e.fill(p, "web", 2, 0, 1, 2, 3, 4, 5, 6)
	before := keys(t, at, "")
	now := e.now.Format("2006-01-02T15:04:05Z")
	unset, short, naked := config(t, "store: dir:x\n"), config(t, "retention: {default: 7h}\n"), config(t, "retention: {default: 7}\n")
	for _, c := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"no default", 2, "default", []string{"apply", unset}},
		{"no default, plan", 2, "default", []string{"plan", unset}},
		{"less than a day", 2, "24h", []string{"apply", short}},
		{"no unit", 2, "unit", []string{"apply", naked}},
		{"a time to come", 2, "", []string{"apply", e.flag, "--now", e.now.AddDate(0, 0, 2).Format("2006-01-02T15:04:05Z")}},
		{"not confirmed", 2, "--confirm", []string{"apply", e.flag, "--now", now}},
		{"a day to come", 2, "", []string{"drop", "web", "--day", e.day(-2).String(), e.flag}},
		{"no day", 2, "", []string{"drop", "web", "--day", "yesterday-ish", e.flag}},
		{"drop not confirmed", 2, "--confirm", []string{"drop", "web", "--day", e.day(2).String(), e.flag}},
		{"drop wrongly confirmed", 2, "", []string{"drop", "web", "--day", e.day(2).String(), e.flag, "--confirm", strings.Repeat("a", 64)}},
		{"an unknown flag", 2, "", []string{"apply", e.flag, "--yes"}},
		{"no store", 5, "", []string{"apply", e.flag, "--store", "dir:" + root + "-not"}},
	} {
		out, errs, code := retain(t, at, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") > 10 {
			t.Errorf("%s: exit code %d, want %d; stderr %s stdout %s", c.name, code, c.code, errs, out)
		}
		if got := keys(t, at, ""); !slices.Equal(got, before) {
			t.Fatalf("%s: the store has %v", c.name, got)
		}
	}
}
