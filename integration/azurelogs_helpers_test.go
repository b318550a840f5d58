package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/logstest"
	"blobtail/internal/dev/testkit"
)

// azureKind is a kind of Azure's own logs, with the service that a reader asks for.
type azureKind struct {
	name, service string
	compose       func(logstest.Options) logstest.Logs
}

func azureKinds() []azureKind {
	return []azureKind{
		{"classic", "logsamples.blob", logstest.Classic},
		{"resource", "storageread", logstest.Resource},
	}
}

// pastHour is an hour of the day before, as the commands reckon times from now.
func pastHour() time.Time { return time.Now().UTC().Truncate(time.Hour).Add(-26 * time.Hour) }

// growingHour is the hour before this one: Azure may still write its blobs.
func growingHour() time.Time { return time.Now().UTC().Truncate(time.Hour).Add(-time.Hour) }

// azureDir returns a place with a copy of the blobs, and its directory.
func azureDir(t testing.TB, blobs []logstest.Blob) (place, string) {
	t.Helper()
	root := t.TempDir()
	if err := logstest.Write(root, blobs); err != nil {
		t.Fatal(err)
	}
	return place{store: "azurelogs:dir:" + root}, root
}

// readTo runs a read that must exit with a code, and returns its output and its notes.
// The output may be large, so it is in a file.
func readTo(t testing.TB, at place, code int, args ...string) (out *os.File, stderr string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	got := 0
	testkit.Until(t, "logquery has its answers in time", func() bool {
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		stderr, got = logqueryTo(t, out, at, args...)
		return !tooSlow(stderr, got)
	})
	if got != code {
		t.Fatalf("logquery %s exits %d, want %d: %.2000s", strings.Join(args, " "), got, code, stderr)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return out, stderr
}

// members are all members of a record's line.
func members(service string, r logstest.Record) map[string]any {
	all := r.Fields()
	all["ts"], all["level"], all["service"], all["msg"] = r.TS, r.Level, service, r.Msg
	return all
}

// compareRecords compares lines with the expected records one by one. Records of one time
// must have the order of their blob, and of the blobs of a classic hour. Blobs of several
// resources have no order among each other.
func compareRecords(t testing.TB, out io.Reader, service string, want []logstest.Record) {
	t.Helper()
	lines := bufio.NewReaderSize(out, 1<<20)
	for n := 0; n < len(want); {
		group := sameTime(want[n:])
		left := [][]logstest.Record{} // of this time, by blob
		for _, r := range group {
			at := slices.IndexFunc(left, func(q []logstest.Record) bool { return ordered(q[0].Key, r.Key) })
			if at < 0 {
				at, left = len(left), append(left, nil)
			}
			left[at] = append(left[at], r)
		}
		got := make([]map[string]any, len(group))
		for i := range group {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%d records, want %d; the next is %s line %d: %v", n+i, len(want), group[i].Key, group[i].Line, err)
			}
			got[i] = decodeLine(t, line)
			checkHead(t, line, got[i])
		}
		if matched, best := matchQueues(got, service, left); !matched {
			r := best.left[0][0]
			t.Fatalf("record %d (%s line %d): %s", n+len(got)-len(best.got), r.Key, r.Line, differences(best.got[0], members(service, r)))
		}
		n += len(group)
	}
	if rest, err := lines.ReadBytes('\n'); err != io.EOF {
		t.Fatalf("more than %d records: %.2000s", len(want), rest)
	}
}

// sameTime are the first records with the time of the first one.
func sameTime(all []logstest.Record) []logstest.Record {
	n := slices.IndexFunc(all, func(r logstest.Record) bool { return r.TS != all[0].TS })
	if n < 0 {
		return all
	}
	return all[:n]
}

// ordered reports whether the records of two blobs with one time have an order.
func ordered(a, b string) bool { return a == b || !strings.HasPrefix(a, "resourceId=") }

// checkHead checks that the members of each record come first that a canonical line has
// first.
func checkHead(t testing.TB, line []byte, got map[string]any) {
	t.Helper()
	if head := fmt.Sprintf(`{"ts":"%s","level":"%s","service":"%s","msg":"`, got["ts"], got["level"], got["service"]); !strings.HasPrefix(string(line), head) {
		t.Fatalf("%.300s does not begin with %s", line, head)
	}
}

// matching is a state of matchQueues: records that were read, and expected ones by blob.
type matching struct {
	got  []map[string]any
	left [][]logstest.Record
}

