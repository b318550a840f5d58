package record

import (
	"maps"
	"slices"
	"testing"
)

// The table of known names is the one by which keys are recognised: each name has the number of its
// place there, and the names with rules of their own are the ones that these numbers say.
func TestTableOfNames(t *testing.T) {
	known := KnownNames()
	longest := 0
	for kind, names := range map[name][]string{kindTime: known.Time, kindLevel: known.Level, kindMsg: known.Message, kindService: known.Service} {
		if len(names) > perKind {
			t.Errorf("kind %d has %d names; there is room for %d", kind, len(names), perKind)
		}
		for place, key := range names {
			if got := nameOf([]byte(key)); got != kind+name(place) {
				t.Errorf("%s is %d, want %d", key, got, kind+name(place))
			}
			longest = max(longest, len(key))
		}
		if n := kind + name(len(names)); len(names) < perKind && named(n) != "" {
			t.Errorf("%s is recognised, and is not in the table", named(n))
		}
	}
	if longest != longestName {
		t.Errorf("the longest name has %d bytes, and longestName is %d", longest, longestName)
	}
	rules := map[name]string{
		nameTs: "ts", nameAtT: "@t", nameDate: "date", nameRealtime: "__realtime_timestamp",
		nameLogLevel: "level_name", nameSeverityNum: "severity_number",
		nameSeverityNum2: "severitynumber", nameLevelNo: "levelno", nameLevelValue: "level_value", namePriority: "priority", nameS: "s",
		nameLog: "log", nameAtM: "@m", nameAtMt: "@mt", nameText: "text", nameService: "service", nameServiceName: "service.name", nameApp: "app",
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if named(n) != rules[n] {
			t.Errorf("the rule of %s is that of %q", rules[n], named(n))
		}
	}
}

// named is the name with a number in the table, "" for none.
func named(n name) string {
	known := KnownNames()
	names := map[name][]string{kindTime: known.Time, kindLevel: known.Level, kindMsg: known.Message, kindService: known.Service}[n/perKind*perKind]
	if place := int(n % perKind); place < len(names) {
		return names[place]
	}
	return ""
}
