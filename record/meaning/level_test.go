package meaning_test

import (
	"strconv"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
)

func TestParseLevel(t *testing.T) {
	for _, row := range []struct {
		level record.Level
		words string
	}{
		{record.Trace, "trace t trc trce trac verbose v vrb finest finer 10"},
		{record.Debug, "debug d dbg dbug debu fine config 7 20"},
		{record.Info, "info i inf information informational notice n note success log 5 6 30"},
		{record.Warn, "warn w wrn warning 4 40"},
		{record.Error, "error e err erro severe fail 3 50"},
		{record.Critical, "critical c crit fatal f ftl fata panic pani dpanic alert emerg emergency 0 1 2 60"},
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
	for _, word := range []string{"", " ", "8", "9", "-1", "35", "3.5", "3.", ".0", "+2", "-4", "W3", "http2", "INFO+", "1+1", "\x1b", "\x1b[", "\x1b[31m", "infos", "Ünfo", "informational!", " Audit ", "other", strings.Repeat("x", 99)} {
		if l := record.ParseLevel([]byte(word)); l != record.Other {
			t.Errorf("ParseLevel(%q) = %v", word, l)
		}
	}
}

// Loggers print a word with a step, with colours, in brackets, or a number with a fraction.
func TestParseOddLevel(t *testing.T) {
	for word, want := range map[string]record.Level{
		"INFO+2": record.Info, "ERROR+4": record.Error, "DEBUG-4": record.Debug, "WARN+10": record.Warn,
		"INFO2": record.Info, "Fatal4": record.Critical, "DEBUG5": record.Debug, "D2": record.Debug,
		"30.0": record.Info, "50.00": record.Error, "3.0": record.Error,
		"\x1b[31mERROR\x1b[0m": record.Error, "\x1b[1;38;5;9m warn \x1b[m": record.Warn, "\x1b[32minfo+1": record.Info,
		"[error]": record.Error, "warning:": record.Warn, "(W)": record.Warn,
	} {
		if l := record.ParseLevel([]byte(word)); l != want {
			t.Errorf("ParseLevel(%q) = %v; want %v", word, l, want)
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

// A number is a level on the scale of its name and of the names beside it.
func TestNumbersOfLevels(t *testing.T) {
	const trace, debug, info, warn = record.Trace, record.Debug, record.Info, record.Warn
	const fault, critical, other = record.Error, record.Critical, record.Other
	p := meaning.NewReader()
	for _, row := range []struct {
		form  string // with % for the number
		from  int
		words []record.Level // of the numbers from there on, by step
		step  int
	}{
		{`{"severity_number":%}`, 0, []record.Level{other, trace, trace, trace, trace, debug, debug, debug, debug, info}, 1},
		{`{"SeverityNumber":"%"}`, 16, []record.Level{warn, fault}, 1}, {`{"SeverityNumber":"%"}`, 20, []record.Level{fault, critical}, 1},
		{`{"SeverityNumber":"%"}`, 24, []record.Level{critical, other}, 1},
		{`{"levelno":%}`, 0, []record.Level{other, debug, info, warn, fault, critical}, 10},
		{`{"level_value":%}`, 0, []record.Level{other, debug, info, warn, fault, critical}, 10_000},
		{`{"SeverityLevel":%}`, 0, []record.Level{trace, info, warn, fault, critical, other}, 1},
		{`{"LogLevel":%,"Category":"Shop"}`, 0, []record.Level{trace, debug, info, warn, fault, critical, other}, 1},
		{`{"level":%,"channel":"System","event_id":{"id":7}}`, 0, []record.Level{info, critical, fault, warn, info, trace}, 1},
		{`{"Level":"%","Channel":"System","EventID":"7"}`, 0, []record.Level{info, critical, fault, warn, info, trace}, 1},
		{`{"reqId":"a","app":"files","level":%}`, 0, []record.Level{debug, info, warn, fault, critical}, 1},
		{`{"reqId":"a","app":"files","channel":"c","event_id":7,"level":%}`, 20, []record.Level{debug, info, warn}, 10}, // pino
		{`{"level":%,"channel":"app"}`, 0, []record.Level{critical, critical, critical, fault, warn, info, info, debug, fault, other}, 1},
		{`{"level":%}`, 10, []record.Level{trace, debug, info, warn, fault, critical, other}, 10},
		{`{"level":"%.0"}`, 10, []record.Level{trace, debug, info, warn, fault, critical, other}, 10},
		{`{"level":%}`, 100, []record.Level{debug, other, info, info, warn, other, fault, other, critical}, 50},
		{`{"level":%}`, 550, []record.Level{critical, critical, other}, 50},
		{`{"level":%}`, -8, []record.Level{trace, debug, critical, warn, fault, critical, other}, 4}, // 0 is of syslog
		{`{"severity":%}`, 100, []record.Level{debug, info, info, warn, fault, critical, critical, critical, other}, 100},
		{`{"severity":%}`, 8, []record.Level{other, info, trace, other, other, other, other}, 1},
		{`{"severity":%}`, 15, []record.Level{other, other, fault, other, other, debug, other, other}, 1},
		{`{"lvl":%}`, 100, []record.Level{other, other}, 100},
	} {
		for i, want := range row.words {
			src := strings.ReplaceAll(row.form, "%", strconv.Itoa(row.from+i*row.step))
			if _, err := p.Scan([]byte(src)); err != nil {
				t.Fatal(err)
			}
			line, s := p.AppendLine(nil, &meaning.Defaults{})
			if s.Level != want || record.LineLevel(line) != want || want == other && !strings.Contains(string(line), `"level":""`) {
				t.Errorf("%s: %v, want %v: %s", src, s.Level, want, line)
			}
		}
	}
}
