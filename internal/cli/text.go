package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe is s with all characters escaped that a terminal would act on, as [AppendSafe]
// does it. Line feeds stay.
func Safe(s string) string { return string(AppendSafe(nil, []byte(s), "\n")) }

// SafeLine is [Safe] for a text that must stay in its line, such as a name from a
// store: line feeds are escaped too.
func SafeLine(s string) string { return string(AppendSafe(nil, []byte(s), `\n`)) }

// AppendSafe appends text to dst such that a terminal only shows it. It escapes control
// characters (C0 but tab, DEL, C1), characters that turn the direction of writing, and
// bytes that are not UTF-8. newline replaces a line feed.
func AppendSafe(dst, text []byte, newline string) []byte {
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] >= 0x20 && text[n] < 0x7f {
			n++
		}
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n':
			dst = append(dst, newline...)
		case r == '\t':
			dst = append(dst, '\t')
		case r == utf8.RuneError && size == 1 || r < 0x20 || r == 0x7f:
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case unsafeRune(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, text[:size]...)
		}
		text = text[size:]
	}
	return dst
}

// unsafeRune reports whether r controls a terminal or the direction of writing, or
// breaks lines.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// ShellWords joins words to a command that a shell reads back as the same words.
func ShellWords(words ...string) string {
	const plain = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_./:=+,@"
	quoted := slices.Clone(words)
	for i, w := range words {
		if w == "" || strings.Trim(w, plain) != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
