package record

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The table of known names is the one by which keys are recognised: each name has the number of its
// place there, and the names with rules of their own are the ones that these numbers say.
func TestTableOfNames(t *testing.T) {
	known := allNames()
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
		nameRealtime:      "__realtime_timestamp",
		nameLastTimestamp: "lasttimestamp", nameOldLastTimestamp: "deprecatedlasttimestamp",
		nameTimestampSeconds: "timestampseconds", nameFirstTimestamp: "firsttimestamp", nameCreatedDateTime: "createddatetime",
		nameStartTime: "start_time", nameLevel: "level", nameSeverity: "severity", nameLogLevelNet: "loglevel",
		nameSeverityLevel: "severitylevel",
		nameEventLevel:    "eventlevel", nameType: "type", nameEvent: "event", nameNote: "note", nameDescription: "description",
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

// named is the name with a number in the table, "" for none.
func named(n name) string {
	known := allNames()
	names := map[name][]string{kindTime: known.Time, kindLevel: known.Level, kindMsg: known.Message, kindService: known.Service}[n/perKind*perKind]
	if place := int(n % perKind); place < len(names) {
		return names[place]
	}
	return ""
}

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
		if nameOf([]byte(key)) != n {
			t.Errorf("%s is %d, want %d", key, nameOf([]byte(key)), n)
		}
	}
	want := [numKinds]uint64{}
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
	}
	for _, key := range append(allNames().Level[:namePriority-kindLevel], "channel", "event_id", "eventid", "reqid", "category", "app") {
		if scaleLetters>>(key[0]&31)&1 == 0 {
			t.Errorf("scaleLetters lacks the letter of %s", key)
		}
	}
	for i, s := range scales {
		for j := range i {
			before := scales[j]
			if !before.open || before.name != 0 && before.name != s.name {
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
