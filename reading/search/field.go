package search

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isNumber reports whether a word is a number, perhaps with _ between its digits.
func isNumber(word string) bool {
	f, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64)
	return reNumber.re().MatchString(word) && err == nil && !math.IsInf(f, 0)
}

// field reads a field with its value; nil: there is none here.
func (p *parser) field() (*node, error) {
	at := p.at
	name, exact, err := p.quoted()
	if err != nil {
		return nil, err
	}
	if !exact {
		parts := p.take(&reName)
		if parts == nil {
			return nil, nil
		}
		name = parts[0]
	}
	if name == "" {
		p.at = at
		return nil, nil
	}
	if !exact && (name == "@timestamp" || name == "_time") {
		name = "ts"
	}
	n, err := p.behind(&node{kind: kindField, name: name}, exact)
	if n == nil && err == nil {
		p.at = at
	}
	return n, err
}

// behind reads what is behind the name of a field; nil: the name is none.
func (p *parser) behind(n *node, exact bool) (*node, error) {
	rest := p.rest()
	if strings.HasPrefix(rest, ":") && !exact {
		return p.colon(n)
	}
	if in := reIn.re().FindString(rest); in != "" && !exact {
		at := p.at
		p.at += len(in) - 1
		if list, err := p.list(n, false); list != nil || err != nil {
			return list, err
		}
		p.at = at
	}
	from := p.at
	sign := ""
	if parts := p.take(&reSign); parts != nil {
		sign = parts[0]
	} else if parts := reSpaced.re().FindStringSubmatch(rest); parts != nil && !exact && p.spaced(n, parts[0], parts[1]) {
		sign = parts[1]
		p.at += len(parts[0])
	} else {
		return nil, nil
	}
	if sign != "=" {
		p.take(&reBlanks)
	}
	n.op = "="
	switch sign {
	case ">", ">=", "<", "<=":
		n.op = sign
	case "!=", "!~":
		n.not = true
	}
	if sign == "=~" || sign == "!~" {
		return p.like(n)
	}
	if n.op == "=" && strings.HasPrefix(p.rest(), "(") {
		if list, err := p.list(n, false); list != nil || err != nil {
			return list, err
		}
	}
	return p.value(n, p.line[from:p.at])
}

// spaced reports whether a sign with blanks around it is one: the same characters are texts too.
func (p *parser) spaced(n *node, all, sign string) bool {
	if c := []rune(n.name)[:min(1, len([]rune(n.name)))]; len(c) == 0 || unicode.IsDigit(c[0]) {
		return false
	}
	at := p.at + len(all)
	if p.ends(at) {
		return false
	}
	if sign[0] != '<' && sign[0] != '>' {
		return true
	}
	word := p.line[at:]
	if i := strings.IndexFunc(word, func(c rune) bool { return unicode.IsSpace(c) || c == ')' }); i >= 0 {
		word = word[:i]
	}
	return strings.HasPrefix(word, `"`) || word != "" && (n.name == "level" || n.name == "ts") || isNumber(word)
}

// like reads the expression behind =~ and !~.
func (p *parser) like(n *node) (*node, error) {
	n.form = formExpr
	at := p.at
	if re, ok := p.expr(); ok {
		n.value = re
		return n, nil
	}
	value, ok, err := p.quoted()
	if err != nil {
		return nil, err
	}
	if !ok {
		value = p.word()
	}
	slashes := slashed(value)
	if reExpr.re().FindString(slashes) != slashes {
		return nil, p.mistake(at, "an expression is missing here: write =~/re/")
	}
	n.value = slashes[1 : len(slashes)-1]
	return n, nil
}

