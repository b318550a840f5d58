package body

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/record/meaning"
)

// lines returns the lines of a body behind their time, and the reasons of its rejects.
func exported(decode decoder, body string, fields *meaning.Mapping) (lines []string) {
	g := NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(Arrival{Service: "web", Time: 1_795_170_000e9, Fields: fields})
	decode([]byte(body), 0, g)
	for i := range g.Req.Lines {
		l := &g.Req.Lines[i]
		_, line, _ := strings.Cut(string(g.Req.Data[l.Off:l.Off+l.Len]), `T`)
		lines = append(lines, strings.Replace(strings.TrimSpace(line), `","service":"web","msg":"`, " ", 1))
	}
	for _, r := range g.Rejected {
		lines = append(lines, fmt.Sprintf("%d: %s", r.Index, r.Reason))
	}
	return lines
}

// An export is a batch of records, and any other object is one record.
func TestExports(t *testing.T) {
	const event = `{"timestamp":1795168806257,"message":"ERROR x"}`
	const line = `10:00:06.257000000Z","level":"error ERROR x"`
	const group = `"messageType":"DATA_MESSAGE","owner":"1","logGroup":"/g","logStream":"s","subscriptionFilters":["f"]`
	const other = `10:20:00.000000000Z","level":" `
	for _, row := range []struct {
		body string
		want []string
	}{
		{`{` + group + `,"logEvents":[` + event + `, ` + event + `]}`, slices.Repeat([]string{line + `,` + group + `}`}, 2)},
		{`{"events":[` + event + `],"nextForwardToken":"f/1","nextBackwardToken":"b/1"}`, []string{line + "}"}},
		{`{"Records":[` + event + `]}`, []string{line + "}"}},
		{`{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + event + `]}`, []string{line + "}"}},
		{`{"@odata.context":"x","value":[` + event + `],"@odata.nextLink":"y"}`, []string{line + "}"}},
		{`{"logs":["2026-11-20T10:00:06.257Z ERROR x",` + event + `]}`,
			[]string{`10:00:06.257000000Z","level":"error 2026-11-20T10:00:06.257Z ERROR x"}`, line + "}"}},
		{` {"records":[` + event + `,12,[]]}  `,
			[]string{line + "}", "1: the array element is not a JSON object", "2: the array element is not a JSON object"}},
		{`{"owner":"o","logEvents":[{}, {"owner":"p","message":"m"}]}`,
			[]string{other + `","owner":"o"}`, other + `m","owner":"p","owner.2":"o"}`}},
		{`{"records":[]}`, nil},
		{`{"logs":["x"`, []string{`0: at byte 12: not valid JSON: it ends too early`}},
		// These are records.
		{`{"logs":[` + event + `],"level":"info"}`, []string{`10:20:00.000000000Z","level":"info ","logs":[` + event + `]}`}},
		{`{"message":"m","records":[` + event + `]}`, []string{other + `m","records":[` + event + `]}`}},
		{`{"items":[` + event + `]}`, []string{other + `","items":[` + event + `]}`}},
		{`{"value":["a"]}`, []string{other + `","value":["a"]}`}},
		{`{"value":12}`, []string{other + `","value":12}`}},
		{`{"logs":["a"],"logs":["b"]}`, []string{other + `","logs":["a"],"logs.2":["b"]}`}},
		{`{"kind":"Event","metadata":{"name":"x"}}`, []string{other + `","kind":"Event","metadata":{"name":"x"}}`}},
	} {
		for name, decode := range map[string]decoder{"lines": decodeLines, "JSON": decodeJSON, "sniffed": decodeSniffed} {
			if got := exported(decode, row.body, nil); !slices.Equal(got, row.want) {
				t.Errorf("%s as %s:\n got %q\nwant %q", row.body, name, got, row.want)
			}
		}
	}
	fields := (*meaning.Mapping)(nil).With(meaning.Names{Message: []string{"logs"}})
	if got := exported(decodeJSON, `{"logs":["a"]}`, fields); len(got) != 1 || !strings.Contains(got[0], `[\"a\"]`) {
		t.Errorf("a field that the sender names: %q", got)
	}
}

// No member of an export begins as the usual first member of a record, or is a part of a head.
func TestExportNames(t *testing.T) {
	names := meaning.KnownNames()
	for _, name := range slices.Concat(names.Time, names.Level, names.Message, names.Service) {
		if of, _ := exportMember([]byte(name)); of != "" {
			t.Errorf("%s is a member of %s", name, of)
		}
	}
	source, err := os.ReadFile("export.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		if strings.HasPrefix(line, "\tcase ") && strings.Contains(line, `"t`) {
			t.Errorf("export passes over an object that begins with a member of %s", line)
		}
	}
}

// An export of megabytes, and many that have no end, are read in a time that grows with their bytes.
func TestLongExports(t *testing.T) {
	one := `{"eventTime":"2026-11-20T10:00:06Z","x":"` + strings.Repeat("y", 200) + `"}`
	for name, body := range map[string]string{
		"one":                `{"Records":[` + strings.TrimSuffix(strings.Repeat(one+",", 8_000), ",") + `]}`,
		"many":               strings.Repeat(`{"Records":[`+one+`]}`, 7_000),
		"no ends":            strings.Repeat(`{"Records":[`+"\n", 50_000),
		"no ends of members": strings.Repeat(`{"metadata":{"a":`+"\n", 50_000),
		"spaces":             `{"logs":[` + strings.Repeat(" ", 8<<20),
	} {
		begun := time.Now()
		l := &ledger{t: t, parser: meaning.NewReader(), body: []byte(body), seen: make([]bool, len(body))}
		decodeJSON(l.body, 0, l)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: %s", name, took)
		}
		if n := bytes.Count(l.body, []byte("eventTime")); l.accepted != n {
			t.Errorf("%s: %d accepted, %d rejected, want %d", name, l.accepted, l.rejected, n)
		}
	}
}
