package logql

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A kind is a kind of token. Operators and brackets are all symbols.
type kind uint8

const (
	end kind = iota
	word
	text
	number
	duration
	bytesize
	flag // such as --strict
	symbol
	broken // the text that is left is no token; why says so
)

// A token is a piece of a query.
type token struct {
	kind kind
	text string // as it stands in the query
	key  string // of a word: in small letters, as keywords are in any case; else the text
	pos  int    // offset in the query
	why  string // of a broken one
}

// is reports whether t is a symbol, or a word.
func (t token) is(s string) bool { return t.key == s && (t.kind == symbol || t.kind == word) }

// name is the word for t in messages, as in Loki.
func (t token) name() string {
	switch t.kind {
	case end:
		return "$end"
	case word:
		if isKeyword(t.key) {
			return t.key
		}
		return "IDENTIFIER"
	case text:
		return "STRING"
	case number:
		return "NUMBER"
	case duration:
		return "DURATION"
	case bytesize:
		return "BYTES"
	}
	return t.text
}

// lex makes tokens of a query. The last one is of kind end or broken.
func lex(query string) []token {
	tokens := make([]token, 0, 16+len(query)/8)
	for pos := 0; ; {
		pos += blank(query[pos:])
		t := next(query[pos:])
		t.pos = pos
		t.key = t.text
		if t.kind == word {
			t.key = strings.ToLower(t.text)
		}
		tokens = append(tokens, t)
		if t.kind == end || t.kind == broken {
			return tokens
		}
		pos += len(t.text)
	}
}

// blank is the length of the white space and comments in front of s.
func blank(s string) int {
	n := 0
	for n < len(s) {
		switch s[n] {
		case ' ', '\t', '\r', '\n':
			n++
		case '#':
			line := strings.IndexByte(s[n:], '\n')
			if line < 0 {
				return len(s)
			}
			n += line
		default:
			return n
		}
	}
	return n
}

// next is the token in front of s.
func next(s string) token {
	if s == "" {
		return token{kind: end}
	}
	switch c := s[0]; {
	case letter(c):
		n := 1
		for n < len(s) && (letter(s[n]) || digit(s[n])) {
			n++
		}
		return token{kind: word, text: s[:n]}
	case digit(c) || c == '.' && len(s) > 1 && digit(s[1]):
		return numeric(s)
	case c == '"':
		return quoted(s)
	case c == '`':
		if n := strings.IndexByte(s[1:], '`'); n >= 0 {
			return checked(s[:n+2])
		}
		return token{kind: broken, why: "literal not terminated"}
	case strings.HasPrefix(s, "--") && len(s) > 2 && letter(s[2]):
		n := 3
		for n < len(s) && (letter(s[n]) || s[n] == '-') {
			n++
		}
		return token{kind: flag, text: s[:n]}
	}
	if len(s) >= 2 && isSymbol(s[:2]) {
		return token{kind: symbol, text: s[:2]}
	}
	if strings.IndexByte("{}()[],|=<>+-*/%^", s[0]) >= 0 {
		return token{kind: symbol, text: s[:1]}
	}
	r, _ := utf8.DecodeRuneInString(s)
	if r == '.' {
		return token{kind: broken, why: "syntax error: unexpected .; names have letters, digits and _: a.b is written a_b"}
	}
	return token{kind: broken, why: "syntax error: unexpected character " + strconv.QuoteRune(r)}
}

// quoted is the text in quotes in front of s. It has Go's escapes, and ends in its line.
func quoted(s string) token {
	for n := 1; n < len(s); n++ {
		switch s[n] {
		case '\\':
			n++
		case '\n':
			return token{kind: broken, why: "literal not terminated"}
		case '"':
			if _, err := strconv.Unquote(s[:n+1]); err != nil {
				return token{kind: broken, why: "syntax error: a STRING in quotes has an escape that Go does not have; in `…` there are none"}
			}
			return checked(s[:n+1])
		}
	}
	return token{kind: broken, why: "literal not terminated"}
}

// checked is a literal, which must be UTF-8. Other bytes can be had by escapes.
func checked(literal string) token {
	if !utf8.ValidString(literal) {
		return token{kind: broken, why: "invalid UTF-8 encoding"}
	}
	return token{kind: text, text: literal}
}

// unquote is the text of a literal.
func unquote(literal string) string {
	if literal[0] == '`' {
		return literal[1 : len(literal)-1]
	}
	value, _ := strconv.Unquote(literal) // quoted has tried it
	return value
}

// numeric is the number, duration or size in front of s.
func numeric(s string) token {
	n := digits(s)
	if n < len(s) && s[n] == '.' {
		n++
		n += digits(s[n:])
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[min(e, len(s)):]); d > 0 {
			n = e + d
		}
	}
	whole := n
	for whole < len(s) && (letter(s[whole]) || digit(s[whole]) || s[whole] == '.' || s[whole] >= utf8.RuneSelf) {
		whole++
	}
	if whole == n {
		return token{kind: number, text: s[:n]}
	}
	if _, err := parseDuration(s[:whole]); err == nil {
		return token{kind: duration, text: s[:whole]}
	}
	if _, err := parseBytes(s[:whole]); err == nil {
		return token{kind: bytesize, text: s[:whole]}
	}
	return token{kind: broken, why: "syntax error: neither a number nor a duration such as 5m or 1h30m nor a size such as 5KB: " + clip(s[:whole])}
}

// clip keeps messages short.
func clip(s string) string {
	if len(s) <= 40 {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:40]) + "…"
}

func digits(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func isSymbol(s string) bool {
	switch s {
	case "|=", "|~", "|>", "!=", "!~", "!>", "==", "=~", ">=", "<=":
		return true
	}
	return false
}

// isKeyword reports whether messages say the word itself, not IDENTIFIER.
func isKeyword(s string) bool {
	switch s {
	case "json", "logfmt", "regexp", "pattern", "unpack", "line_format", "label_format", "decolorize", "drop", "keep", "distinct",
		"unwrap", "by", "without", "bool", "on", "ignoring", "group_left", "group_right", "offset", "and", "or", "unless", "ip", "vector", "variants", "label_replace":
		return true
	}
	return isRangeOp(s) || isVectorOp(s)
}
