package record_test

import (
	"strings"
	"testing"

	"blobtail/record"
)

func TestParseLevel(t *testing.T) {
	for _, row := range []struct {
		level record.Level
		words string
	}{
		{record.Trace, "trace t trc trce verbose v vrb finest finer 10"},
		{record.Debug, "debug d dbg dbug fine config 7 20"},
		{record.Info, "info i inf information informational notice n 5 6 30"},
		{record.Warn, "warn w wrn warning 4 40"},
		{record.Error, "error e err severe fail 3 50"},
		{record.Critical, "critical c crit fatal f ftl panic dpanic alert emerg emergency 0 1 2 60"},
	} {
		for _, word := range strings.Fields(row.words) {
			for _, form := range []string{word, strings.ToUpper(word), " " + word + "\t", strings.ToUpper(word[:1]) + word[1:]} {
				if l := record.ParseLevel([]byte(form)); l != row.level {
					t.Errorf("ParseLevel(%q) = %v; want %v", form, l, row.level)
				}
			}
		}
		if got := record.LevelOf([]byte(row.level.String())); got != row.level {
			t.Errorf("LevelOf(%q) = %v", row.level, got)
		}
	}
	for _, word := range []string{"", " ", "8", "9", "-1", "35", "3.0", "infos", "Ünfo", "informational!", " Audit ", "other", strings.Repeat("x", 99)} {
		if l := record.ParseLevel([]byte(word)); l != record.Other {
			t.Errorf("ParseLevel(%q) = %v", word, l)
		}
	}
}

// Only words of canonical lines count here: aliases and other cases are Other.
func TestLevelOf(t *testing.T) {
	for _, word := range []string{"", "Info", "warning", "other", "critical ", "err"} {
		if l := record.LevelOf([]byte(word)); l != record.Other {
			t.Errorf("LevelOf(%q) = %v", word, l)
		}
	}
	if record.Level(200).String() != "other" || int(record.Other)+1 != record.NumLevels {
		t.Error("levels do not end with Other")
	}
}
