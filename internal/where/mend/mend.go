// Package mend answers a mistake in an expression (package where) with the expression that was
// probably meant. People write the words and signs of other languages: SQL, LogQL, KQL, jq, and
// those of programs.
//
// [Text] takes the expression apart, replaces each part that the language does not have by the one
// it has, and asks its caller whether the result is right.
package mend

import (
	"slices"
	"strings"
)

// A Mistake is a part of an expression that the language does not have.
type Mistake struct {
	At   int    // its byte in the expression
	What string // is wrong with it, and how it is written
	Fix  string // the whole expression without mistakes; "": not known
}

// mostText is how long an expression may be that is mended: the work grows with its square.
const mostText = 1 << 10

// Text finds the first mistake in an expression that cannot be read. right reports whether one can
// be, perhaps with another text for it. ok: there is a mistake that is known.
func Text(text string, right func(text string) (as string, ok bool)) (_ Mistake, ok bool) {
	if len(text) > mostText {
		return Mistake{}, false
	}
	m := &mender{scanner: newScanner(), whole: text, right: right}
	m.scan(text)
	rules := []func(){m.around, m.halves, m.lambdas, m.fields, m.logql, m.signs, m.words, m.regexps, m.calls, m.levels, m.times, m.numbers, m.lists, m.values, m.ends}
	for _, rule := range rules {
		rule()
	}
	if fix, ok := right(m.text()); ok && len(m.found) > 0 {
		if len(m.tokens) == 1 { // no condition is left
			fix = ""
		}
		return m.first(fix), true
	}
	if guess, fix := m.guess(); guess != nil {
		return guess.first(fix), true
	}
	if len(m.found) > 0 {
		return m.first(""), true
	}
	return Mistake{}, false
}

// A mender replaces tokens.
type mender struct {
	scanner *scanner
	whole   string // the expression
	right   func(text string) (as string, ok bool)
	tokens  []token
	found   []Mistake
}

// note keeps a mistake.
func (m *mender) note(at int, what string) {
	m.found = append(m.found, Mistake{At: at, What: what})
}

// first is the first mistake.
func (m *mender) first(fix string) Mistake {
	first := slices.MinFunc(m.found, func(a, b Mistake) int { return a.At - b.At })
	first.Fix = fix
	return first
}

// text is the expression as it is now.
func (m *mender) text() string {
	var b strings.Builder
	for _, t := range m.tokens {
		b.WriteString(t.gap)
		b.WriteString(t.text)
	}
	return strings.TrimSpace(b.String())
}

// tokensOf are the tokens of a text that is right, at a place.
func (m *mender) tokensOf(at, end int, gap, text string) []token {
	one := &mender{scanner: m.scanner}
	one.scan(text)
	for i := range one.tokens {
		one.tokens[i].at, one.tokens[i].end = at, end
	}
	if len(one.tokens) > 0 {
		one.tokens[0].gap = gap
	}
	return one.tokens
}

// replace replaces the tokens from i up to j by those of a text, and notes a mistake. "": it is
// none of its own.
func (m *mender) replace(i, j int, text, what string) {
	at := m.tokens[i].at
	if what != "" {
		m.note(at, what)
	}
	gap := m.tokens[i].gap
	if gap == "" && i > 0 && spaced(text) && m.tokens[i-1].kind != op {
		gap = " "
	}
	with := m.tokensOf(at, m.tokens[j-1].end, gap, text)
	if j < len(m.tokens) && m.tokens[j].gap == "" && spaced(text) && (m.tokens[j].kind != op || m.tokens[j].is("(", "[")) {
		m.tokens[j].gap = " "
	}
	m.tokens = slices.Replace(m.tokens, i, j, with...)
}

// spaced reports whether a text has blanks beside it.
func spaced(text string) bool {
	return text != "" && strings.Trim(text[:1]+text[len(text)-1:], "()[].,'\"") != ""
}

// drop removes tokens.
func (m *mender) drop(i, j int, what string) {
	m.note(m.tokens[i].at, what)
	gap := m.tokens[i].gap
	m.tokens = slices.Delete(m.tokens, i, j)
	if i < len(m.tokens) && m.tokens[i].gap == "" {
		m.tokens[i].gap = gap
	}
}

// source is the text of tokens in the expression.
func (m *mender) source(i, j int) string {
	from, to := m.tokens[i].at, m.tokens[j-1].end
	if from > to { // some have been added
		return m.slice(i, j)
	}
	return m.whole[from:to]
}

// forget takes back the mistakes in the text of tokens.
func (m *mender) forget(i, j int) {
	from, to := m.tokens[i].at, m.tokens[j-1].end
	m.found = slices.DeleteFunc(m.found, func(f Mistake) bool { return f.At >= from && f.At < to })
}

// is reports whether the token i is one of some words or signs.
func (m *mender) is(i int, texts ...string) bool {
	return i >= 0 && i < len(m.tokens) && m.tokens[i].is(texts...)
}

// kind reports whether the token i is of a kind.
func (m *mender) kind(i int, kinds ...kind) bool {
	return i >= 0 && i < len(m.tokens) && slices.Contains(kinds, m.tokens[i].kind)
}

// joiners are the words of the language between values and between conditions.
func joiners() []string {
	return []string{"and", "or", "not", "in", "matches", "contains", "startsWith", "endsWith", "let"}
}

// value reports whether the token i is a value, or ends one.
func (m *mender) value(i int) bool {
	if i < 0 || i >= len(m.tokens) {
		return false
	}
	switch t := &m.tokens[i]; t.kind {
	case word:
		return !slices.Contains(joiners(), t.text)
	case op:
		return t.is(")", "]", "}")
	}
	return true
}

// begins reports whether a value or a condition begins at the token i.
func (m *mender) begins(i int) bool {
	return m.kind(i, word, number, quoted, odd) || m.is(i, "(", "[", "!", "-")
}

// closing is the token that closes the bracket i; -1: there is none.
func (m *mender) closing(i int) int {
	depth := 0
	for j := i; j < len(m.tokens); j++ {
		switch {
		case m.is(j, "(", "[", "{"):
			depth++
		case m.is(j, ")", "]", "}"):
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// end is the end of the value that begins at the token i: the next token that joins conditions or
// closes a bracket.
func (m *mender) end(i int) int {
	for j := i; j < len(m.tokens); j++ {
		switch {
		case m.is(j, "and", "or", "&&", "||", ")", "]", "}", ",", "?", ":", ";"):
			return j
		case m.is(j, "(", "[", "{"):
			if end := m.closing(j); end > j {
				j = end
			}
		}
	}
	return len(m.tokens)
}

// slice is the text of tokens as it was written.
func (m *mender) slice(i, j int) string {
	return (&mender{tokens: m.tokens[i:j]}).text()
}
