package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/body/loggers"
)

// applications are rows of the table of loggers: the output of five frameworks in five languages,
// without a setting.
func applications(t *testing.T) []loggers.Row {
	t.Helper()
	rows, err := loggers.Read("../source/body/loggers/testdata")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"go-zap-production", "java-spring-boot", "node-nest", "python-flask", "ruby-rails-6"}
	rows = slices.DeleteFunc(rows, func(r loggers.Row) bool { return !slices.Contains(names, r.Name) })
	if len(rows) != len(names) {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// severe reports whether a record is an error or worse.
func severe(r loggers.Record) bool {
	return r.Level != nil && slices.Contains([]string{"error", "critical"}, *r.Level)
}

// sentLines are the lines of a row: those that must be among the errors, those that must not, and
// how many there are.
func sentLines(row loggers.Row) (errors, others []string, n int) {
	for _, r := range row.Records {
		lines := strings.FieldsFunc(string(r.Text), func(c rune) bool { return c == '\n' || c == '\r' })
		n += len(lines)
		if severe(r) {
			errors = append(errors, lines[0])
		} else {
			others = append(others, lines...)
		}
	}
	return errors, others, n
}

// wantErrors wants some messages among the records of --level error+, and no other ones.
func wantErrors(t *testing.T, at place, service string, errors, others []string) {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(string(query(t, at, service, "--level", "error+", "-o", "json"))) {
		var r struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		found[r.Msg] = true
	}
	for _, msg := range errors {
		if !found[msg] {
			t.Errorf("%s: --level error+ lacks %q", service, msg)
		}
	}
	for _, msg := range others {
		if found[msg] {
			t.Errorf("%s: --level error+ has %q", service, msg)
		}
	}
}

// Programs that print as their framework does by default have their errors under --level error+,
// whether rsyslog follows their file, Fluent Bit reads their containers, or a collector sends
// their lines by OTLP. No program has a setting for that.
func TestApplications(t *testing.T) {
	t.Parallel()
	program(t, "rsyslogd", "rsyslog")
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--syslog", "127.0.0.1:0")
	host, port := syslogAt(t, p)
	dir, taken := t.TempDir(), 0
	for _, row := range applications(t) {
		_, _, n := sentLines(row)
		file := filepath.Join(dir, row.Name+".log")
		if err := os.WriteFile(file, row.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		forwarder(t, file, "file-"+row.Name, host, port, `template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted"`)
		send(t, p, "/ingest", "application/json", pods(row), n)
		send(t, p, "/v1/logs", "application/json", otlp(row), len(row.Records))
		taken += 2*n + len(row.Records)
	}
	p.takes(t, taken)
	for _, row := range applications(t) {
		errors, others, n := sentLines(row)
		testkit.Until(t, "all lines of "+row.Name+" are stored", func() bool { return count(t, at, "file-"+row.Name) >= n })
		wantErrors(t, at, "file-"+row.Name, errors, others)
		wantErrors(t, at, "pod-"+row.Name, errors, others)
		wantOTLP(t, at, row)
	}
	if n := count(t, at, "*", "--from", "10m ago"); n != taken {
		t.Errorf("--from finds %d records, want %d", n, taken)
	}
}

// send sends a body, and wants so many records accepted.
func send(t *testing.T, p *ingester, path, form, body string, n int) {
	t.Helper()
	code, a, _, err := p.post(path, []byte(body), "Content-Type", form)
	if err != nil || code != 200 || strings.HasPrefix(path, "/ingest") && a.Accepted != n {
		t.Fatalf("%s: %d %+v, %v; want %d accepted", path, code, a, err, n)
	}
}

// pods is a row as Fluent Bit sends the lines of a container.
func pods(row loggers.Row) string {
	var b strings.Builder
	at := float64(time.Now().UnixMilli()) / 1000
	for _, r := range row.Records {
		for line := range strings.FieldsFuncSeq(string(r.Text), func(c rune) bool { return c == '\n' || c == '\r' }) {
			text, _ := json.Marshal(line)
			fmt.Fprintf(&b, `{"date":%.3f,"stream":"stdout","logtag":"F","log":%s,"kubernetes":{"pod_name":"p-0","container_name":"pod-%s"}}`+"\n", at, text, row.Name)
		}
	}
	return b.String()
}

// otlp is a row as a collector sends it.
func otlp(row loggers.Row) string {
	var all []string
	for _, r := range row.Records {
		text, _ := json.Marshal(string(r.Text))
		all = append(all, fmt.Sprintf(`{"timeUnixNano":"%d","body":{"stringValue":%s}}`, time.Now().UnixNano(), text))
	}
	return fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"otlp-%s"}}]},"scopeLogs":[{"logRecords":[%s]}]}]}`,
		row.Name, strings.Join(all, ","))
}

// wantOTLP wants the levels of a row by top and hist, and its errors.
func wantOTLP(t *testing.T, at place, row loggers.Row) {
	t.Helper()
	service := "otlp-" + row.Name
	levels, bad := map[string]int{}, 0
	for _, r := range row.Records {
		word := ""
		if r.Level != nil && record.LevelOf([]byte(*r.Level)) != record.Other {
			word = *r.Level
		}
		levels[word]++
		if severe(r) {
			bad++
		}
	}
	if n := count(t, at, service, "--level", "error+"); n != bad {
		t.Errorf("%s: --level error+ finds %d records, want %d", service, n, bad)
	}
	top := string(query(t, at, "top", "level", service, "-o", "csv", "-n", "10"))
	hist := string(query(t, at, "hist", service, "--by", "1d", "-o", "csv"))
	for word, n := range levels {
		if !strings.Contains(top, fmt.Sprintf("\n%s,%d,", word, n)) && !strings.Contains(top, fmt.Sprintf("\n%s,%d\n", word, n)) {
			t.Errorf("%s: top says %s, without %d of level %q", service, top, n, word)
		}
	}
	if head, _, _ := strings.Cut(hist, "\n"); !strings.Contains(head, "error") && bad > 0 {
		t.Errorf("%s: hist says %s", service, hist)
	}
}
