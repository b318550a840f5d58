package trace

import (
	"bytes"
	"strings"
	"testing"
)

// A text behind prefixes is the same as without them.
func TestBehindPrefixes(t *testing.T) {
	const text = "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n\nValueError: no"
	for _, prefix := range []string{
		"web-1  | ", "web          │ ", "10:00:06 web.1  | ", "0|app  | ", "[pod/web-0/web] ", "web-7d4b9c6f5d-x2x9z web ",
		"[rank0]: ", "(EngineCore_0 pid=812) ", "(Worker pid=812, ip=192.0.2.7) ", "RP/0/RP0/CPU0:",
	} {
		lines := prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
		if got := BehindPrefixes([]byte(lines)); string(got) != text {
			t.Errorf("%q: %q", lines, got)
		}
		trimmed := bytes.ReplaceAll([]byte(lines), []byte(" \n"), []byte("\n"))
		if got := BehindPrefixes(trimmed); string(got) != text {
			t.Errorf("%q: %q", trimmed, got)
		}
	}
}
