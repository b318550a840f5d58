package where_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/internal/where"
	"blobtail/record"
)

// words are the levels in rising order, and words that are no level.
var words = []string{"trace", "debug", "info", "warn", "error", "critical", "audit", ""}

func ofLevel(word string) []byte {
	return fmt.Appendf(nil, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"%s","service":"web","msg":"m","floor":"warning","log":{"level":"zzz"},"ok":true,"sub":{"level":"debug"}}`+"\n", word)
}

// matching are the words of the records that an expression matches. Match and Select agree.
func matching(t *testing.T, text string) string {
	t.Helper()
	e, err := where.Parse(nil, text, false)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return ""
	}
	var all []string
	for _, word := range words {
		line := ofLevel(word)
		match := e.Match(line)
		if match {
			all = append(all, word)
		}
		if e.Select(line) != match || e.MaySelect(line) != match {
			t.Errorf("%s: Select and Match do not agree on %q", text, word)
		}
	}
	return strings.Join(all, " ")
}

// Levels are compared by their order, beside any other parts of the expression. A record with
// another word, or none, is neither above nor below.
func TestLevelOrder(t *testing.T) {
	const high, low = "warn error critical", "trace debug info"
	for text, want := range map[string]string{
		`level >= "warn"`: high, `level > "warn"`: "error critical", `level < "warn"`: low, `level <= "warn"`: low + " warn",
		`"warn" <= level`: high, `"warn" < level`: "error critical", `"warn" > level`: low, `"warn" >= level`: low + " warn",
		`level >= "WARNING"`: high, `level >= " Warn "`: high, `level >= "fatal"`: "critical", `level > "notice"`: high, `level <= "verbose"`: "trace",
		`level >= "trace"`: low + " " + high, `level <= "critical"`: low + " " + high,
		`not (level >= "warn")`: low, `!(level < "warn")`: high, `not (level > "error") and level != ""`: low + " warn error",
		`level >= "info" and level < "error"`: "info warn", `level < "debug" or level > "error"`: "trace critical", `"debug" < level and level <= "warn"`: "info warn",
		`level >= "error" or level == "audit"`: "error critical audit", `not (level >= "error" or level == "audit")`: low + " warn",
		`level >= "error" or floor == "x"`: "error critical", `level >= "error" and floor == "x"`: "",
		`$env.level >= "warn"`: high, `$env["level"] >= "warn"`: high, `get($env, "level") >= "warn"`: high, `$env?.level >= "warn"`: high,
		`lower(level) >= "warn"`: high, `upper(level) < "warn"`: low, `(level ?? "info") >= "warn"`: high, `(ok ? level : "info") >= "warn"`: high,
		`let l = level; l >= "warn"`: high, `let a = level; let b = a; b >= "warn"`: high, `let level = floor; level >= "warn"`: strings.TrimSpace(strings.Join(words, " ")) + " ",
		`level >= floor`: high, `floor < level`: "error critical", `let m = "err"; level >= m`: "error critical",
		`any([1], level >= "warn")`: high, `level >= "warn" ? true : false`: high, `(level >= "warn") == true`: high, `(level >= "warn") == false`: low,
		`sub.level >= "critical"`: strings.Join(words, " "), `log.level > "warn"`: strings.Join(words, " "), // texts
		`level >= "error" and sub.level == "debug"`: "error critical",
	} {
		if got := matching(t, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Each word that a level has counts as that level; others are texts.
func TestLevelWords(t *testing.T) {
	for text, want := range map[string]string{
		`level == "warning"`: "warn", `level == "ERROR"`: "error", `"Fatal" == level`: "critical", `level == "3"`: "error", `level == "audit"`: "audit", `level == ""`: "",
		`level != "warning" and level != "audit" and level != ""`: "trace debug info error critical",
		`level in ["warning", "ERR", "audit"]`:                    "warn error audit",
		`level not in ["TRACE", "debug", "information", ""]`:      "warn error critical audit",
		`lower(level) == "warning"`:                               "warn", `upper(level) == "WARNING"`: "warn", `let l = level; l == "emerg"`: "critical",
		`sub.level == "dbg"`: "", `sub.level == "debug" and level == "err"`: "error",
		`floor == "warning" and level == "warning"`: "warn", `level startsWith "err"`: "error", `level matches "^(warn|error)$"`: "warn error",
	} {
		if got := matching(t, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A word that has no place in the order is a mistake of the expression.
func TestLevelMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`level >= "wran"`:                   `column 10: "wran" is no word of a level; from low to high they are trace, debug, info, warn, error, critical: write level >= "warn"`,
		`"high" < level`:                    `write level < "warn"`,
		`level > ""`:                        `is no word of a level`,
		`level > "other"`:                   `is no word of a level`,
		`level >= 40`:                       `column 10: 40 is no word of a level`,
		`level <= "4"`:                      `write level <= "warn"`,
		`level <= "3"`:                      `write level <= "error"`,
		`level > nil`:                       `is no word of a level`,
		`ok and not (lower(level) >= "hi")`: `is no word of a level`,
		`let l = level; l < "big"`:          `is no word of a level`,
		`any([1], $env.level < "big")`:      `is no word of a level`,
	} {
		if _, err := where.Parse(nil, text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	e, err := where.Parse(nil, `level > "error"`, false)
	if err != nil || e.Match(ofLevel("audit")) {
		t.Fatalf("a word that is no level: %v", err)
	}
	if notes := strings.Join(e.Notes(nil), " "); !strings.Contains(notes, "have an order") {
		t.Errorf("the notes are %s", notes)
	}
}

// The order of the expressions is that of the levels.
func TestLevelOrderOfRecord(t *testing.T) {
	for a := range record.Other {
		for b := range record.Other {
			e, err := where.Parse(nil, fmt.Sprintf(`level < %q`, b), false)
			if err != nil || e.Match(ofLevel(a.String())) != (a < b) {
				t.Errorf("%v < %v: %v", a, b, err)
			}
		}
	}
}
