package search

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blobtail/reading/blobs"
	"blobtail/record"
)

// Parts are the filters of a question.
type Parts struct {
	Services []string // names or globs; none: any
	Levels   blobs.LevelSet
	Texts    []string
	Without  []string
	Exprs    []string
	Where    string
}

// Parts returns the filters of the query. fold says that upper and lower case are equal in texts. The
// services of the query are a part of within, unless that is empty. The error is a [*Mistake].
func (q *Query) Parts(fold bool, within []string) (Parts, error) {
	m := &maker{fold: fold, levels: allLevels}
	terms := []*node{q.root}
	if q.root.kind == kindAnd && !q.root.not {
		terms = q.root.sub
	}
	for _, n := range terms {
		if err := m.add(n); err != nil {
			return Parts{}, err
		}
	}
	if len(m.Services) > 0 {
		if len(within) > 0 && slices.ContainsFunc(m.Services, func(s string) bool { return !slices.Contains(within, s) }) {
			m.where = append(m.where, inServices(within))
		}
	}
	if m.levels != allLevels {
		m.Levels = m.levels
	}
	m.Where = And(m.where...)
	return m.Parts, nil
}

// And joins conditions.
func And(conditions ...string) string {
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(c string) bool { return c == "" })
	if len(conditions) < 2 {
		return strings.Join(conditions, "")
	}
	return "(" + strings.Join(conditions, ") and (") + ")"
}

const allLevels = blobs.LevelSet(1<<record.NumLevels - 1)

// maker makes parts of the terms that all have to hold.
type maker struct {
	Parts
	fold   bool
	levels blobs.LevelSet
	where  []string
}

func (m *maker) add(n *node) error {
	if n.kind == kindAnd && !n.not {
		for _, sub := range n.sub {
			if err := m.add(sub); err != nil {
				return err
			}
		}
		return nil
	}
	levels, ok := levelsOf(n)
	switch {
	case ok:
		if m.levels &= levels; m.levels == 0 {
			return n.mistake("this leaves no level: write level=error,warn for one of two")
		}
	case n.kind == kindAll && !n.not:
	case n.kind == kindText && !isGlob(n) && n.not:
		m.Without = append(m.Without, n.value)
	case n.kind == kindText && !isGlob(n):
		m.Texts = append(m.Texts, n.value)
	case n.kind == kindExpr && !n.not:
		m.Exprs = append(m.Exprs, n.value)
	case n.kind == kindExpr:
		m.where = append(m.where, `not any(values($env), type(#) == "string" and # matches `+quote(m.folded(n.value))+")")
	case servicesOf(n) != nil:
		m.Services = append(m.Services, servicesOf(n)...)
	default:
		if expr, ok := alternatives(n); ok {
			m.Exprs = append(m.Exprs, expr)
		} else {
			m.where = append(m.where, m.condition(n, false))
		}
	}
	return nil
}

// isGlob reports whether a text has a * that stands for others.
func isGlob(n *node) bool { return n.form == formWord && strings.Contains(n.value, "*") }

// isService reports whether a term chooses services by their names.
func isService(n *node) bool {
	return n.kind == kindField && n.name == "service" && n.form != formExpr && n.op == "=" && n.value != "null"
}

// servicesOf are the services of which a term wants any; nil: it chooses none.
func servicesOf(n *node) (list []string) {
	terms := []*node{n}
	if n.kind == kindOr {
		terms = n.sub
	}
	for _, s := range terms {
		if !isService(s) || n.not || s.not {
			return nil
		}
		list = append(list, strings.Split(s.value, ",")...)
	}
	return list
}

// alternatives is the one expression of texts of which one has to occur.
func alternatives(n *node) (expr string, ok bool) {
	terms := []*node{n}
	if n.kind == kindOr {
		terms = n.sub
	}
	var all []string
	for _, s := range terms {
		if n.not || s.not || s.kind != kindText {
			return "", false
		}
		if all = append(all, textExpr(s)); isGlob(s) {
			expr = "(?s)"
		}
	}
	return expr + strings.Join(all, "|"), true
}

// textExpr is the expression for a text.
func textExpr(n *node) string {
	if isGlob(n) {
		return glob(strings.Trim(n.value, "*"))
	}
	return regexp.QuoteMeta(n.value)
}

