package search

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"blobtail/internal/regex"
	"blobtail/internal/where"
)

// mostLine is how many bytes a line has at most, as a condition of package where.
const mostLine = 64 << 10

// Parse reads a line of at most 64 KiB. The error is a [*Mistake]. A line without a term asks for all
// records.
func Parse(line string) (*Query, error) {
	line = strings.ToValidUTF8(line, "\ufffd")
	p := &parser{line: line}
	if len(line) > mostLine {
		return nil, p.mistake(mostLine, "a search has at most 65,536 bytes: leave some terms out")
	}
	root, err := p.or()
	if err == nil && p.at < len(line) {
		err = p.mistake(p.at, "a blank is missing here")
	}
	if p.looked > mostLooked*len(line) {
		err = p.mistake(0, "so many ( without a ) cannot be read: put quotes around texts with them")
	}
	if err == nil {
		err = root.check(line)
	}
	if err != nil {
		return nil, err
	}
	return &Query{root: root, notes: p.notes}, nil
}

// check compiles the expressions and conditions of a node, and tells it its line.
func (n *node) check(line string) (err error) {
	n.line = line
	switch {
	case n.kind == kindWhere:
		if _, err = where.Parse(nil, n.value, false); err != nil {
			return n.mistake("where: " + err.Error())
		}
	case n.form == formExpr:
		if _, err = regex.Compile(nil, n.value); err == nil {
			break
		}
		text := err.Error() + "; quotes are for a text as it is"
		if strings.Contains(n.value, "(?") {
			text += "; RE2 has no lookbehind and no lookahead"
		}
		return n.mistake(text)
	}
	for _, sub := range n.sub {
		if err = sub.check(line); err != nil {
			return err
		}
	}
	return nil
}

type parser struct {
	line  string
	at    int
	depth int // of groups
	notes []string
	// seen is a place whose column is known, so that a line of many terms is not counted for each.
	seen, column int
	looked       int // bytes in which the end of a group was looked for
}

// columnOf is the column of a place.
func (p *parser) columnOf(at int) int {
	if at < p.seen {
		p.column -= utf8.RuneCountInString(p.line[at:p.seen])
	} else {
		p.column += utf8.RuneCountInString(p.line[p.seen:at])
	}
	p.seen = at
	return p.column + 1
}

// A pattern is an expression that is compiled when it is first used: the start of a command that reads
// no search has no time for it.
type pattern struct {
	text string
	once sync.Once
	of   *regexp.Regexp
}

func (p *pattern) re() *regexp.Regexp {
	p.once.Do(func() { p.of = regexp.MustCompile(p.text) })
	return p.of
}

// The lexemes of a line, each at its place.
var (
	reBlanks = pattern{text: `^\s*`}
	reQuoted = pattern{text: `^"((?:[^"\\]|\\(?s:.))*)"`}
	reExpr   = pattern{text: `^/((?:[^/\\]|\\(?s:.))+)/`}
	reName   = pattern{text: `^[\p{L}\p{N}_.@$#-]+`}
	reSign   = pattern{text: `^(?:!=|!~|=~|==?|[<>]=?)`}
	reSpaced = pattern{text: `^\s*(!=|!~|=~|==|[<>]=?)\s*`}
	reIn     = pattern{text: `^\s+(?:in|IN)\s*\(`}
	reSpan   = pattern{text: `^([\[{])\s*(\S+)\s+TO\s+([^\s\]}]+)\s*([\]}])`}
	reJoin   = pattern{text: `^(?:AND|OR|NOT)(?:\s|\(|$)`}
	reLogQL  = pattern{text: `^(?:[{},\s]|\|\s*(?:json|logfmt|unpack)\b|\|\s)*([\w.]*)\s*(\|=|\|~|=~|!~|!=|==?|[<>]=?)\s*` +
		`("(?:[^"\\]|\\.)*"|` + "`[^`]*`" + `|[\d.]+\b)`}
	reMarked  = pattern{text: `^[+!]["(\p{L}]`}
	reStages  = pattern{text: `^\|(?:[=~]|\s*\w)`}
	reFuzzy   = pattern{text: `^[\p{L}\p{N}_]+(?:~[\d.]*|\^[\d.]+)$`}
	reEscape  = pattern{text: `\\(?:["\\bfnrt]|u[\da-fA-F]{4})|[\\\x00-\x1f]`}
	reNumber  = pattern{text: `(?i)^-?(?:0|[1-9][\d_]*)(?:\.\d+)?(?:e[+-]?\d+)?$`}
	reCompare = pattern{text: `^(?:>=?|<=?)`}
)

