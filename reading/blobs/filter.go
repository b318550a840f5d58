package blobs

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/grep"
	"blobtail/internal/where"
	"blobtail/record"
)

// LevelSet is a set of levels. The zero value is empty, and in a [Filter] it means
// all levels.
type LevelSet uint8

const allLevels LevelSet = 1<<record.NumLevels - 1

// Has reports whether l is in the set.
func (s LevelSet) Has(l record.Level) bool { return s>>l&1 != 0 }

// Without returns the set without some levels. If none is left, no record can match.
func (s LevelSet) Without(not LevelSet) LevelSet {
	if s == 0 {
		s = allLevels
	}
	if s &^= not; s == 0 {
		return noLevel
	}
	return s
}

// noLevel is the set in which there is no level.
const noLevel LevelSet = 1 << 7

// ParseLevels parses a list such as "error,critical" or "warn+" (warn and all above
// it). An alias counts as its level; "other" stands for all words that are no level.
func ParseLevels(text string) (LevelSet, error) {
	var set LevelSet
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		name, above := strings.CutSuffix(word, "+")
		l := record.ParseLevel([]byte(name))
		if name == "" || l == record.Other && name != record.Other.String() {
			return 0, fmt.Errorf("no level %q; levels are trace, debug, info, warn, error, critical, other: write error,critical or warn+", word)
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

// Filter selects records of the range. All parts must match. Package grep defines the texts of a
// record.
type Filter struct {
	Levels LevelSet // 0: all
	Barred LevelSet // left out of Levels on purpose: they do not count as higher ones
	Texts  []string // each must occur
	Words  []string // each must occur, between borders of words
	Exprs  []string // RE2, each must match
	// Without are texts of which none may occur. Invert does not count for them.
	Without []string
	Where   *where.Expr // nil: all records match
	Invert  bool        // wanted are the records that Texts, Words and Exprs do not all match
	Fold    bool        // upper and lower case of ASCII letters are equal
	// Accept decides at last; nil: it accepts all. It gets the stored line with its newline,
	// which it must not change or keep. It is asked for lines that the other parts accept, and
	// before any limit counts. Several goroutines ask it at once, in any order, and for some
	// lines more than once. So it has to decide by the line alone.
	Accept func(line []byte) bool
	// Unjudged returns for how many lines so far Accept could not decide, and why; nil: it always
	// can. A result is not complete then.
	Unjudged func() (lines int64, why error)
}

// ReadsLines reports whether the filter needs more of a record than its time and level.
func (f *Filter) ReadsLines() bool {
	return len(f.Texts)+len(f.Words)+len(f.Exprs)+len(f.Without) > 0 || f.Where != nil || f.Accept != nil
}

// Matcher is a compiled [Filter]. It may be used by several goroutines at once.
type Matcher struct {
	levels, high LevelSet        // high: those above the lowest of levels that are not in it
	patterns     []*grep.Pattern // the one that rules out most lines is first
	without      []*grep.Pattern // of which none may match
	where        *where.Expr
	accept       func(line []byte) bool // nil: all
	unjudged     func() (int64, error)  // by accept; nil: none
	invert       bool
	folds        bool // a pattern needs lines in lower case
	// id is that of the filter, if it is known: [Filter.identity].
	id     [32]byte
	known  bool
	budget *budget.Budget
}

// Matcher compiles the filter for a query with a budget; nil: without bounds. An error is a
// [*BadQueryError], or that of the budget. Once the budget has ended, no line matches.
func (f Filter) Matcher(b *budget.Budget) (*Matcher, error) {
	m := &Matcher{budget: b, levels: f.Levels, where: f.Where, accept: f.Accept, unjudged: f.Unjudged, invert: f.Invert}
	if m.levels == 0 {
		m.levels = allLevels
	}
	m.id, m.known = f.identity()
	m.high = upFrom(m.levels.Lowest()) &^ m.levels &^ f.Barred
	if slices.Contains(slices.Concat(f.Texts, f.Words, f.Exprs, f.Without), "") {
		return nil, badQuery("an empty text matches every record; leave it out")
	}
	for _, text := range f.Without {
		m.without = append(m.without, grep.Fixed(text, f.Fold))
	}
	for _, text := range f.Texts {
		m.patterns = append(m.patterns, grep.Fixed(text, f.Fold))
	}
	for _, word := range f.Words {
		m.patterns = append(m.patterns, grep.Word(word, f.Fold))
	}
	for _, expr := range f.Exprs {
		p, err := grep.Expr(b, expr, f.Fold)
		if b.Err() != nil {
			return nil, b.Err()
		}
		if err != nil {
			if strings.Contains(expr, "(?<") || strings.Contains(expr, "(?=") || strings.Contains(expr, "(?!") {
				err = fmt.Errorf("%w (RE2 has no lookbehind and no lookahead)", err)
			}
			return nil, badQuery("%w; to search text as it is: -F", err)
		}
		m.patterns = append(m.patterns, p)
	}
	slices.SortStableFunc(m.patterns, func(a, b *grep.Pattern) int { return cmp.Compare(b.Weight(), a.Weight()) })
	m.folds = slices.ContainsFunc(slices.Concat(m.patterns, m.without), (*grep.Pattern).Folds)
	if m.invert && len(m.patterns) == 0 {
		return nil, badQuery("-v inverts text filters: add -F, -w or -g")
	}
	return m, nil
}

func (m *Matcher) readsLines() bool {
	return len(m.patterns)+len(m.without) > 0 || m.where != nil || m.accept != nil
}

// Line reports whether the filter accepts a line, which ends in a newline.
func (m *Matcher) Line(line []byte) bool {
	want, _ := m.line(line, m.folded(line), new(grep.Line))
	return want
}

// folded returns the bytes in which folded texts are searched: a folded copy, or the same.
func (m *Matcher) folded(raw []byte) []byte {
	if !m.folds {
		return raw
	}
	low := make([]byte, len(raw))
	grep.Fold(low, raw)
	return low
}

// line reports whether a line is wanted. If it is not, high reports whether only its
// level is wrong, and above a wanted one. low is the same bytes folded, or the same slice.
func (m *Matcher) line(line, low []byte, scratch *grep.Line) (want, high bool) {
	want = true
	if m.budget.Err() != nil {
		return false, false
	}
	if m.levels != allLevels {
		l := record.LineLevel(line)
		want, high = m.levels.Has(l), m.high.Has(l)
		if !want && !high {
			return false, false
		}
	}
	end := max(0, len(line)-1)
	if len(m.patterns)+len(m.without) > 0 {
		scratch.Set(line[:end], low[:end])
		if len(m.patterns) > 0 && m.all(scratch) == m.invert || m.any(scratch) {
			return false, false
		}
	}
	if m.where != nil && !m.where.Match(line[:end]) {
		return false, false
	}
	if m.accept != nil && !m.accept(line) {
		return false, false
	}
	return want, high
}

// Unjudged returns how many lines the filter could not judge so far, and the reason as the problem
// of a read; nil: it has judged all.
func (m *Matcher) Unjudged() (lines int64, problem error) {
	if m.where != nil {
		if n, why := m.where.Unjudged(); n > 0 {
			lines, problem = n, fmt.Errorf("where: it is not known of some records whether they match: %w", why)
		}
	}
	if m.unjudged != nil {
		if n, why := m.unjudged(); n > 0 {
			lines, problem = lines+n, cmp.Or(problem, fmt.Errorf("it is not known of some records whether they match: %w", why))
		}
	}
	return lines, problem
}

// tellUnjudged makes a problem of the records that the filter could not judge.
func (m *Matcher) tellUnjudged(sum *Summary) {
	if _, problem := m.Unjudged(); problem != nil {
		sum.Problems = joined(sum.Problems, []error{problem})
	}
}

// tellUnjudged is that of the filter of a read. A part of a plan does not tell it.
func (a *asked) tellUnjudged(sum *Summary) {
	if !a.part {
		a.match.tellUnjudged(sum)
	}
}

// Spans returns where the text filters match in a text that people see: start and end of
// each match, in order, none within another. There are none if the filter is inverted.
func (m *Matcher) Spans(text []byte) (spans [][2]int) {
	if m.invert {
		return nil
	}
	for _, p := range m.patterns {
		spans = p.Spans(spans, text)
	}
	if len(m.patterns) < 2 || len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], b[1]-a[1]) })
	n := 1
	for _, s := range spans[1:] {
		if last := &spans[n-1]; s[0] <= last[1] {
			last[1] = max(last[1], s[1])
		} else {
			spans[n] = s
			n++
		}
	}
	return spans[:n]
}

func (m *Matcher) all(line *grep.Line) bool {
	for _, p := range m.patterns {
		if !p.Match(line) {
			return false
		}
	}
	return true
}

// any reports whether a text is in the line that must not be in it.
func (m *Matcher) any(line *grep.Line) bool {
	return slices.ContainsFunc(m.without, func(p *grep.Pattern) bool { return p.Match(line) })
}
