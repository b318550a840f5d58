package patterns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/regex"
)

const (
	// maxExpr is the longest expression of a template; the rest of a longer template is not compared.
	maxExpr = 2000
	// mostApart is how many other templates an expression excludes.
	mostApart = 8
	// mostCompared is how many templates an expression is compared with, the most frequent ones.
	mostCompared = 2000
	// mostCompiled is how many of their expressions are held at once.
	mostCompiled = 100
	// star stands for a value in the text of a template.
	star = "<*>"
)

// text is a template as people read it.
func text(words [][]byte, f form) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && w[0] != unit {
			b.WriteByte(' ')
		}
		for _, c := range w {
			switch c {
			case wild, phrase:
				b.WriteString(star)
			case unit: // a part of the value before it
			default:
				b.WriteByte(c)
			}
		}
	}
	if f&(cut|more) != 0 {
		b.WriteString(" …")
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// idOf is the identity of a template: a hash of its words.
func idOf(words [][]byte) string {
	sum := sha256.Sum256(bytes.Join(words, []byte{between}))
	return hex.EncodeToString(sum[:4])
}

// expression is a regular expression that matches the messages of a template.
func expression(words [][]byte, f form) string {
	blank, value := " ", `\S+`
	if f&spaced != 0 {
		blank = `\s+`
	}
	if f&loose != 0 {
		value = `\S+(?:` + blank + `\S+)*?`
	}
	var b strings.Builder
	b.WriteByte('^')
	if f&spaced != 0 {
		b.WriteString(`\s*`)
	}
	for i, w := range words {
		if i > 0 {
			b.WriteString(blank)
		}
		for len(w) > 0 {
			n := bytes.IndexAny(w, "\x01\x02\x03 ")
			if n < 0 {
				n = len(w)
			}
			b.WriteString(regexp.QuoteMeta(string(w[:n])))
			if w = w[n:]; len(w) == 0 {
				break
			}
			switch w[0] {
			case wild:
				b.WriteString(value)
			case phrase:
				b.WriteString(`.*?`)
			case unit:
				b.WriteString(`[KMGTPk]?i?B`)
			default:
				b.WriteString(blank)
			}
			w = w[1:]
		}
		if f&aside != 0 && bytes.EqualFold(words[i], []byte("bytes")) {
			b.WriteString(`(?: \([^()]*\))?`)
		}
		if b.Len() > maxExpr && i+1 < len(words) {
			return b.String()
		}
	}
	switch {
	case f&(cut|more) == cut:
	case f&more != 0:
		b.WriteString(`\s*(?:\n|$)`)
	case f&spaced != 0:
		b.WriteString(`\s*$`)
	default:
		b.WriteByte('$')
	}
	// Parentheses without anything in them are a value too.
	return strings.ReplaceAll(b.String(), `\(`+value+`\)`, `\((?:`+value+`)?\)`)
}

// condition is an expression of package where for an expression over messages.
func condition(expr string) string {
	if expr == "^$" || expr == `^\s*\s*$` {
		return `(msg == nil or msg matches "^\\s*$")`
	}
	return `msg matches "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(expr) + `"`
}

// apart adds to each of some patterns the condition that is true for its messages and not for those
// of others, as far as that is found by an example of each. An error is that of the budget.
func apart(b *budget.Budget, listed, all []*Pattern) error {
	others := expressions{budget: b, of: map[*Pattern]*regex.Regex{}}
	defer others.close()
	for _, p := range listed {
		p.Where = condition(p.expr)
		re, err := regex.Compile(b, p.expr)
		if ended := b.Err(); ended != nil {
			return ended
		}
		if err != nil {
			continue
		}
		err = others.exclude(p, re, all[:min(len(all), mostCompared)])
		re.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// expressions are those of other patterns, compiled. There are mostCompiled at most.
type expressions struct {
	budget *budget.Budget
	of     map[*Pattern]*regex.Regex // nil: it cannot be compiled
}

// exclude adds to the condition of a pattern the others that overlap it.
func (x *expressions) exclude(p *Pattern, re *regex.Regex, all []*Pattern) error {
	others := 0
	for _, q := range all {
		if err := x.budget.Err(); err != nil {
			return err
		}
		if q == p || !re.MatchString(q.sample) {
			continue
		}
		if other := x.get(q); other != nil && !other.MatchString(p.sample) {
			p.Where += " and not (" + condition(q.expr) + ")"
			if others++; others == mostApart {
				break
			}
		}
	}
	return x.budget.Err()
}

// get returns the expression of a pattern; nil: it cannot be compiled, or the budget has ended.
func (x *expressions) get(p *Pattern) *regex.Regex {
	re, ok := x.of[p]
	if ok {
		return re
	}
	if len(x.of) == mostCompiled {
		x.close()
	}
	re, err := regex.Compile(x.budget, p.expr)
	if err != nil {
		re = nil
	}
	x.of[p] = re
	return re
}

func (x *expressions) close() {
	for _, re := range x.of {
		if re != nil {
			re.Close()
		}
	}
	clear(x.of)
}
