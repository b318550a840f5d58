package record_test

import (
	"testing"

	"blobtail/record"
)

// Escaping and unescaping are inverse on text. An invalid escape, in a line of
// another writer, stays as it is.
func TestEscapes(t *testing.T) {
	for _, tc := range []struct{ text, escaped string }{
		{`plain`, `plain`},
		{`a"b\c`, `a\"b\\c`},
		{"tab\tnew\nline\x01", `tab\tnew\nline\u0001`},
		{"é <>&/", "é <>&/"},
	} {
		if got := string(record.AppendEscaped(nil, []byte(tc.text))); got != tc.escaped {
			t.Errorf("escaped %q: %s, want %s", tc.text, got, tc.escaped)
		}
		if got := string(record.AppendUnescaped(nil, []byte(tc.escaped))); got != tc.text {
			t.Errorf("unescaped %s: %q, want %q", tc.escaped, got, tc.text)
		}
	}
	for in, want := range map[string]string{
		`\u00e9\/`: "é/", `\ud83d\ude00`: "😀", `\ud800x`: `\ud800x`, `\uD8F0\u0041`: `\ud8f0A`, `\uDFFFx\`: `\udfffx\`, `\q`: `\q`, `x\`: `x\`, `\u12`: `\u12`, `\u12zz`: `\u12zz`,
	} {
		if got := string(record.AppendUnescaped(nil, []byte(in))); got != want {
			t.Errorf("unescaped %s: %q, want %q", in, got, want)
		}
	}
}
