// Package grep decides whether a text filter matches a stored line. It searches the
// record as people see it, and needs to decode few lines for that.
//
// Make a [Pattern] by [Fixed], [Word] or [Expr]. Ask it for the places of a block that may
// match ([Pattern.Finder]), and whether a line does ([Pattern.Match]).
//
// # Texts
//
// A record has several texts. A pattern matches a record if it matches one of them:
//
//   - the message, decoded;
//   - each string at the top level, decoded: its ts, level and service too;
//   - each other field as key=value, as logquery prints it for people;
//   - the stored line from the value of msg to its end.
//
// The start and the end of a text are those of lines for an expression, and borders of
// words.
//
// # Spellings
//
// A text has few spellings in stored lines: as typed; with JSON's escapes; and, for each
// "=" in it, as a key in quotes before a value. A line without any of them cannot match.
// So a block is searched for spellings, and only a line that has one is decoded.
package grep

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"blobtail/internal/regex"
	"blobtail/record"
)

// A Pattern is one text filter. It may be used by several goroutines at once.
type Pattern struct {
	literal []byte // folded if fold; nil for an expression
	word    bool   // literal stands alone
	expr    *regex.Regex
	inside  bool // expr has no borders: a match in a part of a text is one in the text
	equals  bool // expr can match "="
	fold    bool // spellings are folded

	// Each line that matches has a spelling of one of them. nil: unknown.
	literals []spelt
}

// Fixed matches a text that is not empty. If fold is set, upper and lower case of ASCII
// letters are equal.
func Fixed(text string, fold bool) *Pattern {
	// Bytes that are no UTF-8 are searched as records show them.
	literal := record.AppendUnescaped(nil, record.AppendEscaped(nil, []byte(text)))
	if fold {
		Fold(literal, literal)
	}
	return &Pattern{literal: literal, fold: fold, literals: []spelt{spell(literal)}}
}

// Word is Fixed for a text between borders of words: no letter, digit or underscore stands
// right before or behind it.
func Word(text string, fold bool) *Pattern {
	p := Fixed(text, fold)
	p.word = true
	return p
}

// Folds reports whether the pattern needs lines in lower case beside the stored ones.
func (p *Pattern) Folds() bool { return p.fold }

// Weight is larger for a pattern that rules out more lines; 0 if it rules out none.
func (p *Pattern) Weight() int {
	least := 0
	for _, l := range p.literals {
		for _, s := range l.spellings {
			if least == 0 || len(s.text) < least {
				least = len(s.text)
			}
		}
	}
	return least
}

// A Line is a stored line without its newline.
type Line struct {
	Raw []byte
	Low []byte // Raw folded; Raw itself if no pattern folds
	msg int    // where the value of msg begins
	buf []byte // of one decoded text
}

// Set makes l the given line, and keeps the memory of the one before.
func (l *Line) Set(raw, low []byte) {
	l.Raw, l.Low = raw, low
	l.msg = 0
	if off, ok := record.LineMsg(raw); ok {
		l.msg = off
	}
}

// Match reports whether the pattern matches a text of the line.
func (p *Pattern) Match(l *Line) bool {
	// A literal is quicker to find as typed, and an expression is slower than its spellings.
	switch {
	case p.expr == nil && p.stored(l):
		return true
	case !p.spelt(l):
		return false
	case p.expr != nil && p.stored(l):
		return true
	}
	for key, value := range record.Fields(l.Raw) {
		if p.field(l, key, value) {
			return true
		}
	}
	return false
}

// stored reports a match in the stored line from msg on.
func (p *Pattern) stored(l *Line) bool {
	switch {
	case p.expr != nil:
		return p.expr.Match(l.Raw[l.msg:])
	case p.fold:
		return p.has(l.Low[l.msg:])
	}
	return p.has(l.Raw[l.msg:])
}

// has reports whether a text, folded if p folds, has the literal.
func (p *Pattern) has(text []byte) bool { return p.next(text, 0) >= 0 }

// next returns where the literal is in a text, folded if p folds, at a place or behind; -1 if
// nowhere.
func (p *Pattern) next(text []byte, from int) int {
	for at := from; ; at++ {
		i := bytes.Index(text[at:], p.literal)
		if i < 0 {
			return -1
		}
		at += i
		if !p.word {
			return at
		}
		before, _ := utf8.DecodeLastRune(text[:at])
		behind, _ := utf8.DecodeRune(text[at+len(p.literal):])
		if !inWord(before) && !inWord(behind) {
			return at
		}
	}
}

func inWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// spelt reports whether the line has a spelling of a literal, or none is known.
func (p *Pattern) spelt(l *Line) bool {
	line := l.Raw
	if p.fold {
		line = l.Low
	}
	for i := range p.literals {
		if p.literals[i].find(line, 0, way{anchor: -1}) < len(line) {
			return true
		}
	}
	return p.literals == nil
}

// field reports a match in the texts of one field. They are not searched if each match in
// them would be a match in the stored line too, where there is none.
func (p *Pattern) field(l *Line, key, value []byte) bool {
	name := string(key)
	first := name == "ts" || name == "level" || name == "service"
	if record.IsString(value) {
		inside := value[1 : len(value)-1]
		if (first || !p.inside || bytes.IndexByte(inside, '\\') >= 0) && p.text(l, record.AppendUnescaped(l.buf[:0], inside)) {
			return true
		}
	}
	if first || name == "msg" || p.inside && !p.equals && bytes.IndexByte(key, '\\') < 0 {
		return false
	}
	pair := append(record.AppendUnescaped(l.buf[:0], key), '=')
	return p.text(l, append(pair, record.Bare(value)...))
}

// text reports a match in a decoded text, which lies in l.buf.
func (p *Pattern) text(l *Line, text []byte) bool {
	l.buf = text
	if p.expr != nil {
		return p.expr.Match(text)
	}
	if p.fold {
		Fold(text, text)
	}
	return p.has(text)
}

// Spans appends where the pattern matches in a decoded text: start and end of each match.
func (p *Pattern) Spans(dst [][2]int, text []byte) [][2]int {
	if p.expr != nil {
		for _, at := range p.expr.FindAllIndex(text) {
			if at[0] < at[1] {
				dst = append(dst, [2]int{at[0], at[1]})
			}
		}
		return dst
	}
	if p.fold {
		low := make([]byte, len(text))
		Fold(low, text)
		text = low
	}
	for from := 0; ; {
		at := p.next(text, from)
		if at < 0 {
			return dst
		}
		from = at + len(p.literal)
		dst = append(dst, [2]int{at, from})
	}
}

// Fold writes src to dst with ASCII letters in lower case; dst is at least as long and may
// be src.
func Fold(dst, src []byte) {
	dst = dst[:len(src)]
	for i, c := range src {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
}
