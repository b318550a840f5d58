package text

import (
	"strings"
	"testing"
)

// Each form of a prefix has its example, and no form before it takes the example.
func TestPrefixes(t *testing.T) {
	for key, rows := range prefixes {
		for i := range rows {
			p, line := &rows[i], rows[i].line
			n := SkipPrefix([]byte(line), 0)
			if f, _, _ := prefixes.find([]byte(line)); n == 0 || f != p || int(kindOf([]byte(line))) != key && int(line[0]) != key {
				t.Errorf("%q: the prefix has %d bytes, and is not of the form %q", line, n, p.signs)
			}
			if rest := line[n:]; !strings.HasSuffix(rest, "text") || len(rest) > 4 && !strings.Contains(rest[:8], "20") && rest[0] != '[' {
				t.Errorf("%q: behind the prefix is %q", line, rest)
			}
			coloured := "\x1b[36m" + line[:n] + "\x1b[0m" + line[n:]
			if got := SkipPrefix([]byte(coloured), 0); coloured[got:] != line[n:] {
				t.Errorf("%q: behind the prefix is %q", coloured, coloured[got:])
			}
		}
	}
	for _, line := range []string{
		"", "x", "|", "a|b", "17 | 2019-05-05 10:00:00 | ann", "ERROR | disk", "info  | up",
		"2026-11-20 10:00:06 | W | slow", " id | name", "| id | name |", "the state-of-the-art design is new",
		"[main] INFO up", "[pod] up", "[rank] up", "10:00:06 ERROR no", "10:00:06 a b | c", "1/2 | half", "0|",
		"0|1", "web-7d4b9c6f5d-x2x9z: text", "(see pid=a) x", "RP is new", "sshd[812]: text", "\x1b[36m",
		"state-of-the-artist text", "https is safe", "L is large", "tls 1.2 is old", "## x", "ws error: no",
		"web-7d4b9c6f5d-x2x9zz web text", "order 17 is stored",
	} {
		if n := SkipPrefix([]byte(line), 0); n != 0 {
			t.Errorf("%q has a prefix of %d bytes", line, n)
		}
	}
}
