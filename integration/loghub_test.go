package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
)

// loghub is the directory of the real logs, relative to the root of the repository. They are no
// part of it.
const loghub = "../shared/data/loghub"

const loghubRecords = 16_000

// body is a request that a test sends.
type body struct {
	path string
	data []byte
}

// loghubBodies cuts the logs into bodies of about 500 lines. Bodies of every second log name the
// service in the path, the others only in each record. Without loghub they are logs of as many
// records by package corpus, with the names that the fields of loghub have.
func loghubBodies(t testing.TB) []body {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shared.root, loghub, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string][]byte{}
	for _, file := range files {
		if logs[strings.TrimSuffix(filepath.Base(file), ".ndjson")], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for i, service := range corpus.Services() {
		if len(files) > 0 {
			break
		}
		var text bytes.Buffer
		if _, err := corpus.Write(&text, corpus.Options{Seed: uint64(i), Records: loghubRecords / 8, Services: 1}); err != nil {
			t.Fatal(err)
		}
		names := strings.NewReplacer(`{"ts":`, `{"time":`, `"msg":`, `"message":`, `"gateway`, `"`+service)
		logs[service] = []byte(names.Replace(text.String()))
	}
	var bodies []body
	for i, service := range slices.Sorted(maps.Keys(logs)) {
		path := "/ingest"
		if i%2 == 1 {
			path += "/" + service
		}
		lines := bytes.SplitAfter(logs[service], []byte("\n"))
		for n := 0; n < len(lines); {
			end := min(n+480+len(bodies)%41, len(lines))
			if data := bytes.Join(lines[n:end], nil); len(data) > 0 {
				bodies = append(bodies, body{path, data})
			}
			n = end
		}
	}
	return bodies
}

// meaning returns the content of a record in any form: its time, level, service and
// message, and all other fields sorted by name. A record of loghub has the same
// meaning before and after.
func meaning(t testing.TB, line []byte, names [4]string, level func(string) string) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	take := func(name string) string {
		v, _ := fields[name].(string)
		delete(fields, name)
		return v
	}
	at, err := time.Parse(time.RFC3339Nano, take(names[0]))
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	word, service, msg := level(take(names[1])), take(names[2]), take(names[3])
	if word == "" { // some messages of sshd and others show it
		first, _, _ := strings.Cut(msg, ": ")
		word = map[string]string{"error": "error", "fatal": "critical", "warning": "warn"}[strings.ToLower(first)]
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s %q %s", at.UnixNano(), word, service, msg, rest)
}

// loghubLevel returns the table of the levels that occur in loghub.
func loghubLevel(t testing.TB) func(string) string {
	words := map[string]string{
		"": "", "debug": "debug", "info": "info", "warn": "warn", "critical": "critical", "V": "trace", "D": "debug", "I": "info", "W": "warn", "E": "error", "F": "critical",
		"INFO": "info", "Info": "info", "notice": "info", "WARN": "warn", "WARNING": "warn", "ERROR": "error", "error": "error",
	}
	return func(word string) string {
		to, ok := words[word]
		if !ok {
			t.Fatalf("loghub has a level %q that the table lacks", word)
		}
		return to
	}
}

// wantLoghub counts the meanings of the records to send.
func wantLoghub(t testing.TB, bodies []body) map[string]int {
	t.Helper()
	want, level := map[string]int{}, loghubLevel(t)
	n := 0
	for _, b := range bodies {
		for line := range bytes.Lines(b.data) {
			want[meaning(t, line, [4]string{"time", "level", "service", "message"}, level)]++
			n++
		}
	}
	if n != loghubRecords {
		t.Fatalf("loghub has %d records, want %d", n, loghubRecords)
	}
	return want
}

// compareLoghub compares the output of logquery -o json with the sent records.
func compareLoghub(t testing.TB, out []byte, sent map[string]int) {
	t.Helper()
	left := make(map[string]int, len(sent))
	for k, n := range sent {
		left[k] = n
	}
	n, last := 0, ""
	same := func(level string) string { return level }
	for line := range bytes.Lines(out) {
		n++
		const head = len(`{"ts":"`)
		ts := string(line[head : head+30])
		if ts < last {
			t.Errorf("line %d is older than the one before: %s", n, line)
		}
		last = ts
		m := meaning(t, line, [4]string{"ts", "level", "service", "msg"}, same)
		if left[m]--; left[m] < 0 {
			t.Fatalf("line %d was not sent, or not so often: %s", n, line)
		}
	}
	if n != loghubRecords { // with the check above: nothing is missing
		t.Errorf("%d records come back, want %d", n, loghubRecords)
	}
}

// Real logs must come back unchanged, and once, even if they were sent several times.
// They were sent to the same ingester, and to another with its own log.
func TestLoghub(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		bodies := loghubBodies(t)
		want := wantLoghub(t, bodies)
		p := start(t, at, t.TempDir())
		sendAll(t, p, bodies, false)
		p.mustFlush()
		compareLoghub(t, query(t, at, "*", "-o", "json"), want)

		sendAll(t, p, bodies, true)
		p.mustFlush()
		if n := count(t, at, "*"); n != loghubRecords {
			t.Errorf("sent twice: %d records, want %d", n, loghubRecords)
		}

		// The identity of a record depends neither on the ingester nor on its period.
		q := start(t, at, t.TempDir(), "--lane", "7", "--period", "10m")
		sendAll(t, q, bodies, false)
		q.mustFlush()
		compareLoghub(t, query(t, at, "*", "-o", "json"), want)
		if n := count(t, at, "*"); n != loghubRecords {
			t.Errorf("sent to a second ingester: counted %d records, want %d", n, loghubRecords)
		}
		if n := p.metric("blobtail_blob_records_total") + q.metric("blobtail_blob_records_total"); n != 2*loghubRecords {
			t.Errorf("the ingesters stored %v records, want %d: each sent body once", n, 2*loghubRecords)
		}
	})
}

func sendAll(t testing.TB, p *ingester, bodies []body, duplicate bool) {
	t.Helper()
	accepted := 0
	for _, b := range bodies {
		a := p.mustPost(b.path, b.data)
		accepted += a.Accepted
		if a.Duplicate != duplicate {
			t.Fatalf("POST %s answers duplicate %v, want %v", b.path, a.Duplicate, duplicate)
		}
	}
	if accepted != loghubRecords {
		t.Fatalf("%d records accepted, want %d", accepted, loghubRecords)
	}
}