func (p *parser) mistake(at int, text string) error {
	return &Mistake{p.line, column(p.line, at), text}
}

// take reads a lexeme, or nothing.
func (p *parser) take(of *pattern) (parts []string) {
	parts = of.re().FindStringSubmatch(p.line[p.at:])
	if parts != nil {
		p.at += len(parts[0])
	}
	return parts
}

func (p *parser) rest() string { return p.line[p.at:] }

// ends reports whether a term may end at a place.
func (p *parser) ends(at int) bool {
	if at >= len(p.line) {
		return true
	}
	c, _ := utf8.DecodeRuneInString(p.line[at:])
	return unicode.IsSpace(c) || c == ')' && p.depth > 0
}

// joined reads one of two words for a conjunction.
func (p *parser) joined(word, sign string) bool {
	p.take(&reBlanks)
	if rest := p.rest(); strings.HasPrefix(rest, sign) && !strings.HasPrefix(rest, sign+"=") {
		p.at += len(sign)
		return true
	} else if strings.HasPrefix(rest, word) && reJoin.re().MatchString(rest) {
		p.at += len(word)
		return true
	}
	return false
}

func (p *parser) or() (*node, error) {
	n := &node{kind: kindOr}
	for {
		sub, err := p.and()
		if err != nil {
			return nil, err
		}
		n.sub = append(n.sub, sub)
		at := p.at
		if !p.joined("OR", "||") {
			if len(n.sub) == 1 {
				return sub, nil
			}
			return n, nil
		}
		if p.take(&reBlanks); len(sub.sub) == 0 && sub.kind == kindAnd || p.ends(p.at) {
			return nil, p.mistake(at, `OR joins two terms: write a OR b, and "OR" for the text`)
		}
	}
}

func (p *parser) and() (*node, error) {
	n := &node{kind: kindAnd}
	for {
		p.take(&reBlanks)
		at := p.at
		if p.at >= len(p.line) || p.depth > 0 && p.line[at] == ')' || p.joined("OR", "||") {
			p.at = at
			break
		}
		if p.joined("AND", "&&") {
			if p.take(&reBlanks); len(n.sub) == 0 || p.ends(p.at) {
				return nil, p.mistake(at, `AND joins two terms: write a AND b, and "AND" for the text`)
			}
			continue
		}
		sub, err := p.term()
		if err == nil && !p.ends(p.at) {
			err = p.mistake(p.at, "a blank is missing here; ~ and ^ are no signs of a search")
		}
		if err != nil {
			return nil, err
		}
		n.sub = append(n.sub, sub)
	}
	if len(n.sub) == 1 {
		return n.sub[0], nil
	}
	return n, nil
}

// term reads a term with what turns it round.
func (p *parser) term() (*node, error) {
	at, not := p.at, false
	begin := p.columnOf(at)
	if rest := p.rest(); len(rest) > 1 && rest[0] == '-' && !p.ends(p.at+1) {
		p.at++
		not = true
	}
	read := p.positive
	if rest := p.rest(); strings.HasPrefix(rest, "NOT") && reJoin.re().MatchString(rest) {
		p.at += len("NOT")
		if p.take(&reBlanks); p.ends(p.at) {
			return nil, p.mistake(at, `NOT stands before a term: write NOT a, and "NOT" for the text`)
		}
		read, not = p.term, !not
	}
	n, err := read()
	if err == nil {
		n.not, n.begin = n.not != not, begin
	}
	return n, err
}

