package names

import (
	"maps"
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
		Realtime:          "__realtime_timestamp",
		nameLastTimestamp: "lasttimestamp", nameOldLastTimestamp: "deprecatedlasttimestamp",
		TimestampSeconds: "timestampseconds", nameFirstTimestamp: "firsttimestamp", nameCreatedDateTime: "createddatetime",
		nameStartTime: "start_time", LevelObject: "level", nameSeverity: "severity", nameLogLevelNet: "loglevel",
		nameSeverityLevel: "severitylevel",
		nameEventLevel:    "eventlevel", nameType: "type", Event: "event", LogMessage: "logmessage",
		nameNote: "note", nameDescription: "description",
		Ts: "ts", AtT: "@t", Date: "date", LogLevel: "level_name", nameSeverityNum: "severity_number",
		nameSeverityNum2: "severitynumber", nameLevelNo: "levelno", nameLevelValue: "level_value", Priority: "priority", S: "s",
		Log: "log", AtM: "@m", AtMt: "@mt", Text: "text", ServiceObject: "service", ServiceName: "service.name", App: "app",
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if named(n) != rules[n] {
			t.Errorf("the rule of %s is that of %q", rules[n], named(n))
		}
	}
}

// named is the name with a number in the table.
func named(n Name) string { return knownNames[n/PerKind][n%PerKind] }

// The names of others beside which names count are those that their constants say, and each name with
// a condition is among the bits of its kind.
func TestTablesOfConditions(t *testing.T) {
	for key, n := range map[string]Name{
		"channel": nameChannel, "event_id": nameEventID, "eventid": nameEventID2, "reqid": nameReqID,
		"category": nameCategory, "response_code": nameResponseCode,
		"upstream_host": nameUpstreamHost, "involvedobject": nameInvolvedObject, "regarding": nameRegarding,
		"kind": Kind, "verb": nameVerb, "appdisplayname": nameAppDisplayName, "servicesource": nameServiceSource,
		"objectapiversion": nameObjectVersion, "timestampnanos": TimestampNanos, "info": parentInfo,
		"object": parentObject, "common_properties": parentCommon,
	} {
		if Lookup([]byte(key)) != n {
			t.Errorf("%s is %d, want %d", key, Lookup([]byte(key)), n)
		}
	}
	want := Set{}
	for _, c := range conditions {
		want[c.name/PerKind] |= 1 << (c.name % PerKind)
	}
	if want != conditional {
		t.Errorf("the names with conditions are %x, want %x", conditional, want)
	}
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
