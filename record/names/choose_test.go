package names_test

import (
	"testing"

	"blobtail/record/names"
)

// Of the pairs of a record the level and the service are chosen by their names, in any order.
func TestPairs(t *testing.T) {
	text := func(all ...string) (pairs []names.Pair) {
		for i := 0; i < len(all); i += 2 {
			pairs = append(pairs, names.Pair{Name: all[i], Value: []byte(all[i+1])})
		}
		return pairs
	}
	for _, row := range []struct {
		name           string
		of             names.Vocabulary
		pairs          []names.Pair
		level, service string
		spent          [2]int
	}{
		{"none", names.Common, text("host", "h", "status", "error", "name", "n"), "", "", [2]int{0, 0}},
		{"the first name", names.Common, text("severity", "warn", "level", "ERR"), "error", "", [2]int{2, 0}},
		{"a word before a number", names.Common, text("level", "30", "severity", "warn"), "warn", "", [2]int{2, 0}},
		{"a number", names.Common, text("level", "30"), "info", "", [2]int{1, 0}},
		{"a number beside others", names.Common, text("level", "2", "channel", "System", "event_id", "7"), "error", "", [2]int{1, 0}},
		{"a number on no scale", names.Common, text("level", "77"), "", "", [2]int{0, 0}},
		{"a word of the sender's own", names.Common, text("level", "audit"), "", "", [2]int{0, 0}},
		{"such a label", names.OfLoki, text("level", "audit", "severity", "info"), "info", "", [2]int{2, 0}},
		{"such a label alone", names.OfLoki, text("lvl", "b", "level", "audit"), "audit", "", [2]int{2, 0}},
		{"Loki's word for none", names.OfLoki, text("detected_level", "unknown"), "", "", [2]int{0, 0}},
		{"a priority", names.OfLoki, text("priority", "error"), "", "", [2]int{0, 0}},
		{"one of OTLP", names.OfOTLP, text("priority", "error"), "error", "", [2]int{0, 0}},
		{"a service", names.Common, text("app", "a", "service", "b", "level", "x"), "", "b", [2]int{0, 2}},
		{"a service that is empty", names.OfLoki, text("service_name", "", "app", "a"), "", "a", [2]int{0, 0}},
		{"labels", names.OfLoki, text("job", "j", "container_name", "c", "container", "d"), "", "d", [2]int{0, 0}},
		{"a label elsewhere", names.Common, text("job", "j"), "", "", [2]int{0, 0}},
		{"a host", names.OfGELF, text("host", "h", "facility", "f"), "", "f", [2]int{0, 0}},
	} {
		level, service := names.BestLevel(row.pairs, row.of), names.BestService(row.pairs, row.of)
		if string(level.Text) != row.level || string(service.Text) != row.service || [2]int{level.Spent, service.Spent} != row.spent {
			t.Errorf("%s: level %q, service %q, spent %d, %d", row.name, level.Text, service.Text, level.Spent, service.Spent)
		}
	}
}

// A member that is JSON counts by its text, and under its name behind the prefix.
func TestPairOfMember(t *testing.T) {
	for _, row := range []struct{ key, value, level string }{
		{`_level`, `"WARN"`, "warn"}, {`_lev\u0065l`, `40`, "warn"}, {`level`, `"warn"`, ""}, {`_level`, `["warn"]`, ""},
		{`_log`, `{"level":"warn"}`, "warn"},
	} {
		pair := names.MemberPair([]byte(row.key), []byte(row.value), "_")
		if c := names.BestLevel([]names.Pair{pair}, names.OfOTLP); string(c.Text) != row.level {
			t.Errorf("%s %s: %q", row.key, row.value, c.Text)
		}
	}
}
