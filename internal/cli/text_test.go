package cli_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"blobtail/internal/cli"
)

// Safe text shows itself on a terminal, and has no other effect.
func FuzzSafe(f *testing.F) {
	f.Add([]byte("\x1b]0;title\x07 \xc2\x9b \u202e \xff \r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		out := cli.Safe(string(text))
		if !utf8.ValidString(out) {
			t.Errorf("no UTF-8: %q", out)
		}
		for _, r := range out {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029) {
				t.Errorf("%U in %q", r, out)
			}
		}
		if line := cli.SafeLine(string(text)); strings.ContainsRune(line, '\n') {
			t.Errorf("a line feed in %q", line)
		}
	})
}

// A shell reads the words back as they were.
func TestShellWords(t *testing.T) {
	words := []string{"web", "web-*", "", "a b", "it's", "$HOME", "2026-11-20T15:04:05+01:00", "`x`", "a\nb", "~", "#x"}
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+cli.ShellWords(words...)).Output()
	if got := strings.TrimSuffix(string(out), "\x00"); err != nil || got != strings.Join(words, "\x00") {
		t.Errorf("%q, %v", got, err)
	}
}
