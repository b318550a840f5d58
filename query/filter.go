package query

import (
	"bytes"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"blobtail/record"
)

// LevelSet is a set of levels. The zero value is empty, and in a [Filter] it means
// all levels.
type LevelSet uint8

const allLevels LevelSet = 1<<record.NumLevels - 1

// Has reports whether l is in the set.
func (s LevelSet) Has(l record.Level) bool { return s>>l&1 != 0 }

// ParseLevels parses a list such as "error,critical" or "warn+" (warn and all above
// it). An alias counts as its level; "other" stands for all words that are no level.
func ParseLevels(text string) (LevelSet, error) {
	var set LevelSet
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		name, above := strings.CutSuffix(word, "+")
		l := record.ParseLevel([]byte(name))
		if name == "" || l == record.Other && name != record.Other.String() {
			return 0, fmt.Errorf("no level %q; levels are trace, debug, info, warn, error, critical, other", word)
		}
		set |= 1 << l
		if above {
			set |= upFrom(l)
		}
	}
	return set, nil
}

// Lowest is the lowest level in the set.
func (s LevelSet) Lowest() record.Level {
	return record.Level(min(bits.TrailingZeros8(uint8(s)), int(record.Other)))
}

// upFrom is the set of a level and those above it. Other is neither high nor low.
func upFrom(l record.Level) LevelSet { return 1<<record.Other - 1<<l }

// Filter selects records of the range. All parts must match.
//
// Texts and expressions are matched against the stored line from the value of msg to
// its end, so a text finds a field's value as well as the message. `"` and control
// characters in a text are escaped as a stored line escapes them.
type Filter struct {
	Levels LevelSet // 0: all
	Texts  []string // each must occur
	Exprs  []string // RE2, each must match
	Invert bool     // wanted are the lines that the texts and expressions do not all match
	Fold   bool     // upper and lower case of ASCII letters are equal
}

// Matcher is a compiled [Filter]. It may be used by several goroutines at once.
type Matcher struct {
	levels, high LevelSet // high: those above the lowest of levels that are not in it
	texts        [][]byte // escaped; folded if fold; the longest first
	exprs        []*regexp.Regexp
	invert, fold bool
}

// Matcher compiles the filter; an error is a [*BadQueryError].
func (f Filter) Matcher() (*Matcher, error) {
	m := &Matcher{levels: f.Levels, invert: f.Invert, fold: f.Fold}
	if m.levels == 0 {
		m.levels = allLevels
	}
	m.high = upFrom(m.levels.Lowest()) &^ m.levels
	for _, text := range f.Texts {
		if text == "" {
			return nil, badQuery("an empty text matches every record; leave it out")
		}
		b := record.AppendEscaped(nil, []byte(text))
		if f.Fold {
			foldASCII(b, b)
		}
		m.texts = append(m.texts, b)
		if last := len(m.texts) - 1; len(b) > len(m.texts[0]) {
			m.texts[0], m.texts[last] = m.texts[last], m.texts[0]
		}
	}
	for _, expr := range f.Exprs {
		if expr == "" {
			return nil, badQuery("an empty expression matches every record; leave it out")
		}
		if f.Fold {
			expr = "(?i:" + expr + ")"
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, badQuery("%w; to search text as it is: -F", err)
		}
		m.exprs = append(m.exprs, re)
	}
	if m.invert && !m.hasText() {
		return nil, badQuery("-v inverts text filters: add -F or -g")
	}
	return m, nil
}

func (m *Matcher) hasText() bool { return len(m.texts)+len(m.exprs) > 0 }

// Line reports whether the filter accepts a line, which ends in a newline.
func (m *Matcher) Line(line []byte) bool {
	want, _ := m.line(line, m.folded(line))
	return want
}

// folded returns the bytes in which texts are searched: a folded copy, or the same.
func (m *Matcher) folded(raw []byte) []byte {
	if !m.fold || len(m.texts) == 0 {
		return raw
	}
	low := make([]byte, len(raw))
	foldASCII(low, raw)
	return low
}

// text reports whether all texts and expressions match the searchable part of a line. low
// is the same bytes folded, or the same slice.
func (m *Matcher) text(tail, low []byte) bool {
	for _, t := range m.texts {
		if !bytes.Contains(low, t) {
			return false
		}
	}
	for _, re := range m.exprs {
		if !re.Match(tail) {
			return false
		}
	}
	return true
}

// foldASCII writes src to dst with ASCII letters in lower case; dst is at least
// as long and may be src.
func foldASCII(dst, src []byte) {
	dst = dst[:len(src)]
	for i, c := range src {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
}