// glob is RE2 for a text with * in it.
func glob(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c == '*' {
			out.WriteByte('.')
		} else if strings.ContainsRune(`\^$.|?+()[]{}`, c) {
			out.WriteByte('\\')
		}
		out.WriteRune(c)
	}
	return out.String()
}

// condition is a term as a condition of package where. flip turns it round.
func (m *maker) condition(n *node, flip bool) string {
	not := n.not != flip
	switch n.kind {
	case kindAnd, kindOr:
		var parts []string
		for _, sub := range n.sub {
			parts = append(parts, "("+m.condition(sub, not)+")")
		}
		if n.kind == kindOr != not {
			return strings.Join(parts, " or ")
		}
		return strings.Join(parts, " and ")
	case kindAll:
		return turned("ts != nil", not)
	case kindText:
		if isGlob(n) {
			return turned("has("+slashed("(?s)"+textExpr(n))+")", not)
		}
		return turned("has("+quote(n.value)+")", not)
	case kindExpr:
		return turned("has("+slashed(n.value)+")", not)
	case kindMsg:
		return turned(m.message(n), not)
	case kindWhere:
		return turned(n.value, not)
	}
	return m.field(n, not)
}

// turned is a condition, or that it is not true.
func turned(condition string, not bool) string {
	if not {
		return "not (" + condition + ")"
	}
	return condition
}

// slashed is an expression between slashes.
func slashed(expr string) string {
	var out strings.Builder
	out.WriteByte('/')
	for i := 0; i < len(expr); i++ {
		switch {
		case expr[i] == '\\' && i+1 < len(expr):
			out.WriteByte('\\')
			i++
		case expr[i] == '/':
			out.WriteByte('\\')
		}
		out.WriteByte(expr[i])
	}
	out.WriteByte('/')
	return out.String()
}

// message is the condition that a text is in the message.
func (m *maker) message(n *node) string {
	switch {
	case n.form == formExpr:
		return "msg matches " + quote(m.folded(n.value))
	case isGlob(n) || m.fold:
		return "msg matches " + quote(m.folded("(?s)"+textExpr(n)))
	}
	return "has(" + quote(n.value) + ") and msg contains " + quote(n.value)
}

func (m *maker) folded(expr string) string {
	if m.fold {
		return "(?i)" + expr
	}
	return expr
}

// field is the condition of a field.
func (m *maker) field(n *node, not bool) string {
	if levels, ok, _ := ofLevels(n); ok {
		return inLevels(levels, not)
	}
	if isService(n) {
		return turned(inServices(strings.Split(n.value, ",")), not)
	}
	if !n.colon {
		return fieldCondition(n, not)
	}
	value, text := *n, &node{kind: kindText, form: n.form, value: n.name + ":" + n.value}
	value.not, value.colon = false, false
	if n.form == formWord {
		text.typed(text.value)
	}
	return m.condition(&node{kind: kindOr, sub: []*node{&value, text}}, not)
}

// fieldCondition is the condition of a field by its value alone.
func fieldCondition(n *node, not bool) string {
	f, is := path(n.name), "=="
	if not {
		is = "!="
	}
	matches := func(re string) string {
		return turned(f+` != nil and (type(`+f+`) == "string" ? `+f+` : toJSON(`+f+`)) matches `+quote(re), not)
	}
	value := n.value
	switch {
	case n.op != "=":
		c := "float(" + f + ") " + n.op + " " + number(value)
		if n.form != formWord || n.name == "ts" {
			c = f + " " + n.op + " " + quote(value)
		}
		if not {
			return f + " == nil or " + turned(c, not)
		}
		return c
	case n.form == formExpr:
		return matches(value)
	case n.form == formQuoted:
		return f + " " + is + " " + quote(value)
	case n.form == formWord && value == "*":
		if not {
			return f + " == nil"
		}
		return f + " != nil"
	case n.form == formWord && strings.Contains(value, "*"):
		return matches("(?s)^" + glob(value) + "$")
	case isNumber(value):
		return turned(f+" in ["+number(value)+", "+quote(value)+"]", not)
	case value == "[]" || value == "{}":
		return f + " " + is + " " + value
	case value == "true" || value == "false":
		return turned(f+" in ["+value+`, "`+value+`"]`, not)
	case value == "null":
		return f + " " + is + " nil"
	}
	return f + " " + is + " " + quote(value)
}

