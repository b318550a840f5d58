// Package regex has the expressions that a query brings. They match as those of package regexp do,
// and cost no more than the query may spend.
//
// [Compile] bounds the size of an expression and takes its memory from the budget of the query. A
// match that may take long looks at the budget at each character, and finds nothing once the
// budget has ended.
package regex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"blobtail/internal/budget"
)

const (
	// mostText and mostSize bound an expression: its bytes, and the instructions of its
	// program. Repeats are counted as often as they may be: (a{1000}){1000} is a short text.
	mostText = 64 << 10
	mostSize = 200_000
	// longMatch is how many steps a match may take without a look at the budget: a second at
	// most. A step is one instruction at one byte.
	longMatch = 1 << 26
)

// A Regex is a compiled expression. It may be used by several goroutines at once.
type Regex struct {
	expr  *regexp.Regexp
	size  int // instructions
	cost  int64
	spent *budget.Budget
}

// Compile compiles an expression of package regexp for a query with a budget; nil: without
// bounds. An error is one of the expression, or of the budget.
func Compile(b *budget.Budget, expr string) (*Regex, error) {
	if len(expr) > mostText {
		return nil, fmt.Errorf("the expression has %d bytes, and at most %d are taken", len(expr), mostText)
	}
	draft := draftOf(expr)
	if err := b.Take(draft); err != nil {
		return nil, err
	}
	defer b.Give(draft)
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if sizeOf(tree) > mostSize {
		return nil, errors.New("the expression is too large: it has more than 200,000 steps, with each repeat counted")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	r := &Regex{size: len(program.Inst), cost: memory(program), spent: b}
	if err := b.Take(r.cost); err != nil {
		return nil, err
	}
	if r.expr, err = regexp.Compile(expr); err != nil {
		b.Give(r.cost)
		return nil, err
	}
	return r, nil
}

// draftOf is about how many bytes of memory the tree of an expression takes at most. It is needed
// while the expression is compiled.
func draftOf(expr string) int64 {
	const (
		partBytes  = 256      // of the part of one character
		tableBytes = 12 << 10 // of a class of Unicode, such as \pL
	)
	tables := strings.Count(expr, `\p`) + strings.Count(expr, `\P`)
	return partBytes*int64(len(expr)) + tableBytes*int64(tables)
}

// Close gives the memory back to the budget. The expression must not be used after it.
func (r *Regex) Close() { r.spent.Give(r.cost) }

// String is the text of the expression.
func (r *Regex) String() string { return r.expr.String() }

// SubexpNames are the names of its groups, as of [regexp.Regexp.SubexpNames].
func (r *Regex) SubexpNames() []string { return r.expr.SubexpNames() }

// sizeOf is about how many instructions a part of an expression has.
func sizeOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+sizeOf(sub), mostSize+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, mostSize+1)
}

const (
	instBytes    = 40 // of an instruction of a program
	onePassBytes = 72 // of one of a program in the form for one pass
	// onePassMost is the size from which on package regexp does not try that form.
	onePassMost = 1000
)

// memory is how many bytes a program takes at most. One that is anchored at the start may get a
// second form, in which each instruction has the table of the characters at which it goes on.
func memory(p *syntax.Prog) int64 {
	n := int64(len(p.Inst))*instBytes + classes(p)
	first := &p.Inst[p.Start]
	if len(p.Inst) >= onePassMost || first.Op != syntax.InstEmptyWidth || syntax.EmptyOp(first.Arg)&syntax.EmptyBeginText == 0 {
		return n
	}
	const runeBytes = 6 // four of the character, and half of the four of the next instruction
	t := tables{of: p, known: make([]int64, len(p.Inst)), state: make([]byte, len(p.Inst))}
	for i := range p.Inst {
		n += onePassBytes + runeBytes*t.runes(uint32(i))
	}
	return n
}

// classes is how many bytes the classes of a program take. The repeats of a class share one, and so do
// the characters of a text, of which each has the rest of it behind it.
func classes(p *syntax.Prog) (n int64) {
	const runeBytes = 4
	known := map[*rune]bool{}
	for i := range p.Inst {
		switch runes := p.Inst[i].Rune; {
		case len(runes) == 1:
			n += 2 * runeBytes // an array grows by doubling
		case len(runes) > 1 && !known[&runes[0]]:
			known[&runes[0]] = true
			n += runeBytes * int64(cap(runes))
		}
	}
	return n
}

