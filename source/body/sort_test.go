package body_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"blobtail/source/body"
)

// The first bytes of a body tell its sort. Lines that begin as another format are text.
func TestSortOf(t *testing.T) {
	for text, want := range map[string]body.Sort{
		"":                       body.Unknown,
		" \n":                    body.Unknown,
		"hello":                  body.Lines,
		"BZh9 is no bzip2":       body.Lines,
		"x^2 + y":                body.Lines,
		"<13>1 a":                body.Lines,
		"[error] disk":           body.Lines,
		"Grüße\x1b[31m":          body.Lines,
		"{not JSON":              body.Lines,
		`{"a":1}`:                body.Object,
		"\xef\xbb\xbf {\"a\":1}": body.Object,
		`[{"a":1}]`:              body.Object,
		"\x1f\x8b\x08\x00":       body.Encoded,
		"\x28\xb5\x2f\xfd\x00":   body.Encoded,
		"\x78\x9c\x01\x02":       body.Encoded,
		"\xff\xfeh\x00":          body.Foreign,
		"PK\x03\x04":             body.Foreign,
		"\x0a\x05hello\x00\x01":  body.Unknown,
		"\x00\x01\x02\x03":       body.Unknown,
		"\x92\xa3tag\xce\x00":    body.Unknown,
	} {
		got, words := body.SortOf([]byte(text))
		if got != want || (got == body.Unknown) != (words == "") {
			t.Errorf("%q: %d %q, want %d", text, got, words, want)
		}
	}
	if got, _ := body.SortOf([]byte(strings.Repeat("ä", 5000))); got != body.Lines { // a letter is cut in two
		t.Errorf("long text: %d", got)
	}
}

// No bytes panic, and none make more than their share.
func FuzzSortOf(f *testing.F) {
	f.Add([]byte("\x0a\x05hello"))
	f.Add(s2.Encode(nil, []byte("\x0a\x05hello")))
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, words := body.SortOf(b); (s == body.Unknown) != (words == "") {
			t.Error(s, words)
		}
	})
}
