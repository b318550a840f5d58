package mend

import (
	"slices"
	"strings"
)

// guess returns the mender with the first guess, or all of them, that makes the expression right,
// and its text; nil: there is none.
func (m *mender) guess() (_ *mender, fix string) {
	all := m.clone()
	for _, rule := range []func(*mender){(*mender).brackets, (*mender).early, (*mender).colons, (*mender).again, (*mender).missing, (*mender).bare} {
		one := m.clone()
		rule(one)
		if fix, ok := m.right(one.text()); ok && len(one.found) > len(m.found) {
			return one, fix
		}
		rule(all)
		if fix, ok := m.right(all.text()); ok && len(all.found) > len(m.found) {
			return all, fix
		}
	}
	return nil, ""
}

func (m *mender) clone() *mender {
	one := *m
	one.tokens, one.found = slices.Clone(m.tokens), slices.Clone(m.found)
	return &one
}

// brackets closes brackets, and removes those that close none.
func (m *mender) brackets() {
	var open []int
	for i := 0; i < len(m.tokens); i++ {
		switch {
		case m.is(i, "(", "[", "{"):
			open = append(open, i)
		case m.is(i, ")", "]", "}") && len(open) == 0:
			m.drop(i, i+1, "this bracket closes none")
			i--
		case m.is(i, ")", "]", "}"):
			open = open[:len(open)-1]
		}
	}
	for _, i := range slices.Backward(open) {
		closes := map[string]string{"(": ")", "[": "]", "{": "}"}[m.tokens[i].text]
		m.note(m.tokens[i].at, "the bracket that opens here is not closed: "+closes+" is missing")
		m.tokens = append(m.tokens, token{at: m.tokens[len(m.tokens)-1].at, text: closes})
	}
}

// early closes a bracket of a function before the comparison behind it.
func (m *mender) early() {
	for i := 1; i < len(m.tokens); i++ {
		if !m.is(i, "(") || !m.kind(i-1, word) || m.closing(i) >= 0 {
			continue
		}
		for j := i + 1; j < len(m.tokens); j++ {
			if m.comparison(j) && !m.is(j, ".", "not") {
				m.note(m.tokens[i].at, "the bracket that opens here is not closed: ) is missing")
				m.tokens = slices.Insert(m.tokens, j, token{at: m.tokens[j].at, text: ")"})
				return
			}
		}
	}
}

// again writes the field of the comparison before into one that has none.
func (m *mender) again() {
	field := ""
	for i := 1; i < len(m.tokens); i++ {
		if !m.comparison(i) || m.is(i, "not", ".") {
			continue
		}
		begin := i
		if m.is(i-1, "not") {
			begin--
		}
		switch {
		case m.value(begin - 1):
			if first := m.begin(begin); m.kind(first, word) {
				field = m.slice(first, begin)
			}
		case field != "" && m.is(begin-1, "and", "or", "&&", "||"):
			m.note(m.tokens[i].at, "each comparison needs its field")
			m.tokens = slices.Insert(m.tokens, begin, m.tokensOf(m.tokens[i].at, m.tokens[i].at, " ", field)...)
			i++
		}
	}
}

// colons replaces the colon between a field and its value.
func (m *mender) colons() {
	const what = "a field and its value have a comparison between them, such as =="
	for i := 1; i < len(m.tokens); i++ {
		if !m.is(i, ":") || !m.value(i-1) {
			continue
		}
		switch {
		case m.is(i+1, "==", "!=", "<", ">", "<=", ">="):
			m.drop(i, i+1, what)
			m.tokens[i].gap = " "
			if i+1 < len(m.tokens) {
				m.tokens[i+1].gap = " "
			}
		case m.is(i+1, "*") && !m.begins(i+2):
			m.replace(i, i+2, "!= nil", "a field that a record does not have is nil")
		case m.begins(i+1) || m.is(i+1, "/", "*"):
			end := m.end(i + 1)
			if text := m.slice(i+1, end); strings.Contains(text, "*") && !m.kind(i+1, quoted) {
				with, text := pattern(text)
				m.replace(i, end, with+" "+quote(text), what)
				continue
			}
			m.replace(i, i+1, "==", what)
			m.tokens[i+1].gap = " "
		}
	}
}

// bare puts values without quotes into quotes.
func (m *mender) bare() {
	for i := 1; i < len(m.tokens); i++ {
		if !m.is(i-1, "==", "!=", "contains", "startsWith", "endsWith", "matches") {
			continue
		}
		end := m.end(i)
		if end == i || m.kind(i, quoted) || end == i+1 && m.kind(i, number) {
			continue
		}
		if slices.ContainsFunc(m.tokens[i:end], func(t token) bool {
			return t.kind == quoted || t.kind != word && t.is("==", "!=", "<", ">", "<=", ">=", "!", "(", "[")
		}) ||
			m.kind(i, number) && m.kind(i+1, op) || slices.Contains(joiners(), m.tokens[i].text) {
			continue
		}
		if _, ok := m.right("x == " + m.slice(i, end)); ok {
			continue
		}
		text := m.source(i, end)
		m.forget(i, end)
		m.replace(i, end, quote(text), "a text needs quotes")
	}
}

// values writes values of other languages as those of this one.
func (m *mender) values() {
	for i := 1; i < len(m.tokens); i++ {
		if !m.kind(i, word) || !m.is(i-1, "==", "!=") || m.is(i+1, "(", ".", "[") {
			continue
		}
		if with, what := Constant(m.tokens[i].text); with != "" {
			m.replace(i, i+1, with, what)
		}
	}
}

// Constant is the value of the language for a word of another one; "": the word is none.
func Constant(text string) (with, what string) {
	switch text {
	case "null", "NULL", "Null", "None", "NONE", "undefined", "NIL", "Nil":
		return "nil", "a field that a record does not have is nil"
	case "True", "TRUE":
		return "true", "the values are true and false, in lower case"
	case "False", "FALSE":
		return "false", "the values are true and false, in lower case"
	}
	return "", ""
}

// missing joins conditions that stand side by side.
func (m *mender) missing() {
	const what = "two conditions need and, or or between them"
	depth := 0
	for i := 1; i < len(m.tokens); i++ {
		switch {
		case m.is(i-1, "(", "[", "{"):
			depth++
		case m.is(i-1, ")", "]", "}"):
			depth--
		}
		switch {
		case m.is(i, ",") && (m.kind(i+1, word) || m.is(i+1, "(", "!")) && depth == 0:
			with := "and"
			if m.is(i+2, "==") && m.is(i-2, "==") && m.is(i-3, m.tokens[i+1].text) { // it cannot have both
				with = "or"
			}
			m.replace(i, i+1, with, what)
			m.tokens[i].gap = " "
		case m.kind(i, word) && m.value(i) && m.value(i-1) && m.comparison(i+1) && Function(m.tokens[i-1].text) == "" && !m.is(i-1, "does", "do"):
			m.note(m.tokens[i].at, what)
			m.tokens = slices.Insert(m.tokens, i, token{kind: word, at: m.tokens[i].at, gap: " ", text: "and"})
			i++
		}
	}
}

// comparison reports whether the token i compares.
func (m *mender) comparison(i int) bool {
	return m.is(i, "==", "!=", "<", ">", "<=", ">=", "in", "not", "contains", "startsWith", "endsWith", "matches", ".")
}