// number is a number as a condition has it.
func number(text string) string {
	text = strings.ReplaceAll(text, "_", "")
	whole, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if len(whole) <= 18 && !strings.ContainsAny(text, "eE") {
		return text
	}
	f, _ := strconv.ParseFloat(text, 64)
	digits, power, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return digits + "e" + power[:1] + strings.TrimLeft(power[1:len(power)-1], "0") + power[len(power)-1:]
}

// quote is a text as a condition has it.
func quote(text string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // of a string it does not fail
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029", `\\`, `\\`).Replace(strings.TrimSuffix(out.String(), "\n"))
}

var (
	reIdentifier = pattern{text: `^[\p{L}_][\p{L}\p{Nd}_]*$`}
	reReserved   = pattern{text: `^([A-Z]+|[Tt]rue|[Ff]alse|[Nn]ull|[Nn]il|None|undefined|in|not|and|or|let|if|else|` +
		`matches|contains|startsWith|endsWith)$`}
	reMember = pattern{text: `(?i)^[a-z_][a-z0-9_]*$`}
)

// path is the field a.b in a condition: the one of that name, or else b in the object a.
func path(name string) string {
	all := strings.Split(name, ".")
	first, rest := all[0], all[1:]
	if reIdentifier.re().MatchString(first) && !reReserved.re().MatchString(first) {
		if !slices.ContainsFunc(rest, func(p string) bool { return !reMember.re().MatchString(p) }) {
			return name
		}
		return first + "[" + quote(strings.Join(rest, ".")) + "]"
	}
	var steps []string
	for _, p := range all {
		steps = append(steps, "["+quote(p)+"]")
	}
	if len(rest) > 0 {
		return "($env[" + quote(name) + "] ?? $env" + strings.Join(steps, "?.") + ")"
	}
	return "$env" + steps[0]
}

// ofLevels are the levels of a term without its negation; ok is false if it is none of levels, also for
// a word that is no level.
func ofLevels(n *node) (levels blobs.LevelSet, ok bool, wrong string) {
	if n.kind != kindField || n.name != "level" || n.form == formExpr || strings.Contains(n.value, "*") || n.value == "null" {
		return 0, false, ""
	}
	if l := record.ParseLevel([]byte(n.value)); n.form == formQuoted && n.op == "=" && l.String() != n.value {
		return 0, false, ""
	}
	for word := range strings.SplitSeq(strings.ToLower(n.value), ",") {
		short := strings.TrimRight(word, "+")
		op := n.op
		if len(short) < len(word) {
			op = ">="
		}
		l := record.ParseLevel([]byte(short))
		known := short != "" && (l != record.Other || short == l.String())
		if !known || op != "=" && l == record.Other {
			return 0, false, word
		}
		for of := record.Level(0); of < record.Other; of++ {
			if of == l && strings.HasSuffix(op, "=") || of > l && op[0] == '>' || of < l && op[0] == '<' {
				levels |= 1 << of
			}
		}
		if op == "=" {
			levels |= 1 << l
		}
	}
	return levels, true, ""
}

// levelsOf are the levels that a term leaves.
func levelsOf(n *node) (levels blobs.LevelSet, ok bool) {
	if levels, ok, _ = ofLevels(n); n.kind == kindOr {
		for _, s := range n.sub {
			of, ok := levelsOf(s)
			if !ok {
				return 0, false
			}
			levels |= of
		}
		ok = true
	}
	if n.not {
		levels = allLevels &^ levels
	}
	return levels, ok
}

// inLevels is the condition of a set of levels. Other stands for all words that are no level.
func inLevels(levels blobs.LevelSet, not bool) string {
	if not {
		levels = allLevels &^ levels
	}
	flip := levels.Has(record.Other)
	if flip {
		levels = allLevels &^ levels
	}
	var names []string
	for l := range record.Other {
		if levels>>l&1 != 0 {
			names = append(names, quote(l.String()))
		}
	}
	return turned("level in ["+strings.Join(names, ", ")+"]", flip)
}

// inServices is the condition of names and globs of services.
func inServices(list []string) string {
	var all []string
	for _, s := range list {
		all = append(all, strings.ReplaceAll(glob(s), `\?`, "."))
	}
	return "service matches " + quote("^("+strings.Join(all, "|")+")$")
}
