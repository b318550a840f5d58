package mend

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// odd notes a mistake of one token that is no value, and corrects it.
func (m *mender) odd(t *token, what string) {
	text := t.text
	duration := regexp.MustCompile(`^(?:\d+(?:\.\d+)?(?:h|m|s|ms|us|µs|ns)){2,}$`)
	if class := regexp.MustCompile(`(?i)^[1-5]xx$`); class.MatchString(text) {
		return // it needs the tokens beside it, as a duration of several units does
	}
	for _, joins := range []string{"and", "or"} {
		if n, ok := strings.CutSuffix(text, joins); ok && strings.Trim(n, "0123456789.") == "" {
			m.note(t.at+len(n), "a blank is missing before "+joins)
			t.kind, t.text = number, n+" "+joins
			return
		}
	}
	if n := len(m.tokens); n > 1 && m.is(n-1, "-", "+") && m.is(n-2, ")", "now") && unit(text) != "" {
		return // of a time
	}
	if strings.HasSuffix(text, "*") || network(text) != "" {
		return
	}
	if n := unit(text); n != "" {
		m.note(t.at, whatUnit)
		t.kind, t.text = number, n
		return
	}
	if duration.MatchString(text) {
		return
	}
	if n := len(m.tokens); what == whatDate && n > 1 && m.is(n-2, "ts") {
		what = "ts is a text, in UTC: a time needs quotes"
		text = strings.Replace(text, " ", "T", 1)
		if at, err := time.Parse("02/Jan/2006:15:04:05", text); err == nil {
			text = at.Format("2006-01-02T15:04:05")
		}
	}
	m.note(t.at, what)
	t.kind, t.text = quoted, quote(text)
}

const whatUnit = "a number has no unit: write it in the unit of the field"

// unit is the number of a text with a unit, as a field of that unit would have it; "": it has none.
func unit(text string) string {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ%")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return ""
	}
	times := 1.0
	switch strings.ToLower(text[len(digits):]) {
	case "l", "f", "u", "ul", "ns", "us", "µs", "ms", "s", "sec", "m", "min", "h", "d", "w", "b", "%":
	case "k", "kb":
		times = 1e3
	case "mb":
		times = 1e6
	case "g", "gb":
		times = 1e9
	case "kib", "ki":
		times = 1 << 10
	case "mib", "mi":
		times = 1 << 20
	case "gib", "gi":
		times = 1 << 30
	default:
		return ""
	}
	return strconv.FormatFloat(n*times, 'f', -1, 64)
}

// network is the beginning of the addresses of a network of whole bytes; "": it is none.
func network(text string) string {
	address, bits, ok := strings.Cut(text, "/")
	n := map[string]int{"8": 1, "16": 2, "24": 3}[bits]
	parts := strings.Split(address, ".")
	if !ok || n == 0 || len(parts) != 4 {
		return ""
	}
	return strings.Join(parts[:n], ".") + "."
}

// unitWords are words of units behind a number.
func unitWords() []string {
	return []string{"ms", "s", "sec", "secs", "second", "seconds", "millisecond", "milliseconds", "minute", "minutes", "min", "mins", "hour", "hours", "day", "days", "b", "byte", "bytes", "kb", "mb", "gb", "kib", "mib", "gib", "percent"}
}

// lambdas writes # for the element of a list that has a name.
func (m *mender) lambdas() {
	for i := 1; i+1 < len(m.tokens); i++ {
		if !m.is(i, "=>", "->") || !m.kind(i-1, word) || !m.is(i-2, ",", "(") {
			continue
		}
		name := m.tokens[i-1].text
		m.drop(i-1, i+1, "the element of a list is #")
		for j := i - 1; j < len(m.tokens) && !m.is(j, ")"); j++ {
			if m.kind(j, word) && m.tokens[j].text == name && !m.is(j-1, ".") {
				m.tokens[j].text, m.tokens[j].kind = "#", op
			}
		}
	}
}

// levels writes >= for the + of a level.
func (m *mender) levels() {
	for i := 0; i < len(m.tokens); i++ {
		if m.is(i, "level") && m.is(i+1, "==", ">=", ":") && m.kind(i+2, word, quoted) && m.is(i+3, "+") && !m.begins(i+4) {
			text := m.tokens[i+2].text
			if m.kind(i+2, word) {
				text = quote(text)
			}
			if m.tokens[i+1].gap == "" {
				m.tokens[i+1].gap = " "
			}
			m.replace(i+1, i+4, ">= "+text, "for a level and those above it write >=")
		}
	}
}