func (p *parser) positive() (*node, error) {
	rest := p.rest()
	switch {
	case strings.HasPrefix(rest, "where:("):
		return p.where()
	case rest[0] == '(':
		if n, err := p.group(); n != nil || err != nil {
			return n, err
		}
	case rest[0] == '{' && reLogQL.re().MatchString(rest):
		return nil, p.mistake(p.at, "this is LogQL: use it in place of a search, or write "+p.search(p.at)+"; service=NAME is the service")
	case reStages.re().MatchString(rest):
		return nil, p.mistake(p.at, "a search has no stages, which are of LogQL: write "+p.search(p.at))
	case strings.HasPrefix(rest, "*:") && !p.ends(p.at+2): // in all fields
		p.at += 2
		return p.text()
	}
	if re, ok := p.expr(); ok {
		return &node{kind: kindExpr, form: formExpr, value: re}, nil
	}
	if n, err := p.field(); n != nil || err != nil {
		return n, err
	}
	return p.text()
}

// search is the line to type for one that goes on in LogQL, behind a search that ends at a place.
func (p *parser) search(end int) string {
	at, all := p.at, []string{}
	if before := strings.TrimSpace(p.line[:end]); before != "" {
		all = append(all, before)
	}
	for parts := p.take(&reLogQL); parts != nil; parts = p.take(&reLogQL) {
		n := &node{kind: kindText, name: parts[1], op: "=", not: parts[2][0] == '!', value: parts[3]}
		if text, err := strconv.Unquote(n.value); err == nil {
			n.value = text
		}
		like := strings.HasSuffix(parts[2], "~")
		switch {
		case n.name == "" && like:
			n.kind = kindExpr
		case like:
			n.kind, n.form, n.value = kindField, formExpr, "^("+n.value+")$"
		case n.name != "":
			if n.kind = kindField; strings.IndexByte("<>", parts[2][0]) >= 0 {
				n.op = parts[2]
			} else if !reWord.re().MatchString(n.value) {
				n.form = formQuoted
			}
		}
		all = append(all, n.text(true))
	}
	if p.at = at; len(all) == 0 {
		return `"two words" for a text, field=value for a field`
	}
	return strings.Join(all, " ")
}

// where reads the rest of where:(condition).
func (p *parser) where() (*node, error) {
	at := p.at
	p.at += len("where:(")
	end := p.closing(p.at, `"'`)
	if end < 0 {
		return nil, p.mistake(at, "a ) is missing: write where:(status > 499)")
	}
	n := &node{kind: kindWhere, value: p.line[p.at:end]}
	p.at = end + 1
	if n.value == "" {
		return nil, p.mistake(at, "the condition is empty: write where:(status > 499)")
	}
	return n, nil
}

// mostLooked is how often all of a line is looked through for the ends of groups: each ( without a )
// costs the rest of the line.
const mostLooked = 200

