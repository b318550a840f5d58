package patterns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	// maxExpr is the longest expression of a template; the rest of a longer template is not compared.
	maxExpr = 2000
	// mostApart is how many other templates an expression excludes.
	mostApart = 8
	// mostCompared is how many templates an expression is compared with, the most frequent ones.
	mostCompared = 2000
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
// of others, as far as that is found by an example of each.
func apart(listed, all []*Pattern) {
	compiled := map[*Pattern]*regexp.Regexp{}
	of := func(p *Pattern) *regexp.Regexp {
		re, ok := compiled[p]
		if !ok {
			re, _ = regexp.Compile(p.expr)
			compiled[p] = re
		}
		return re
	}
	for _, p := range listed {
		p.Where = condition(p.expr)
		re, others := of(p), 0
		if re == nil {
			continue
		}
		for _, q := range all[:min(len(all), mostCompared)] {
			if q == p || others == mostApart || !re.MatchString(q.sample) {
				continue
			}
			if other := of(q); other != nil && !other.MatchString(p.sample) {
				p.Where += " and not (" + condition(q.expr) + ")"
				others++
			}
		}
	}
}
