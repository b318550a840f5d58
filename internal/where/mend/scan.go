package mend

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	op     kind = iota // a sign
	word               // a name, or an operator of letters
	number             // a number of the language
	quoted             // a text in quotes
	odd                // something that looks like a value, and is none without quotes
)

// A token is a part of an expression. Its gap is the white space before it.
type token struct {
	kind kind
	at   int // first byte in the expression
	end  int // the byte behind the last one
	gap  string
	text string
}

// is reports whether a token is a word, in any letter case, or a sign.
func (t *token) is(texts ...string) bool {
	if t.kind != op && t.kind != word {
		return false
	}
	for _, text := range texts {
		if t.text == text || t.kind == word && strings.EqualFold(t.text, text) {
			return true
		}
	}
	return false
}

// A scanner takes an expression apart. It knows more signs than the language has.
type scanner struct {
	forms []form
}

// form is how the tokens of a kind look.
type form struct {
	kind kind
	expr *regexp.Regexp
	what string // is wrong with it; "": nothing
}

const (
	whatDate = "a date or a time is a text: it needs quotes"
	whatOdd  = "it is no number, and a text needs quotes"
)

func newScanner() *scanner {
	s := &scanner{}
	for _, f := range []struct {
		kind       kind
		expr, what string
	}{
		{quoted, `"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|` + "`[^`]*`", ""},
		{odd, `\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\b`, whatDate},
		{odd, `\d\d/[A-Z][a-z][a-z]/\d{4}(?::\d\d:\d\d:\d\d)?\b`, whatDate},
		{odd, `\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?\b`, "an address is a text: it needs quotes"},
		{odd, `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`, whatOdd},
		{number, `0[xX][0-9a-fA-F_]+\b|0[bB][01_]+\b|0[oO][0-7_]+\b`, ""},
		{number, `\d[\d_]*(?:\.\d+)?[eE][+-]?\d+\b`, ""},
		{odd, `\d+(?:[.]\d+)?[A-Za-zµ]+(?:\d+[A-Za-zµ]+)*\b`, whatOdd},
		{odd, `\d+\.\d+\.\d[\w.*-]*`, "a version is a text: it needs quotes"},
		{odd, `\d\d?:\d\d(?::\d\d)?\b`, whatDate},
		{odd, `\d+%`, ""},
		{number, `\d[\d_]*(?:\.\d+)?`, ""},
		{word, `[@$]?[\p{L}_][\p{L}\p{N}_]*|\$`, ""},
		{op, `===|!==|<=>|!~\*|\|=|\|~|=~|!~|~=|~\*|~~|=!|==|!=|<>|<=|>=|=>|=<|&&|\|\||\?\?|\?\.|\.\.|\*\*|:=|::`, ""},
	} {
		s.forms = append(s.forms, form{f.kind, regexp.MustCompile(`^(?:` + f.expr + `)`), f.what})
	}
	return s
}

// curly are quotes that programs for prose make, with those that close them.
const (
	curlyOpen  = "“”„«‘’‚"
	curlyClose = "”“»’‘"
)

// scan takes a text apart, and notes mistakes that are those of one token.
func (m *mender) scan(text string) {
	for at := 0; at < len(text); {
		rest := text[at:]
		trimmed := strings.TrimLeft(rest, " \t\r\n\u00a0")
		t := token{at: at + len(rest) - len(trimmed), gap: rest[:len(rest)-len(trimmed)]}
		if t.gap != "" {
			t.gap = " "
		}
		if trimmed == "" {
			return
		}
		n := m.quotes(&t, trimmed)
		if n == 0 {
			n = m.bareText(&t, trimmed)
		}
		for _, f := range m.scanner.forms {
			if n > 0 {
				break
			}
			if n = len(f.expr.FindString(trimmed)); n > 0 {
				t.kind, t.text = f.kind, trimmed[:n]
				if f.what != "" {
					m.odd(&t, f.what)
				}
			}
		}
		if t.kind == quoted && n > 0 && trimmed[0] != '`' {
			m.escapes(&t)
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(trimmed)
			t.text = trimmed[:n]
		}
		at = t.at + n
		t.end = at
		m.tokens = append(m.tokens, t)
	}
}

// bareText reads a text without quotes that nothing else can be: a URL, and a path or a pattern
// behind an operator. It returns its bytes; 0: there is none.
func (m *mender) bareText(t *token, text string) int {
	run := text
	if end := strings.IndexAny(run, " \t\n\"')"); end >= 0 {
		run = run[:end]
	}
	scheme, _, url := strings.Cut(run, "://")
	url = url && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+.-0123456789") == ""
	before := m.is(len(m.tokens)-1, "==", "=", "!=", "contains", "startsWith", "endsWith", "like", "includes")
	if !url && !(before && len(run) > 1 && strings.ContainsAny(run[:1], "/*")) {
		return 0
	}
	n := len(run)
	m.note(t.at, "a text needs quotes")
	if strings.Contains(run, "*") && m.is(len(m.tokens)-1, "==", "=", "contains") {
		with, bare := pattern(run)
		m.tokens[len(m.tokens)-1].text, m.tokens[len(m.tokens)-1].kind, run = with, word, bare
	}
	t.kind, t.text = quoted, quote(run)
	return n
}

// quotes reads a text in quotes that the language does not have. It returns its bytes; 0: there is
// none.
func (m *mender) quotes(t *token, text string) int {
	first, n := utf8.DecodeRuneInString(text)
	switch {
	case strings.HasPrefix(text, `\"`) || strings.HasPrefix(text, `\'`):
		inner, _, closed := strings.Cut(text[2:], text[:2])
		if !closed {
			return 0
		}
		m.note(t.at, `quotes need no \ here`)
		t.kind, t.text = quoted, quote(inner)
		return len(inner) + 4
	case strings.ContainsRune(curlyOpen, first):
		end := strings.IndexAny(text[n:], curlyClose+`"`)
		if end < 0 {
			return 0
		}
		m.note(t.at, `texts are in straight quotes, " or '`)
		t.kind, t.text = quoted, quote(text[n:n+end])
		_, last := utf8.DecodeRuneInString(text[n+end:])
		return n + end + last
	case first == '"' || first == '\'':
		if m.scanner.forms[0].expr.MatchString(text) {
			return 0
		}
		m.note(t.at, "the text that begins here has no quote at its end")
		end := len(text)
		if regexp.MustCompile(`(?i) (and|or) |[=<>]`).MatchString(text) { // conditions follow
			if end = strings.IndexAny(text, " )"); end < 0 {
				end = len(text)
			}
		}
		t.kind, t.text = quoted, quote(strings.TrimSuffix(text[1:end], `\`))
		return end
	}
	return 0
}

// escapes doubles a \ of a text that stands for itself, as those of regular expressions do.
func (m *mender) escapes(t *token) {
	known := regexp.MustCompile(`\\(?:[abfnrtv\\'"]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})`)
	var b strings.Builder
	for text := t.text; text != ""; {
		n := 1
		if text[0] == '\\' {
			if at := known.FindStringIndex(text); at != nil && at[0] == 0 {
				n = at[1]
			} else {
				b.WriteByte('\\')
			}
		}
		b.WriteString(text[:n])
		text = text[n:]
	}
	if b.Len() > len(t.text) {
		m.note(t.at, `a \ in a text is written \\`)
		t.text = b.String()
	}
}

// quote is a text in quotes of the language.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\t", " ").Replace(text) + `"`
}
