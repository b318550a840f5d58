package search

import (
	"slices"
	"strings"
	"unicode"
)

// String is the text of the query, which [Parse] takes back.
func (q *Query) String() string { return q.root.text(false) }

// Index is the text of the terms that choose levels and services, for which no line is read.
func (q *Query) Index() string {
	of := &node{kind: kindAnd, sub: []*node{q.root}}
	if q.root.kind == kindAnd && !q.root.not {
		of.sub = q.root.sub
	}
	of.sub = slices.DeleteFunc(slices.Clone(of.sub), func(n *node) bool {
		_, ok := levelsOf(n)
		return !ok && servicesOf(n) == nil
	})
	return of.text(false)
}

// text is the text of a node; inner says that it is one of several terms.
func (n *node) text(inner bool) string {
	minus := ""
	if n.not {
		minus = "-"
	}
	switch n.kind {
	case kindAnd, kindOr:
		var parts []string
		for i, s := range n.sub {
			part := s.text(true)
			if i > 0 && n.kind == kindAnd && strings.IndexByte("=!<>", part[0]) >= 0 {
				part = "AND " + part // it is no sign
			}
			parts = append(parts, part)
		}
		join := " "
		if n.kind == kindOr {
			join = " OR "
		}
		if text := strings.Join(parts, join); n.not || inner {
			return minus + "(" + text + ")"
		} else {
			return text
		}
	case kindAll:
		return minus + "*"
	case kindWhere:
		return minus + "where:(" + n.value + ")"
	case kindExpr:
		return minus + slashed(n.value)
	case kindText:
		if isGlob(n) || reWord.re().MatchString(n.value) && !reJoin.re().MatchString(n.value) && n.value != "in" {
			return minus + n.value
		}
		return minus + quote(n.value)
	}
	name := n.name
	if !reBareName.re().MatchString(name) {
		name = quote(name)
	}
	return minus + name + n.sign() + n.valueText()
}

var (
	reWord     = pattern{text: `^[\p{L}\p{N}_]+$`}
	reBareName = pattern{text: `^[\p{L}\p{N}_.@$#][\p{L}\p{N}_.@$#-]*$`}
)

// sign is the sign of a field.
func (n *node) sign() string {
	if n.colon || n.kind == kindMsg {
		return ":"
	}
	if n.op == "=" && n.form == formWord && strings.HasPrefix(n.value, "=") {
		return "=="
	}
	return n.op
}

func (n *node) valueText() string {
	switch n.form {
	case formExpr:
		return slashed(n.value)
	case formQuoted, formEither:
		return quote(n.value)
	}
	return n.value
}

// A Term is a part of a query that is not divided further.
type Term struct {
	Kind  string `json:"kind"` // all, text, expr, field or where
	Not   bool   `json:"not"`
	Name  string `json:"name,omitempty"`
	Op    string `json:"op,omitempty"` // of a field: = > >= < <=
	Value string `json:"value"`
	Begin int    `json:"begin"` // its column in its line
	Text  string `json:"text"`  // as String has it
}

// Terms are the terms of the query, in its order.
func (q *Query) Terms() []Term { return q.root.terms([]Term{}, false) }

func (n *node) terms(list []Term, not bool) []Term {
	not = not != n.not
	for _, s := range n.sub {
		list = s.terms(list, not)
	}
	if n.kind == kindAnd || n.kind == kindOr {
		return list
	}
	t := Term{Kind: kinds[n.kind], Not: not, Name: n.name, Op: n.op, Value: n.value, Begin: n.begin, Text: n.text(true)}
	if isGlob(n) && n.kind != kindField {
		t.Kind, t.Value = "expr", textExpr(n)
	}
	return append(list, t)
}

var kinds = map[kind]string{kindAll: "all", kindText: "text", kindExpr: "expr", kindField: "field", kindMsg: "text", kindWhere: "where"}

// A Word is what somebody types at the end of a line.
type Word struct {
	From  int    `json:"from"`           // characters before the part that is typed: a name, or a value
	Name  string `json:"name"`           // of a field, if there is a sign, or of one that may be meant
	Sign  string `json:"sign,omitempty"` // "": the name is not ended
	Value string `json:"value"`          // as far as it is there; of a list the last one
}

var (
	reTyped = pattern{text: `^[-@]*("(?:[^"\\]|\\(?s:.))*"?|[\p{L}\p{N}_.$#][\p{L}\p{N}_.@$#-]*|)(!=|!~|=~|==?|[<>]=?|:(?:[<>]=?)?)?`}
	reList  = pattern{text: `("(?:[^"\\]|\\(?s:.))*"|[\p{L}\p{N}_.$#][\p{L}\p{N}_.@$#-]*)(?:[=:]|\s+in\s*)$`}
)

// mostName is how long the name of a field is at most that has a list behind it.
const mostName = 256

// WordAt is the word at the end of a line, which need not be whole.
func WordAt(line string) Word {
	from, list := 0, ""
	for i, inside := 0, false; i < len(line); i++ {
		switch c := line[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '(':
			if parts := reList.re().FindStringSubmatch(line[max(0, i-mostName):i]); parts != nil {
				list = parts[1]
			}
			from = i + 1
		case c == ')':
			list = ""
		case unicode.IsSpace(rune(c)), c == ',' && list != "":
			from = i + 1
		}
	}
	rest := line[from:]
	if list != "" {
		return Word{From: column(line, from) - 1, Name: unquoted(list), Sign: "=", Value: unquoted(rest)}
	}
	parts := reTyped.re().FindStringSubmatch(rest)
	w := Word{Name: unquoted(parts[1]), Sign: parts[2]}
	switch at := len(parts[0]); {
	case w.Sign != "":
		if w.Name == "level" || w.Name == "service" {
			at = max(at, strings.LastIndexByte(rest, ',')+1)
		}
		from += at
		w.Value = unquoted(rest[at:])
	case parts[0] == rest:
		from += at - len(parts[1])
	default:
		w.Name = "" // a text
	}
	w.From = column(line, from) - 1
	return w
}

// unquoted is a text without the quotes around it, of which the last may not be there yet.
func unquoted(text string) string {
	if rest, ok := strings.CutPrefix(text, `"`); ok {
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `"`, "").Replace(rest)
	}
	return text
}
