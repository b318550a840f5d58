package logstest_test

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"html"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/logstest"
)

func classic(o logstest.Options) logstest.Logs {
	o.BlobLines = 1000
	return logstest.Classic(o)
}

// Equal options must give equal logs, and other seeds others.
func TestDeterministic(t *testing.T) {
	kinds := map[string]func(logstest.Options) logstest.Logs{
		"classic": classic, "resource": logstest.Resource,
		"flow log": func(o logstest.Options) logstest.Logs { return logstest.FlowLog(o, true) },
	}
	for name, compose := range kinds {
		o := logstest.Options{Seed: 7, Lines: 2500, Malformed: 10, Unfinished: true}
		a, b := compose(o), compose(o)
		if !reflect.DeepEqual(a.Blobs, b.Blobs) || !reflect.DeepEqual(a.Malformed, b.Malformed) || !slices.EqualFunc(a.Want, b.Want, equal) {
			t.Errorf("%s: equal options give two results", name)
		}
		o.Seed++
		if c := compose(o); bytes.Equal(a.Blobs[0].Body, c.Blobs[0].Body) {
			t.Errorf("%s: the seed changes nothing", name)
		}
	}
}

func equal(a, b logstest.Record) bool {
	return a.Place == b.Place && a.End == b.End && a.TS == b.TS && a.Level == b.Level && a.Msg == b.Msg && reflect.DeepEqual(a.Fields(), b.Fields())
}

// Each trap must occur in 5,000 lines, and none if its share is 0.
func TestTraps(t *testing.T) {
	both := []logstest.Trap{logstest.NonASCII, logstest.Tie, logstest.Signature, logstest.Design, logstest.Duplicate}
	tests := []struct {
		name    string
		compose func(logstest.Options) logstest.Logs
		traps   []logstest.Trap
	}{
		{"classic", classic, []logstest.Trap{
			logstest.Semicolon, logstest.Entity, logstest.NumericEntity, logstest.Twice, logstest.AddressEntity, logstest.Newline,
			logstest.Forged, logstest.OldETag, logstest.OddStatus, logstest.FarDuplicate, logstest.Batch, logstest.Early,
		}},
		{"resource", logstest.Resource, []logstest.Trap{
			logstest.Escapes, logstest.EscapedKey, logstest.Spaces, logstest.Order, logstest.CRLF, logstest.LevelWord, logstest.LevelNumber,
			logstest.StatusText, logstest.EncodedSignature, logstest.Plain, logstest.PlainRepeat, logstest.FarRepeat, logstest.SameID,
			logstest.Late, logstest.Untimed, logstest.Big,
		}},
	}
	for _, test := range tests {
		all := slices.Concat(both, test.traps)
		none := map[logstest.Trap]int{}
		logs := test.compose(logstest.Options{Seed: 1, Lines: 5000})
		for _, trap := range all {
			if logs.Traps[trap] == 0 {
				t.Errorf("%s: no line with the trap %q", test.name, trap)
			}
			none[trap] = 0
		}
		if len(logs.Traps) != len(all) {
			t.Errorf("%s: %d traps, tested for %d", test.name, len(logs.Traps), len(all))
		}
		for trap, n := range test.compose(logstest.Options{Seed: 1, Lines: 5000, Shares: none}).Traps {
			if n > 0 {
				t.Errorf("%s: %d lines with the trap %q, which is left out", test.name, n, trap)
			}
		}
	}
}

// Records, duplicates and malformed lines must add up, and be where they are said to be.
func TestCounts(t *testing.T) {
	for name, compose := range map[string]func(logstest.Options) logstest.Logs{"classic": classic, "resource": logstest.Resource} {
		logs := compose(logstest.Options{Seed: 3, Lines: 5000, Malformed: 10})
		if len(logs.Want)+logs.Dropped != 5000 || logs.Dropped == 0 {
			t.Errorf("%s: %d records and %d duplicates of 5000 lines", name, len(logs.Want), logs.Dropped)
		}
		if n := len(logs.Malformed); n < 25 || n > 100 {
			t.Errorf("%s: %d malformed lines", name, n)
		}
		if !slices.IsSortedFunc(logs.Want, func(a, b logstest.Record) int { return strings.Compare(a.TS, b.TS) }) {
			t.Errorf("%s: not sorted by time", name)
		}
		records := map[string]int{}
		starts := startsOf(logs.Blobs)
		for _, r := range logs.Want {
			at := starts[r.Key]
			ends := slices.Contains(at, r.End+len("\n")) || slices.Contains(at, r.End+len("\r\n"))
			if r.Line < 1 || r.Line >= len(at) || at[r.Line-1] >= r.End || !ends {
				t.Fatalf("%s: %s line %d ends at %d", name, r.Key, r.Line, r.End)
			}
			records[r.Key]++
		}
		for _, p := range logs.Malformed {
			for _, r := range logs.Want {
				if r.Place == p {
					t.Errorf("%s: %v is malformed and a record", name, p)
				}
			}
		}
		if len(records) != len(logs.Blobs) {
			t.Errorf("%s: records in %d of %d blobs", name, len(records), len(logs.Blobs))
		}
	}
}

