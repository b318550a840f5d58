package names

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each name is recognised as the one at its place in the table, and the names with rules of their own
// are the ones that their constants say.
func TestTableOfNames(t *testing.T) {
	for kind, keys := range knownNames {
		if len(keys) > PerKind {
			t.Errorf("kind %d has %d names; there is room for %d", kind, len(keys), PerKind)
		}
		for place, key := range keys {
			if got := Lookup([]byte(strings.ToUpper(key))); got != Name(kind*PerKind+place) {
				t.Errorf("%s is %d, want %d", key, got, kind*PerKind+place)
			}
		}
	}
	rules := map[Name]string{
		Realtime: "__realtime_timestamp", TimestampSeconds: "timestampseconds", TimestampNanos: "timestampnanos",
		LevelObject: "level", Event: "event", LogMessage: "logmessage", Kind: "kind", Kubernetes: "kubernetes", Fields: "fields",
		Ts: "ts", AtT: "@t", Date: "date", Created: "created", LogLevel: "level_name", nameSeverityNum: "severity_number",
		Priority: "priority", S: "s", Msg: "msg", Log: "log", AtM: "@m", AtMt: "@mt", Text: "text", ServiceObject: "service",
		ServiceName: "service.name", App: "app",
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if named(n) != rules[n] {
			t.Errorf("the rule of %s is that of %q", rules[n], named(n))
		}
	}
}

// named is the name with a number in the table.
func named(n Name) string { return knownNames[n/PerKind][n%PerKind] }

// The nested names are members of the objects that their rows say, and a scale has its letter.
func TestTables(t *testing.T) {
	for _, n := range nestedNames {
		first, _, _ := strings.Cut(n.Path, ".")
		if Lookup([]byte(first)) != n.Parent {
			t.Errorf("%s is a member of another object", n.Path)
		}
	}
	others := []string{"channel", "event_id", "eventid", "reqid", "category", "app"}
	for _, key := range append(others, knownNames[kindLevel/PerKind][:Priority-kindLevel]...) {
		if scaleLetters>>(key[0]&31)&1 == 0 {
			t.Errorf("scaleLetters lacks the letter of %s", key)
		}
	}
	for i, s := range scales {
		for j := range i {
			before := scales[j]
			if !before.open || before.beside != nil || before.name != 0 && before.name != s.name {
				continue
			}
			for _, a := range s.spans {
				for _, b := range before.spans {
					if a.from <= b.to && b.from <= a.to {
						t.Errorf("%d of %s is one of %s", a.from, s.By, before.By)
					}
				}
			}
		}
	}
}

// Each key that a row of a table names is a name: else a scale would count under any.
func TestKeys(t *testing.T) {
	source, err := os.ReadFile("tables.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`\bkeys?\(("[^)]*)\)`).FindAllSubmatch(source, -1)
	if len(calls) < 60 {
		t.Fatalf("%d calls", len(calls))
	}
	for _, call := range calls {
		for text := range strings.SplitSeq(string(call[1]), ",") {
			if text = strings.Trim(text, ` "`); Lookup([]byte(text)) == 0 {
				t.Errorf("%s is no name", text)
			}
		}
	}
}