// matchQueues reports whether records are the expected ones of each blob in turn. Blobs
// may have equal records, so it tries each. If none matches, it returns the farthest state.
func matchQueues(got []map[string]any, service string, left [][]logstest.Record) (ok bool, best matching) {
	if len(got) == 0 {
		return true, best
	}
	best = matching{got, left}
	for i, q := range left {
		if !reflect.DeepEqual(got[0], members(service, q[0])) {
			continue
		}
		rest := slices.Clone(left)
		if rest[i] = q[1:]; len(q) == 1 {
			rest = slices.Delete(rest, i, i+1)
		}
		ok, farthest := matchQueues(got[1:], service, rest)
		if ok {
			return true, best
		}
		if len(farthest.got) < len(best.got) {
			best = farthest
		}
	}
	return false, best
}

// newest are the newest records: n, or a few more if the n-th has the time of the one
// before it.
func newest(all []logstest.Record, n int) []logstest.Record {
	for all[len(all)-n].TS == all[len(all)-n-1].TS {
		n++
	}
	return all[len(all)-n:]
}

func decodeLine(t testing.TB, line []byte) (all map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%v: %.2000s", err, line)
	}
	return all
}

// differences tells the members that differ.
func differences(got, want map[string]any) string {
	var b strings.Builder
	for k, v := range want {
		if g, ok := got[k]; !ok {
			fmt.Fprintf(&b, "%s is missing; ", k)
		} else if !reflect.DeepEqual(g, v) {
			fmt.Fprintf(&b, "%s is %q, want %q; ", k, g, v)
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			fmt.Fprintf(&b, "%s is %q, which nobody wrote; ", k, v)
		}
	}
	return b.String()
}

// compareSet is compareRecords for a store that orders records of one time its own way.
func compareSet(t testing.TB, out io.Reader, service string, want []logstest.Record) {
	t.Helper()
	left := map[string]int{}
	for _, r := range want {
		left[canonicalText(t, members(service, r))]++
	}
	last, n := "", 0
	for lines := bufio.NewReaderSize(out, 1<<20); ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		all := decodeLine(t, line)
		text := canonicalText(t, all)
		if left[text]--; left[text] < 0 {
			t.Fatalf("not expected, or twice: %.2000s", line)
		}
		if ts := fmt.Sprint(all["ts"]); ts < last {
			t.Fatalf("%s follows %s", ts, last)
		} else {
			last = ts
		}
	}
	if n != len(want) {
		for text, count := range left {
			if count > 0 {
				t.Fatalf("%d records, want %d; missing is %.2000s", n, len(want), text)
			}
		}
	}
}

func canonicalText(t testing.TB, all map[string]any) string {
	t.Helper()
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// selected are the records for which a condition is true.
func selected(all []logstest.Record, choose func(logstest.Record) bool) (out []logstest.Record) {
	for _, r := range all {
		if choose(r) {
			out = append(out, r)
		}
	}
	return out
}

// between selects by time: from included, to not.
func between(all []logstest.Record, from, to time.Time) []logstest.Record {
	const form = "2006-01-02T15:04:05.000000000Z"
	return selected(all, func(r logstest.Record) bool { return r.TS >= from.Format(form) && r.TS < to.Format(form) })
}

// written selects the records with their whole text in blobs of these lengths.
func written(all []logstest.Record, lengths map[string]int) []logstest.Record {
	return selected(all, func(r logstest.Record) bool { return r.End <= lengths[r.Key] })
}

// having selects by a plain text in the message or a field.
func having(all []logstest.Record, text string) []logstest.Record {
	return selected(all, func(r logstest.Record) bool {
		return strings.Contains(r.Msg, text) || holds(r.Fields(), text)
	})
}

// holds reports whether a text is in a value.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case map[string]any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holds(e, text) })
	}
	return false
}

// named checks that notes name each malformed line by blob and line, or count the rest.
func named(t testing.TB, stderr string, malformed []logstest.Place) {
	t.Helper()
	var missing []logstest.Place
	for _, p := range malformed {
		key, line := regexp.QuoteMeta(p.Key), strconv.Itoa(p.Line)
		number := regexp.MustCompile(key + `[^0-9\n]{1,12}` + line + `\b|line ` + line + ` of \S*` + key)
		if !number.MatchString(stderr) {
			missing = append(missing, p)
		}
	}
	counted := 0
	for _, m := range regexp.MustCompile(`and (\d[\d,]*) more`).FindAllStringSubmatch(stderr, -1) {
		n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		counted += n
	}
	if len(missing) != counted || len(missing) == len(malformed) {
		t.Errorf("%d of %d malformed lines are not named, %d are counted; the first is %v:\n%.1500s",
			len(missing), len(malformed), counted, slices.Concat(missing, malformed)[0], stderr)
	}
}