// startsOf returns the offsets of all lines of the blobs, and the end.
func startsOf(blobs []logstest.Blob) map[string][]int {
	out := map[string][]int{}
	for _, b := range blobs {
		at := []int{0}
		for i, c := range b.Body {
			if c == '\n' {
				at = append(at, i+1)
			}
		}
		out[b.Key] = at
	}
	return out
}

// entries calls each with every record and its text in the blob.
func entries(logs logstest.Logs, each func(r logstest.Record, raw string)) {
	starts, bodies := startsOf(logs.Blobs), map[string][]byte{}
	for _, b := range logs.Blobs {
		bodies[b.Key] = b.Body
	}
	for _, r := range logs.Want {
		each(r, string(bodies[r.Key][starts[r.Key][r.Line-1]:r.End]))
	}
}

var (
	signature = regexp.MustCompile(`\bsig=[^& ]*`)
	encoded   = regexp.MustCompile(`(?i)(\bsig|26sig)(%3D).*?%26`)
	field     = regexp.MustCompile(`^(?:"("0x[^"]*")"|"([^"]*)"|((?:[^;&"\n]|&#?\w+;)*))([;\n])`)
)

func masked(s string) string {
	s = signature.ReplaceAllString(s, "sig=XXXXX")
	return encoded.ReplaceAllString(s, "${1}${2}XXXXX%26")
}

// A line of Storage Analytics must have the fields of its record.
func TestClassicFields(t *testing.T) {
	names := []string{0: "version-number", 1: "request-start-time", 12: "requested-object-key", 29: "client-request-id", 37: "authorization-detail"}
	entries(classic(logstest.Options{Seed: 5, Lines: 5000}), func(r logstest.Record, raw string) {
		want, n := r.Fields(), 0
		var values []string
		for rest := raw + "\n"; rest != ""; n++ {
			m := field.FindStringSubmatch(rest)
			if m == nil {
				t.Fatalf("no field at %q", rest)
			}
			values = append(values, masked(html.UnescapeString(m[1]+m[2]+m[3])))
			rest = rest[len(m[0]):]
		}
		if count := map[any]int{"1.0": 30, "2.0": 38}[want["version-number"]]; n != count || len(want) != count {
			t.Fatalf("%d fields, %d expected ones: %q", n, len(want), raw)
		}
		for i, name := range names {
			if name != "" && i < n && want[name] != values[i] {
				t.Fatalf("%s is %q, not %q: %q", name, values[i], want[name], raw)
			}
		}
		var texts []string
		for _, v := range want {
			if n, ok := v.(json.Number); ok {
				v = n.String()
			}
			texts = append(texts, v.(string))
		}
		slices.Sort(texts)
		slices.Sort(values)
		if !slices.Equal(texts, values) {
			t.Fatalf("fields %q, not %q", values, texts)
		}
	})
}

// A line of JSON must decode to the fields of its record.
func TestResourceFields(t *testing.T) {
	shown, untimed, hour := 0, 0, time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	entries(logstest.Resource(logstest.Options{Seed: 5, Lines: 5000, Hour: hour}), func(r logstest.Record, raw string) {
		got := decode(t, raw)
		text, _ := got["time"].(string)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil { // one without a time
			at, untimed = hour, untimed+1
		} else {
			delete(got, "time")
		}
		if at.UTC().Format("2006-01-02T15:04:05.000000000Z") != r.TS {
			t.Fatalf("time %v, not %s", got["time"], r.TS)
		}
		delete(got, "level")
		if want := r.Fields(); !reflect.DeepEqual(mask(got), any(want)) {
			t.Fatalf("%s\n%v, not\n%v", raw, mask(got), want)
		}
		shown += strings.Count(raw, "XXXXX")
	})
	if shown == 0 || untimed == 0 {
		t.Errorf("%d masked signatures, %d records without a time", shown, untimed)
	}
}

func decode(t *testing.T, raw string) (out map[string]any) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return out
}

// mask masks the signatures in all texts.
func mask(v any) any {
	switch v := v.(type) {
	case string:
		return masked(v)
	case map[string]any:
		for k, e := range v {
			v[k] = mask(e)
		}
	case []any:
		for i, e := range v {
			v[i] = mask(e)
		}
	}
	return v
}

