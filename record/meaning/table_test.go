package meaning

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
		if len(keys) > perKind {
			t.Errorf("kind %d has %d names; there is room for %d", kind, len(keys), perKind)
		}
		for place, key := range keys {
			if got := lookupName([]byte(strings.ToUpper(key))); got != name(kind*perKind+place) {
				t.Errorf("%s is %d, want %d", key, got, kind*perKind+place)
			}
		}
	}
	rules := map[name]string{
		nameRealtime:      "__realtime_timestamp",
		nameLastTimestamp: "lasttimestamp", nameOldLastTimestamp: "deprecatedlasttimestamp",
		nameTimestampSeconds: "timestampseconds", nameFirstTimestamp: "firsttimestamp", nameCreatedDateTime: "createddatetime",
		nameStartTime: "start_time", nameLevel: "level", nameSeverity: "severity", nameLogLevelNet: "loglevel",
		nameSeverityLevel: "severitylevel",
		nameEventLevel:    "eventlevel", nameType: "type", nameEvent: "event", nameLogMessage: "logmessage",
		nameNote: "note", nameDescription: "description",
		nameTs: "ts", nameAtT: "@t", nameDate: "date", nameLogLevel: "level_name", nameSeverityNum: "severity_number",
		nameSeverityNum2: "severitynumber", nameLevelNo: "levelno", nameLevelValue: "level_value", namePriority: "priority", nameS: "s",
		nameLog: "log", nameAtM: "@m", nameAtMt: "@mt", nameText: "text", nameService: "service", nameServiceName: "service.name", nameApp: "app",
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if named(n) != rules[n] {
			t.Errorf("the rule of %s is that of %q", rules[n], named(n))
		}
	}
}

// named is the name with a number in the table.
func named(n name) string { return knownNames[n/perKind][n%perKind] }

// The names of others beside which names count are those that their constants say, and each name with
// a condition is among the bits of its kind.
func TestTablesOfConditions(t *testing.T) {
	for key, n := range map[string]name{
		"channel": nameChannel, "event_id": nameEventID, "eventid": nameEventID2, "reqid": nameReqID,
		"category": nameCategory, "response_code": nameResponseCode,
		"upstream_host": nameUpstreamHost, "involvedobject": nameInvolvedObject, "regarding": nameRegarding,
		"kind": nameKind, "verb": nameVerb, "appdisplayname": nameAppDisplayName, "servicesource": nameServiceSource,
		"objectapiversion": nameObjectVersion, "timestampnanos": nameTimestampNanos, "info": parentInfo,
		"object": parentObject, "common_properties": parentCommon,
	} {
		if lookupName([]byte(key)) != n {
			t.Errorf("%s is %d, want %d", key, lookupName([]byte(key)), n)
		}
	}
	want := present{}
	for _, c := range conditions {
		want[c.name/perKind] |= 1 << (c.name % perKind)
	}
	if want != conditional {
		t.Errorf("the names with conditions are %x, want %x", conditional, want)
	}
	for _, n := range nestedNames {
		first, _, _ := strings.Cut(n.path, ".")
		if lookupName([]byte(first)) != n.parent {
			t.Errorf("%s is a member of another object", n.path)
		}
		p := NewReader()
		src := `"x"`
		for path := strings.Split(n.path, "."); len(path) > 0; path = path[:len(path)-1] {
			src = `{"` + path[len(path)-1] + `":` + src + `}`
		}
		if _, err := p.Scan([]byte(src)); err != nil || !hasParent(p) || string(p.path(n.parent, n.path)) != `"x"` {
			t.Errorf("%s is not found in %s", n.path, src)
		}
	}
	for _, key := range append(slices.Clone(knownNames[kindLevel/perKind][:namePriority-kindLevel]), "channel", "event_id", "eventid", "reqid", "category", "app") {
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
						t.Errorf("%d of %s is one of %s", a.from, s.by, before.by)
					}
				}
			}
		}
	}
}