// tables counts the characters in the tables of a program in the form for one pass.
type tables struct {
	of    *syntax.Prog
	known []int64
	state []byte // 0: not counted, 1: is being counted, 2: known
}

// runes is how many characters the table of an instruction has: its own, or those of the
// instructions behind it that it leads to without a character.
func (t *tables) runes(pc uint32) int64 {
	if t.state[pc] != 0 {
		return t.known[pc] // of a loop without characters nothing
	}
	t.state[pc] = 1
	switch i := &t.of.Inst[pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		t.known[pc] = t.runes(i.Out) + t.runes(i.Arg)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		t.known[pc] = t.runes(i.Out)
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		t.known[pc] = max(8, int64(len(i.Rune))) // a letter has up to four forms
	}
	t.state[pc] = 2
	return t.known[pc]
}

// long reports whether a match in so many bytes may take long.
func (r *Regex) long(n int) bool { return n*r.size > longMatch }

// Match reports whether a text has a match.
func (r *Regex) Match(text []byte) bool {
	if r.long(len(text)) {
		return r.expr.MatchReader(&patient{in: bytes.NewReader(text), of: r.spent})
	}
	return r.expr.Match(text)
}

// MatchString is Match of a string.
func (r *Regex) MatchString(text string) bool {
	if r.long(len(text)) {
		return r.expr.MatchReader(&patient{in: strings.NewReader(text), of: r.spent})
	}
	return r.expr.MatchString(text)
}

// FindSubmatchIndex returns the places of the first match and of its groups, as
// [regexp.Regexp.FindSubmatchIndex] does.
func (r *Regex) FindSubmatchIndex(text []byte) []int {
	if r.long(len(text)) {
		return r.expr.FindReaderSubmatchIndex(&patient{in: bytes.NewReader(text), of: r.spent})
	}
	return r.expr.FindSubmatchIndex(text)
}

// FindAllIndex returns the places of all matches in a text that people see.
func (r *Regex) FindAllIndex(text []byte) [][]int { return r.expr.FindAllIndex(text, -1) }

// patient reads a text until the budget ends.
type patient struct {
	in io.RuneReader
	of *budget.Budget
}

// ReadRune implements [io.RuneReader].
func (p *patient) ReadRune() (r rune, size int, err error) {
	if err := p.of.Err(); err != nil {
		return 0, 0, err
	}
	return p.in.ReadRune()
}

// ErrLong says that an expression may take too long for a text.
var ErrLong = errors.New("the expression takes too long for a text of this length")

// each calls with for each match in a text, and returns the text with the results in place of the
// matches. Each match may look at the rest of the text, so all of them may take long. It looks at
// the budget between them.
func (r *Regex) each(text string, with func() string) (out string, err error) {
	if float64(len(text))*float64(r.size) > longSearch {
		return "", ErrLong // one match cannot be interrupted
	}
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case over:
			err = ended.err
		default:
			panic(ended)
		}
	}()
	return r.expr.ReplaceAllStringFunc(text, func(string) string {
		if err := r.spent.Err(); err != nil {
			panic(over{err})
		}
		return with()
	}), nil
}

// over ends a search from within.
type over struct{ err error }

// Count counts the matches in a text. The error is [ErrLong], or that of the budget.
func (r *Regex) Count(text string) (n int, err error) {
	_, err = r.each(text, func() string { n++; return "" })
	return n, err
}

// ReplaceAllLiteral replaces each match in a text. The error is as of Count.
func (r *Regex) ReplaceAllLiteral(text, with string) (string, error) {
	return r.each(text, func() string { return with })
}

const (
	// longSearch is how many steps one match may take at most in a search for all matches. It is
	// also how many steps all of them may take together without a trial: some seconds, if each
	// step is one of the worst.
	longSearch = 1 << 28
	// longTrial is how long the trial may take.
	longTrial = time.Second
)

// ReplaceAll replaces each match in a text by a template, as [regexp.Regexp.ReplaceAllString]
// does. The error is as of Count.
func (r *Regex) ReplaceAll(text, with string) (string, error) {
	if !strings.Contains(with, "$") {
		return r.ReplaceAllLiteral(text, with)
	}
	if n := float64(len(text)); n*n/2*float64(r.size) > longSearch {
		begun := time.Now()
		if _, err := r.Count(text); err != nil {
			return "", err
		}
		if time.Since(begun) > longTrial {
			return "", ErrLong
		}
	}
	return r.expr.ReplaceAllString(text, with), nil
}
