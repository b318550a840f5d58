package body

import (
	"bytes"
	"strings"
	"testing"
)

// Each form of a prefix has its example, and no form before it takes the example.
func TestPrefixes(t *testing.T) {
	for _, p := range prefixes {
		n := skipPrefix([]byte(p.line), 0)
		if own, _, _ := fit(p.form, []byte(p.line)); n == 0 || n != own {
			t.Errorf("%q: the prefix has %d bytes, that of its form %q %d", p.line, n, p.form, own)
		}
		if rest := p.line[n:]; !strings.HasSuffix(rest, "text") || len(rest) > len("text") && rest[0] != 'N' && rest[0] != '[' {
			t.Errorf("%q: behind the prefix is %q", p.line, rest)
		}
		coloured := "\x1b[36m" + p.line[:n] + "\x1b[0m" + p.line[n:]
		if got := skipPrefix([]byte(coloured), 0); coloured[got:] != p.line[n:] {
			t.Errorf("%q: behind the prefix is %q", coloured, coloured[got:])
		}
	}
	for _, line := range []string{
		"", "x", "|", "a|b", "17 | 2019-05-05 10:00:00 | ann", "ERROR | disk", "info  | up", "2026-11-20 10:00:06 | W | slow",
		" id | name", "| id | name |", "the state-of-the-art design is new", "[main] INFO up", "[pod] up", "[rank] up",
		"10:00:06 ERROR no", "10:00:06 a b | c", "1/2 | half", "0|", "0|1", "web-7d4b9c6f5d-x2x9z: text", "(see pid=a) x",
		"RP is new", "sshd[812]: text", "\x1b[36m", "state-of-the-artist text",
	} {
		if n := skipPrefix([]byte(line), 0); n != 0 {
			t.Errorf("%q has a prefix of %d bytes", line, n)
		}
	}
}

// A text behind prefixes is the same as without them.
func TestBehindPrefixes(t *testing.T) {
	const text = "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n\nValueError: no"
	for _, p := range prefixes {
		if p.form == "[rank&]:" { // a blank behind it is of the prefix too
			continue
		}
		prefix := p.line[:skipPrefix([]byte(p.line), 0)]
		lines := prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
		if got := behindPrefixes([]byte(lines)); string(got) != text {
			t.Errorf("%q: %q", lines, got)
		}
		trimmed := bytes.ReplaceAll([]byte(lines), []byte(" \n"), []byte("\n"))
		if got := behindPrefixes(trimmed); string(got) != text {
			t.Errorf("%q: %q", trimmed, got)
		}
	}
}
