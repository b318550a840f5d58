package body

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// Bodies of many formats are no text, and the reason says so.
func TestNoText(t *testing.T) {
	tar := append([]byte("a.log"), make([]byte, 252)...)
	tar = append(append(tar, "ustar\x0000"...), make([]byte, 248)...)
	tar = append(tar, strings.Repeat("a line of a log\n", 500)...)
	for text, want := range map[string]string{
		"BZh91AY&SY\x0e\x00text":            "compressed with bzip2; decompress it, or send it with gzip or zstd",
		"\xfd7zXZ\x00\x00\x04":              "compressed with xz",
		"\x04\x22\x4d\x18d":                 "compressed with lz4",
		"PK\x03\x04\x14text text text text": "compressed with zip",
		"\x7fELF\x02\x01\x01":               "4 of its 7 bytes are control characters",
		"MZ\x90\x00\x03 text":               "2 of its 10 bytes are control characters",
		"\xca\xfe\xba\xbe\x00\x00":          "2 of its 6 bytes are control characters",
		string(tar):                         "an archive (tar)",
		"\x1f\x8b\x08text":                  "compressed with gzip but the header",
		"\x28\xb5\x2f\xfdtext":              "compressed with zstd but the header",
		"h\x00e\x00l\x00l\x00o\x00":         "5 of its 10 bytes are control characters (is it UTF-16? send UTF-8)",
		"\x00\x00\n":                        "2 of its 3 bytes are control characters",
		"a line\n" + strings.Repeat("\x01\x02", 10) + strings.Repeat("text\n", 30): "20 of its 177 bytes",
		"line of words\n\x01\x80\x81\x82\x83\xff\xfe\x02 and words\n":              "2 of its 33 bytes",
	} {
		err := notText([]byte(text), false)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
	if err := notText([]byte("\x1f\x8b\x08text"), true); err == nil || !strings.Contains(err.Error(), "compressed twice") {
		t.Errorf("gzip in gzip: %v", err)
	}
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 200 {
		b := make([]byte, 400+rng.IntN(100_000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if notText(b, false) == nil {
			t.Errorf("%d random bytes are a text: %.20q", len(b), b)
		}
	}
}

// Texts that look strange are texts.
func TestStillText(t *testing.T) {
	// The same words as old systems write them.
	const russian, dos = "\xce\xf8\xe8\xe1\xea\xe0 \xf7\xf2\xe5\xed\xe8\xff\n", "\x8e\xe8\xa8\xa1\xaa\xa0 \xe7\xe2\xa5\xad\xa8\xef\n"
	for _, text := range []string{
		"", "\n", "x", "hello\n", "\t\r\n", "BZh is no bzip2\n", "BZh9 is none\n", "MZ is a prefix of words\n", "PK of a table\n", "7z a.7z b\n", "x^2 + y^2\n", "GIF89 is a format\n", "LZIP and RAR\n",
		"\x1b[31mERROR\x1b[0m \x1b[1mno\x1b[0m\n", "\xef\xbb\xbfhello\n", "grüße 日本語 😀\n", "gr\xfc\xdfe\n", russian, dos, strings.Repeat(russian, 3000),
		"a line with one \x00 in it\n", "progress 1%\rprogress 2%\rdone\n", "{\"msg\":\"x\"}\n", "<13>1 x\x00", strings.Repeat("a field\x1fanother field\x1e\n", 20),
		strings.Repeat("line of text\n", 10_000) + "\x00\x00\x00",
	} {
		if err := notText([]byte(text), false); err != nil {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

// The count is that of a plain loop.
func TestControls(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 2000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = []byte{byte(rng.Uint32()), byte(rng.IntN(40)), 'a', 0x7f, 0x80, 0xff}[rng.IntN(6)]
		}
		want := 0
		for _, c := range b {
			if isControl(c) {
				want++
			}
		}
		if got := controls(b, len(b)); got != want {
			t.Errorf("%q: %d, want %d", b, got, want)
		}
		if got := controls(b, 0) > 0; got != (want > 0) {
			t.Errorf("%q: some %v, want %d", b, got, want)
		}
	}
}

// BenchmarkNoText measures the look at a body of text.
func BenchmarkNoText(b *testing.B) {
	for _, n := range []int{200, 4_000, 1_000_000} {
		text := bytes.Repeat([]byte("2026-11-24 12:00:00 INFO a line of a log with some words\n"), n/56+1)[:n]
		b.Run("", func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if notText(text, false) != nil {
					b.Fatal("no text")
				}
			}
		})
	}
}