// closing is the place of the ) of a group that begins before a place; -1: there is none.
func (p *parser) closing(from int, quotes string) int {
	depth, i := 1, from
	if p.looked > mostLooked*len(p.line) {
		return -1
	}
	defer func() { p.looked += i - from }()
	for ; i < len(p.line); i++ {
		switch c := p.line[i]; {
		case strings.IndexByte(quotes, c) >= 0 && (len(quotes) > 1 || strings.IndexByte(" \t\n(=:,<>~-", p.line[i-1]) >= 0):
			for i++; i < len(p.line) && p.line[i] != c; i++ {
				if p.line[i] == '\\' {
					i++
				}
			}
		case c == '/' && len(quotes) == 1 && strings.IndexByte(" \t\n(=:~-", p.line[i-1]) >= 0:
			re := reExpr.re().FindString(p.line[i:])
			if end := i + len(re); re != "" && (end == len(p.line) || strings.IndexByte(" \t\n)", p.line[end]) >= 0) {
				i = end - 1
			}
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// mostGroups bounds the groups within each other.
const mostGroups = 100

// group reads terms in parentheses; nil: there is no group.
func (p *parser) group() (*node, error) {
	at := p.at
	end := p.closing(p.at+1, `"`)
	if end < 0 || strings.TrimSpace(p.line[p.at+1:end]) == "" {
		return nil, nil
	}
	if p.depth == mostGroups {
		return nil, p.mistake(p.at, "so many groups within each other cannot be read: leave some out")
	}
	if p.depth++; !p.ends(end + 1) {
		p.depth--
		return nil, nil
	}
	p.at++
	n, err := p.or()
	if p.depth--; err == nil && (p.at >= len(p.line) || p.line[p.at] != ')') {
		err = p.mistake(at, "this ( has no ): put quotes around a text with it")
	}
	if err != nil {
		return nil, err
	}
	p.at++
	return n, nil
}

// expr reads /re/. A slash within a word is no end: /api/users is a text.
func (p *parser) expr() (string, bool) {
	at := p.at
	if parts := p.take(&reExpr); parts != nil && p.ends(p.at) {
		return parts[1], true
	}
	p.at = at
	return "", false
}

// quoted reads a text in quotes.
func (p *parser) quoted() (text string, ok bool, err error) {
	if !strings.HasPrefix(p.rest(), `"`) {
		return "", false, nil
	}
	at := p.at
	parts := p.take(&reQuoted)
	if parts == nil {
		return "", false, p.mistake(at, `this quote has no end: write "two words"`)
	}
	known := reEscape.re().ReplaceAllStringFunc(parts[1], func(c string) string {
		if len(c) > 1 {
			return c
		}
		b, _ := json.Marshal(c)
		return string(b[1 : len(b)-1])
	})
	err = json.Unmarshal([]byte(`"`+known+`"`), &text)
	return text, err == nil, err
}

// word reads a word; "" if there is none. In a group it ends before a ) that is not its own.
func (p *parser) word() string {
	begin, open := p.at, 0
	for p.at < len(p.line) {
		c, n := utf8.DecodeRuneInString(p.rest())
		switch {
		case unicode.IsSpace(c), c == ')' && open == 0 && p.depth > 0:
			return p.line[begin:p.at]
		case c == '(':
			open++
		case c == ')' && open > 0:
			open--
		}
		p.at += n
	}
	return p.line[begin:]
}

// typed sets a text that is a word. A * at an end of it says nothing.
func (n *node) typed(word string) {
	if n.value = word; !strings.Contains(strings.Trim(word, "*"), "*") {
		n.value = strings.Trim(word, "*")
	}
}

func (p *parser) text() (*node, error) {
	at := p.at
	if value, ok, err := p.quoted(); ok || err != nil {
		if err == nil && value == "" {
			err = p.mistake(at, "an empty text is in every record: leave it out")
		}
		return &node{kind: kindText, form: formQuoted, value: value}, err
	}
	n := &node{kind: kindText}
	word := p.word()
	n.typed(word)
	value := n.value
	switch {
	case word == "":
		return nil, p.mistake(at, "a blank is missing here")
	case value == "":
		return &node{kind: kindAll}, nil
	case reFuzzy.re().MatchString(value):
		word := value[:strings.IndexAny(value, "~^")]
		return nil, p.mistake(at, "there is no search for what is like a word: write "+word+" or "+word+`*, and "`+value+`" for the text`)
	case value == "and" || value == "or" || value == "not":
		p.notes = append(p.notes, `"`+value+`" is a text here; write `+strings.ToUpper(value)+" to join terms")
	case reMarked.re().MatchString(value):
		p.notes = append(p.notes, `"`+value+`" is a text here; write `+strings.TrimPrefix(strings.Replace(value, "!", "-", 1), "+"))
	}
	if strings.ContainsAny(value, `()"`) { // as main.(*Server).Serve
		n.form = formQuoted
	}
	return n, nil
}
