package record_test

import (
	"testing"

	"blobtail/record"
)

// Of the pairs of a record the level and the service are chosen by their names, in any order.
func TestPairs(t *testing.T) {
	text := func(all ...string) (pairs []record.Pair) {
		for i := 0; i < len(all); i += 2 {
			pairs = append(pairs, record.Pair{Name: all[i], Value: []byte(all[i+1])})
		}
		return pairs
	}
	for _, row := range []struct {
		name           string
		of             record.Vocabulary
		pairs          []record.Pair
		level, service string
		spent          [2]int
	}{
		{"none", record.Common, text("host", "h", "status", "error", "name", "n"), "", "", [2]int{0, 0}},
		{"the first name", record.Common, text("severity", "warn", "level", "ERR"), "error", "", [2]int{2, 0}},
		{"a word before a number", record.Common, text("level", "30", "severity", "warn"), "warn", "", [2]int{2, 0}},
		{"a number", record.Common, text("level", "30"), "info", "", [2]int{1, 0}},
		{"a number beside others", record.Common, text("level", "2", "channel", "System", "event_id", "7"), "error", "", [2]int{1, 0}},
		{"a number on no scale", record.Common, text("level", "77"), "", "", [2]int{0, 0}},
		{"a word of the sender's own", record.Common, text("level", "audit"), "", "", [2]int{0, 0}},
		{"such a label", record.OfLoki, text("level", "audit", "severity", "info"), "info", "", [2]int{2, 0}},
		{"such a label alone", record.OfLoki, text("lvl", "b", "level", "audit"), "audit", "", [2]int{2, 0}},
		{"Loki's word for none", record.OfLoki, text("detected_level", "unknown"), "", "", [2]int{0, 0}},
		{"a priority", record.OfLoki, text("priority", "error"), "", "", [2]int{0, 0}},
		{"one of OTLP", record.OfOTLP, text("priority", "error"), "error", "", [2]int{0, 0}},
		{"a service", record.Common, text("app", "a", "service", "b", "level", "x"), "", "b", [2]int{0, 2}},
		{"a service that is empty", record.OfLoki, text("service_name", "", "app", "a"), "", "a", [2]int{0, 0}},
		{"labels", record.OfLoki, text("job", "j", "container_name", "c", "container", "d"), "", "d", [2]int{0, 0}},
		{"a label elsewhere", record.Common, text("job", "j"), "", "", [2]int{0, 0}},
		{"a host", record.OfGELF, text("host", "h", "facility", "f"), "", "f", [2]int{0, 0}},
	} {
		level, service := record.BestLevel(row.pairs, row.of), record.BestService(row.pairs, row.of)
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
		pair := record.MemberPair([]byte(row.key), []byte(row.value), "_")
		if c := record.BestLevel([]record.Pair{pair}, record.OfOTLP); string(c.Text) != row.level {
			t.Errorf("%s %s: %q", row.key, row.value, c.Text)
		}
	}
}