// Each malformed line of resource logs must be no object. A blob ends in a whole one without a
// newline, and the others in a part of one.
func TestMalformed(t *testing.T) {
	logs := logstest.Resource(logstest.Options{Seed: 5, Lines: 5000, Malformed: 30, Unfinished: true})
	starts := startsOf(logs.Blobs)
	for _, b := range logs.Blobs {
		at := starts[b.Key]
		if rest := b.Body[at[len(at)-1]:]; len(rest) == 0 {
			t.Errorf("%s is finished", b.Key)
		} else if cut := slices.Contains(logs.Cut, logstest.Place{Key: b.Key, Line: len(at)}); json.Valid(rest) == cut {
			t.Errorf("cut %v: %s", cut, rest)
		}
		for _, p := range logs.Malformed {
			if p.Key != b.Key {
				continue
			}
			var o map[string]any
			if raw := b.Body[at[p.Line-1]:at[p.Line]]; json.Unmarshal(raw, &o) == nil && o != nil {
				t.Errorf("%v is well-formed: %s", p, raw)
			}
		}
	}
}

// A flow log must be one object with the expected records.
func TestFlowLog(t *testing.T) {
	for _, spread := range []bool{false, true} {
		logs := logstest.FlowLog(logstest.Options{Seed: 2, Lines: 200}, spread)
		var all struct{ Records []map[string]any }
		d := json.NewDecoder(bytes.NewReader(logs.Blobs[0].Body))
		d.UseNumber()
		if err := d.Decode(&all); err != nil || len(all.Records) != 200 || len(logs.Want) != 200 {
			t.Fatalf("%d records, %d expected: %v", len(all.Records), len(logs.Want), err)
		}
		lines := bytes.Split(logs.Blobs[0].Body, []byte("\n"))
		for i, r := range logs.Want {
			delete(all.Records[i], "time")
			if !reflect.DeepEqual(all.Records[i], r.Fields()) {
				t.Errorf("record %d is %v, not %v", i, all.Records[i], r.Fields())
			}
			if !bytes.Contains(lines[r.Line-1], []byte("{")) || !spread && r.Line > 1 || spread && r.Line == 1 && i > 0 {
				t.Errorf("record %d is not on line %d", i, r.Line)
			}
		}
	}
}

// Blobs must have the names that Azure gives them.
func TestNames(t *testing.T) {
	const hour = `/y=2026/m=11/d=22/h=03/m=00/`
	for pattern, logs := range map[string]logstest.Logs{
		`^\$logs blob/2026/11/22/0300/00000\d\.log$`: classic(logstest.Options{Lines: 3000}),
		`^insights-logs-storageread resourceId=/SUBSCRIPTIONS/[-0-9A-F]+/RESOURCEGROUPS/LOGS/PROVIDERS/MICROSOFT.STORAGE` +
			`/STORAGEACCOUNTS/LOGSAMPLES0\d/BLOBSERVICES/DEFAULT` + hour + `PT1H\.json$`: logstest.Resource(logstest.Options{Lines: 30}),
		`^insights-logs-networksecuritygroupflowevent resourceId=/SUBSCRIPTIONS/[-0-9A-F]+/RESOURCEGROUPS/LOGS/PROVIDERS/MICROSOFT.NETWORK` +
			`/NETWORKSECURITYGROUPS/GROUP` + hour + `macAddress=[0-9A-F]{12}/PT1H\.json$`: logstest.FlowLog(logstest.Options{Lines: 3}, false),
	} {
		for _, b := range logs.Blobs {
			if name := b.Container + " " + b.Key; !regexp.MustCompile(pattern).MatchString(name) {
				t.Errorf("name %s", name)
			}
		}
	}
}

// Write must put each blob into the directory of its container.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	logs := classic(logstest.Options{Seed: 2, Lines: 1500})
	if err := logstest.Write(dir, logs.Blobs); err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"blob/2026/11/22/0300/000000.log", "blob/2026/11/22/0300/000001.log"} {
		body, err := os.ReadFile(filepath.Join(dir, "$logs", filepath.FromSlash(key)))
		if err != nil || crc32.ChecksumIEEE(body) != crc32.ChecksumIEEE(logs.Blobs[i].Body) {
			t.Errorf("%s: %d bytes, %v", key, len(body), err)
		}
	}
}

func BenchmarkClassic(b *testing.B) {
	for b.Loop() {
		logstest.Classic(logstest.Options{Lines: 10_000})
	}
}

func BenchmarkResource(b *testing.B) {
	for b.Loop() {
		logstest.Resource(logstest.Options{Lines: 10_000})
	}
}
