package where_test

import (
	"testing"

	"blobtail/internal/where"
)

// has looks for a text or an expression in the texts of a record, and is joined with conditions.
func TestHas(t *testing.T) {
	const line = `{"ts":"2026-11-20T15:00:00Z","level":"error","service":"web","msg":"GET /api timed out: a (1)","status":502,"user":"Ann"}`
	for _, c := range []struct {
		text string
		fold bool
		want bool
	}{
		{`has("timed out")`, false, true},
		{`has("Timed")`, false, false},
		{`has("Timed")`, true, true},
		{`has("status=502")`, false, true},
		{`has(/time[sd] out/)`, false, true},
		{`has( /api.timed/ ) and status == 502`, false, true},
		{`has(/GET \/api/)`, false, true},
		{`has(/TIMED/)`, false, false},
		{`has(/(?i)TIMED/)`, false, true},
		{`has(/\((\d)\)/)`, false, true},
		{`not has("Ann")`, false, false},
		{`has("nowhere") or status >= 500`, false, true},
		{`has("nowhere") or none > 1`, false, false},
		{`not (has("nowhere") or has("no"))`, false, true},
		{`msg contains "has(/a/)" or has("Ann")`, false, true},
	} {
		e, err := where.Parse(nil, c.text, c.fold)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for range 2 { // with a run that is used again
			if got := e.Match([]byte(line)); got != c.want {
				t.Errorf("%s: %t", c.text, got)
			}
		}
	}
	for text, want := range map[string]string{
		`any([1], has("a"))`:           "column 1: has(...) stands alone, or beside and, or, not",
		`has("")`:                      `column 1: has looks for a text or an expression: has("two words"), has(/re/)`,
		`status > 1 and has(1)`:        `column 16: has looks for a text or an expression: has("two words"), has(/re/)`,
		`has(/(/)`:                     "column 1: error parsing regexp: missing closing ): `(`",
		`has(status)`:                  `column 1: has looks for a text or an expression: has("two words"), has(/re/); for a field of a record: status != nil`,
		`(has("a") ? 1 : 2) == status`: "column 1: has(...) stands alone, or beside and, or, not",
	} {
		if _, err := where.Parse(nil, text, false); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