// value reads the value behind a sign.
func (p *parser) value(n *node, sign string) (*node, error) {
	at := p.at
	if n.op == "=" {
		if re, ok := p.expr(); ok {
			n.form, n.value = formExpr, re
			return n, nil
		}
	}
	value, ok, err := p.quoted()
	if err != nil {
		return nil, err
	}
	if ok {
		n.form, n.value = formQuoted, value
		return n, p.level(n, at)
	}
	sign = strings.TrimSpace(sign)
	word := p.word()
	switch {
	case word == "":
		return nil, p.mistake(at, "a value is missing behind "+sign+`: write "" for an empty one, and quotes around a text with `+sign)
	case word[0] == '~':
		return nil, p.mistake(at, "for an expression write =/re/")
	case n.op != "=" && n.name != "level" && n.name != "ts" && !isNumber(word):
		return nil, p.mistake(at, word+" is no number: write "+sign+`"`+word+`" to compare texts, and quotes around a text with `+sign)
	}
	n.word(word)
	return n, p.level(n, at)
}

// word sets a value that is a word. One with half a pair of parentheses has another form, so that
// it can be a part of a group.
func (n *node) word(value string) {
	n.form, n.value = formWord, value
	if strings.Count(value, "(") == strings.Count(value, ")") {
		return
	}
	if n.form = formQuoted; strings.Contains(value, "*") {
		slashes := slashed("(?s)^" + glob(value) + "$")
		n.form, n.value = formExpr, slashes[1:len(slashes)-1]
	}
}

// level checks that a level is one, and that a text has characters.
func (p *parser) level(n *node, at int) error {
	if n.kind == kindMsg && n.value == "" {
		return p.mistake(at, `an empty text is in every message: leave it out, or write msg=""`)
	}
	if _, _, wrong := ofLevels(n); wrong != "" {
		return p.mistake(at, "no level "+quote(wrong)+": write level=error,warn or level>=warn; "+
			"levels are trace, debug, info, warn, error, critical, other")
	}
	return nil
}

// list reads values in parentheses, of which one counts; nil: there is no list.
func (p *parser) list(n *node, either bool) (*node, error) {
	at := p.at
	if p.closing(p.at+1, `"`) < 0 {
		return nil, nil
	}
	p.at++
	p.depth++
	defer func() { p.depth-- }()
	all := &node{kind: kindOr, not: n.not}
	for {
		for p.at < len(p.line) && (p.line[p.at] == ',' || unicode.IsSpace(rune(p.line[p.at]))) {
			p.at++
		}
		if len(all.sub) > 0 && p.joined("OR", "||") {
			continue
		}
		if p.at >= len(p.line) || p.line[p.at] == ')' {
			break
		}
		begin := p.at
		one := &node{kind: n.kind, name: n.name, op: "=", begin: p.columnOf(begin)}
		if re, ok := p.expr(); ok {
			one.form, one.value = formExpr, re
		} else if value, ok, err := p.quoted(); err != nil {
			return nil, err
		} else if ok {
			if one.form, one.value = formQuoted, value; either && isConstant(value) {
				one.form = formWord
			}
		} else if one.value = p.listed(); strings.IndexByte("=~<>!(", one.value[0]) >= 0 {
			return nil, p.mistake(begin, `put quotes around a value that begins with a sign: "`+one.value+`"`)
		}
		if either {
			one.message()
		}
		if err := p.level(one, begin); err != nil {
			return nil, err
		}
		all.sub = append(all.sub, one)
	}
	if p.at >= len(p.line) || len(all.sub) == 0 {
		p.at = at
		return nil, nil
	}
	p.at++
	if len(all.sub) == 1 {
		all.sub[0].not = all.not
		return all.sub[0], nil
	}
	return all, nil
}

// listed reads a word of a list, which ends at a comma, unless it is one of levels.
func (p *parser) listed() string {
	begin := p.at
	word := p.word()
	if i := strings.IndexByte(word, ','); i > 0 {
		word = word[:i]
		p.at = begin + i
	}
	return word
}

