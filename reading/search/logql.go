package search

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"blobtail/reading/blobs"
	"blobtail/record"
)

// texts is the stage that makes a line of all texts of a record: its time, message and labels.
const texts = `| line_format "{{__timestamp__ | date \"2006-01-02T15:04:05.000000000Z\"}}\n{{__line__}}\n{{printf \"%q\" .}}"`

// scaffold is what this line has besides.
const scaffold = "map detected_level unknown level_extracted service_name"

var (
	reLabel  = pattern{text: `\W`}
	reBegins = pattern{text: `^\^[\w/-](?:[^|*?{][^|]*)?$`}
)

// LogQL is the query in LogQL, for Grafana, among some services; none: all. It wants the records that
// the query wants, but for terms that LogQL cannot say: the notes name these.
func (q *Query) LogQL(fold bool, within []string) (text string, notes []string) {
	l := &logQL{maker: maker{fold: fold, levels: allLevels}}
	l.add(q.root)
	var picks []string
	for _, services := range [][]string{l.Services, within} {
		if len(services) > 0 {
			picks = append(picks, among("service_name", services, false))
		}
	}
	picks = append(picks, l.picks...)
	if l.levels != allLevels {
		picks = append(picks, among("level", levelWords(l.levels), false))
	}
	stages := l.stages
	if len(l.texts) > 0 {
		// A text may be in a field too, or in the time, so they come into the line.
		stages = slices.Concat([]string{texts}, l.texts, stages)
		notes = append(notes, "Its lines have the time and the fields too, since texts are looked for in them. "+
			"A name of a field counts if the field has a value.")
	}
	if len(l.left) > 0 {
		notes = append(notes, "LogQL cannot say this exactly, so it is left out: "+strings.Join(l.left, " "))
	}
	return strings.Join(append([]string{"{" + strings.Join(picks, ", ") + "}"}, stages...), " "), notes
}

type logQL struct {
	maker
	picks, texts, stages, left []string
}

func (l *logQL) add(n *node) {
	if n.kind == kindAnd && !n.not {
		for _, sub := range n.sub {
			l.add(sub)
		}
		return
	}
	levels, ok := levelsOf(n)
	switch {
	case ok:
		l.levels &= levels
		return
	case n.kind == kindAll && !n.not:
		return
	case isService(n) && n.not:
		l.picks = append(l.picks, among("service_name", strings.Split(n.value, ","), true))
		return
	case servicesOf(n) != nil:
		l.Services = append(l.Services, servicesOf(n)...)
		return
	}
	if stage, ok := l.text(n); ok {
		l.texts = append(l.texts, stage)
	} else if filter, ok := l.label(n); ok {
		l.stages = append(l.stages, "| "+filter)
	} else {
		l.left = append(l.left, n.text(true))
	}
}

// among chooses the values of a label, which may be globs.
func among(label string, list []string, not bool) string {
	var all []string
	globs := len(list) > 1
	for _, one := range list {
		globs = globs || strings.ContainsAny(one, "*?")
		all = append(all, strings.ReplaceAll(glob(one), `\?`, "."))
	}
	sign, value := "=", list[0]
	if globs {
		sign, value = "=~", strings.Join(all, "|")
	}
	if not {
		sign = strings.Replace("!"+sign, "=~", "~", 1)
	}
	return label + sign + quote(value)
}

func levelWords(levels blobs.LevelSet) (names []string) {
	for l := range record.Level(record.NumLevels) {
		if l == record.Other && levels.Has(l) {
			names = append(names, "unknown")
		} else if levels.Has(l) {
			names = append(names, l.String())
		}
	}
	return names
}

// text is the stage of a text, of an expression, or of texts of which one has to occur.
func (l *logQL) text(n *node) (stage string, ok bool) {
	sign, terms := map[bool]string{false: "|", true: "!"}[n.not], n.sub
	expr, ok := alternatives(&node{kind: n.kind, sub: n.sub, form: n.form, value: n.value})
	switch {
	case n.kind == kindExpr:
		tree, err := syntax.Parse(n.value, syntax.Perl)
		if err != nil || !l.likeAValue(tree) {
			return "", false
		}
		if re, err := regexp.Compile("(?i)" + n.value); err != nil || re.MatchString(scaffold) {
			return "", false
		}
		return sign + "~ " + quote(l.folded(n.value)), true
	case !ok:
		return "", false
	case n.kind == kindText:
		terms = []*node{n}
	}
	for _, one := range terms {
		inner := strings.Trim(one.value, ",:") == one.value && strings.TrimSpace(one.value) != ""
		if isGlob(one) || !inner || strings.ContainsFunc(one.value, l.elsewhere) || strings.Contains(scaffold, strings.ToLower(one.value)) {
			return "", false
		}
	}
	switch {
	case len(terms) > 1 || l.fold:
		return sign + "~ " + quote(l.folded(expr)), true
	case n.not:
		return "!= " + quote(n.value), true
	}
	return "|= " + quote(n.value), true
}

// elsewhere reports whether a character may be around values, or be another one there: a=b is a
// field and its value too.
func (l *logQL) elsewhere(c rune) bool {
	return !strconv.IsPrint(c) || strings.ContainsRune(`="{}[]\`, c) || l.fold && c >= utf8.RuneSelf
}

// likeAValue reports whether an expression can match within a value alone.
func (l *logQL) likeAValue(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.ContainsFunc(re.Rune, func(c rune) bool { return l.elsewhere(c) || c == ',' || c == ':' })
	case syntax.OpCharClass:
		const most = 256 // of one range; no one types more
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] > most {
				return false
			}
			for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
				if l.elsewhere(c) || c == ',' || c == ':' {
					return false
				}
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpBeginLine, syntax.OpEndLine,
		syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !l.likeAValue(sub) })
}

// label is the filter of a field.
func (l *logQL) label(n *node) (filter string, ok bool) {
	if n.kind != kindField || n.colon || n.name == "ts" || n.form == formEither {
		return "", false
	}
	name, is, like := reLabel.re().ReplaceAllString(n.name, "_"), "=", "=~"
	if name != "" && name[0]-'0' < 10 {
		name = "_" + name
	}
	if n.not {
		is, like = "!=", "!~"
	}
	switch {
	case n.op != "=":
		if n.form != formWord || n.not {
			return "", false
		}
		return name + " " + n.op + " " + strings.ReplaceAll(n.value, "_", "") + ` | __error__=""`, true
	case n.form == formQuoted:
		if isConstant(n.value) || n.value == "" || strings.IndexByte("[{", n.value[0]) >= 0 {
			return "", false
		}
		return name + is + quote(n.value), true
	case n.form == formExpr && reBegins.re().MatchString(n.value): // neither empty nor an object
		return name + like + quote("(?s:.*)(?:"+n.value+")(?s:.*)"), true
	case n.form == formExpr, n.value == "null", strings.IndexByte("*[{", n.value[0]) >= 0:
		return "", false
	case strings.Contains(n.value, "*"):
		return name + like + quote("(?s)"+glob(n.value)), true
	case isNumber(n.value) && strings.ContainsAny(n.value, "_.eE"):
		return "", false
	}
	return name + is + quote(n.value), true
}