// times writes the functions for times that are counted from now.
func (m *mender) times() {
	for i := 1; i < len(m.tokens); i++ {
		if m.kind(i, odd) && m.is(i-1, "-", "+") && m.is(i-2, ")", "now") {
			m.replace(i, i+1, `duration("`+m.tokens[i].text+`")`, "a duration from now is made by duration()")
			m.tokens[i-1].gap, m.tokens[i].gap = " ", " "
		}
		if !m.is(i, "now") {
			continue
		}
		if !m.is(i+1, "(") && m.is(i+1, "-", "+") {
			m.replace(i, i+1, "now()", "the time is now()")
		}
		if m.is(i-1, "<", ">", "<=", ">=") && m.is(i-2, "ts") {
			m.replace(i-2, i-1, "date(ts)", "ts is a text: date() makes a time of it")
		}
	}
}

// numbers replaces numbers in forms that only people read.
func (m *mender) numbers() {
	for i := 0; i < len(m.tokens); i++ {
		t := m.tokens[i]
		switch {
		case t.kind == odd && i >= 2 && m.is(i-1, "==", "!=", "in") && strings.EqualFold(t.text[1:], "xx"):
			m.class(i)
		case t.kind == number && len(t.text) == 1 && i >= 2 && m.is(i-1, "==", "!=") && m.is(i+1, "*", "**") && !m.begins(i+2):
			m.tokens = slices.Delete(m.tokens, i+1, i+2)
			m.class(i)
		case t.kind == number && m.kind(i+1, word) && slices.Contains(unitWords(), strings.ToLower(m.tokens[i+1].text)) && m.is(i-1, "==", "!=", "<", ">", "<=", ">="):
			n := unit(t.text + m.tokens[i+1].text)
			if n == "" {
				n = t.text
			}
			m.replace(i, i+2, n, whatUnit)
		case t.kind == odd && strings.HasSuffix(t.text, "*") && m.is(i-1, "=="):
			with, text := pattern(t.text)
			m.replace(i-1, i+1, with+" "+quote(text), "a text needs quotes")
		case t.kind == odd && network(t.text) != "":
			if m.is(i-1, "==", "in") {
				m.replace(i-1, i+1, "startsWith "+quote(network(t.text)), "addresses are texts: a network is their beginning")
			}
		case t.kind == odd && strings.HasSuffix(t.text, "%"):
			m.replace(i, i+1, strings.TrimSuffix(t.text, "%"), whatUnit)
		case t.kind == odd && i >= 2 && !strings.EqualFold(t.text[1:], "xx") && m.is(i-1, "==", "!=", "<", ">", "<=", ">="):
			begin := m.begin(i - 1)
			m.replace(i, i+1, `duration("`+t.text+`")`, "a duration is no number")
			m.replace(begin, i-1, "duration("+m.slice(begin, i-1)+")", "")
		case t.kind == number && m.is(i-1, "==", "!=", "<", ">", "<=", ">=") && len(t.text) < 4:
			if next := i + 2; m.is(i+1, ",") && m.tokens[i+1].gap == "" && m.kind(next, number) && m.tokens[next].gap == "" && len(m.tokens[next].text) < 3 && !strings.Contains(t.text+m.tokens[next].text, ".") {
				m.replace(i, i+3, t.text+"."+m.tokens[next].text, "a number has a point, and no comma")
			}
			for m.is(i+1, ",") && m.tokens[i+1].gap == "" && m.kind(i+2, number) && m.tokens[i+2].gap == "" && len(m.tokens[i+2].text) == 3 {
				m.replace(i, i+3, m.tokens[i].text+m.tokens[i+2].text, "a number has no commas")
			}
		}
	}
}

// class replaces 5xx.
func (m *mender) class(i int) {
	begin := m.begin(i - 1)
	name, low := m.slice(begin, i-1), int(m.tokens[i].text[0]-'0')*100
	with := name + " >= " + strconv.Itoa(low) + " and " + name + " < " + strconv.Itoa(low+100)
	if m.is(i-1, "!=") {
		with = "not (" + with + ")"
	}
	at := m.tokens[i].at
	m.replace(begin, i+1, with, "")
	m.note(at, "a class of numbers is a range")
}