// colon reads what is behind a colon; nil: the whole is a text.
func (p *parser) colon(n *node) (*node, error) {
	at := p.at
	p.at++
	rest, plain := p.rest(), strings.TrimLeft(n.name, "@")
	first, _ := utf8.DecodeRuneInString(plain)
	if plain == "" || first == '-' || unicode.IsDigit(first) || p.ends(p.at) || rest[0] == ':' || strings.HasPrefix(rest, "//") {
		return nil, nil
	}
	switch n.name = plain; plain {
	case "_msg", "message":
		n.name = "msg"
	case "_stream":
		return nil, p.mistake(at, "there are no streams: write "+p.search(at-len(n.name)))
	case "_exists_":
		n.op, n.value, n.name = "=", "*", p.word()
		return n, nil
	}
	if n.name == "ts" {
		return nil, p.mistake(at, "the range of times is not a part of the search: choose it, by --since, or from= and to=")
	}
	n.op = "="
	switch c := rest[0]; {
	case c == '[' || c == '{':
		return p.span(n)
	case c == '(' || strings.HasPrefix(rest, "in("):
		p.at += strings.IndexByte(rest, '(')
		return p.list(n, true)
	case c == '=':
		p.at++
		return p.value(n, ":=")
	case c == '~':
		p.at++
		return p.like(n)
	case c == '>' || c == '<':
		op := reCompare.re().FindString(rest)
		p.at += len(op)
		if word := p.word(); isNumber(word) || n.name == "level" {
			n.op, n.value = op, word
			return n, p.level(n, at)
		}
		return nil, nil
	}
	return p.behindColon(n)
}

// behindColon reads one value.
func (p *parser) behindColon(n *node) (*node, error) {
	at := p.at
	n.colon = n.name != "level" && n.name != "service" && n.name != "msg"
	if re, ok := p.expr(); ok {
		n.form, n.value, n.colon = formExpr, re, false
		return n, nil
	}
	value, ok, err := p.quoted()
	switch {
	case err != nil:
		return nil, err
	case ok:
		n.form, n.value, n.colon = formQuoted, value, n.colon && value != ""
		if isConstant(value) && n.colon {
			n.form = formEither
		}
	default:
		n.word(p.word())
		if strings.Contains(n.value, ":") && n.colon {
			return nil, nil
		}
		n.colon = n.colon && n.form != formExpr && n.value != "*"
	}
	n.message()
	return n, p.level(n, at)
}

// message makes a field one of what the message has in it, if it is msg.
func (n *node) message() {
	if n.name != "msg" {
		return
	}
	if n.kind = kindMsg; n.form != formWord {
		return
	}
	if n.typed(n.value); n.value == "" {
		n.kind, n.value = kindField, "*"
	} else if !isGlob(n) {
		n.form = formQuoted
	}
}

// span reads a range of values; nil: there is none.
func (p *parser) span(n *node) (*node, error) {
	parts := reSpan.re().FindStringSubmatch(p.rest())
	if parts == nil {
		return nil, nil
	}
	all := &node{kind: kindAnd}
	for _, end := range []struct{ op, value string }{
		{map[string]string{"[": ">=", "{": ">"}[parts[1]], parts[2]},
		{map[string]string{"]": "<=", "}": "<"}[parts[4]], parts[3]},
	} {
		if end.value == "*" {
			continue
		}
		one := &node{kind: kindField, name: n.name, op: end.op, value: strings.Trim(end.value, `"`), begin: p.columnOf(p.at)}
		if !isNumber(one.value) && n.name != "level" {
			one.form = formQuoted
		}
		if err := p.level(one, p.at); err != nil {
			return nil, err
		}
		all.sub = append(all.sub, one)
	}
	p.at += len(parts[0])
	switch len(all.sub) {
	case 0:
		return &node{kind: kindField, name: n.name, op: "=", value: "*"}, nil
	case 1:
		return all.sub[0], nil
	}
	return all, nil
}

// isConstant reports whether a text is that of a value of JSON which is no text.
func isConstant(text string) bool {
	return isNumber(text) || text == "true" || text == "false" || text == "null"
}
