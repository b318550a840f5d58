package search

import (
	_ "embed" // of the habits
	"regexp"
	"strings"

	"blobtail/internal/spelling"
)

// meanings are the habits of other languages.
//
//go:embed habits.txt
var meanings string

// habits are those of conditions, with their macros replaced.
func habits() []spelling.Habit {
	macros := strings.NewReplacer("NAME", `[\p{L}_][\p{L}\p{N}_.-]*`, "VALUE", `(?:"[^"]*"|[^\s()",]+)`,
		"TEXT", `[^"]*`, "PERCENT", "\ue025", "COMMA", "\ue02c")
	all := spelling.Habits(meanings, "condition")
	for i := range all {
		all[i].Expr = macros.Replace(all[i].Expr)
	}
	return all
}

// mostMeant is how long a condition may be that [Meant] looks at.
const mostMeant = 1 << 10

// Meant is the line that was probably meant by a condition that package where does not take; "": there
// is none. Its terms are fields, or fields and words.
func Meant(condition string) string {
	if len(condition) > mostMeant {
		return ""
	}
	text := shown(spelling.Rewritten(strings.Join(strings.Fields(hidden(condition)), " "), habits()))
	q, err := Parse(text)
	if err != nil {
		return ""
	}
	joined := strings.ContainsAny(text, "=:<>") || strings.Count(text, " OR ")+strings.Count(text, " AND ")+1 == len(q.root.sub)
	if !q.root.plain(joined && len(q.root.sub) > 1) {
		return ""
	}
	if _, err := q.Parts(false, nil); err != nil {
		return ""
	}
	return q.String()
}

// plain reports whether all terms are fields, or also words: what is left of a condition that was not
// taken apart is none of these.
func (n *node) plain(words bool) bool {
	for _, sub := range n.sub {
		if !sub.plain(words) {
			return false
		}
	}
	_, wrong := regexp.Compile(n.value)
	switch {
	case n.form == formExpr && wrong != nil:
		return false
	case regexp.MustCompile(`(?i)^(?:and|or|not)$`).MatchString(n.name), n.form == formWord && strings.ContainsAny(n.value, "'`\"()[]{}"),
		strings.Count(n.value, "(") != strings.Count(n.value, ")"):
		return false // it was not taken apart
	case n.name == "ts" && !regexp.MustCompile(`^[1-9]\d{3}(?:$|-)`).MatchString(n.value):
		return false // no text of a time begins so
	}
	word := words && n.kind == kindText && regexp.MustCompile(`^[\p{L}\p{N}_][\p{L}\p{N}_.:/ -]*$`).MatchString(n.value)
	return len(n.sub) > 0 || n.kind == kindField || n.kind == kindMsg || word
}

// hiding is what is added to a character of ASCII in quotes: that is one of a private area.
const hiding = 0xE000

// hidden has all texts in quotes of one kind, with their characters hidden.
func hidden(text string) string {
	quoted := regexp.MustCompile(`\\?"((?:\\.|[^"\\])*?)\\?"|\\?'((?:\\.|[^'\\])*?)\\?'|` +
		"`([^`]*)`" + `|[“”„«‘’‚](.*?)[”“»’‘]`)
	return quoted.ReplaceAllStringFunc(text, func(part string) string {
		m := quoted.FindStringSubmatch(part)
		return `"` + strings.Map(func(c rune) rune {
			if c < 0x80 {
				c += hiding
			}
			return c
		}, m[1]+m[2]+m[3]+m[4]) + `"`
	})
}

// shown is the text of [hidden] with its characters. A word needs no quotes.
func shown(text string) string {
	plain := func(text string) string {
		return strings.Map(func(c rune) rune {
			if c >= hiding && c < hiding+0x80 {
				c -= hiding
			}
			return c
		}, text)
	}
	text = regexp.MustCompile(`"[^"]*"`).ReplaceAllStringFunc(text, func(part string) string {
		word := plain(strings.Trim(part, `"`))
		if regexp.MustCompile(`^[\p{L}_/][\p{L}\p{N}_./-]*$`).MatchString(word) && !isConstant(word) &&
			reExpr.re().FindString(word) != word {
			return word
		}
		return `"` + strings.NewReplacer(`\"`, `\"`, `\\`, `\\`, `"`, `\"`).Replace(word) + `"`
	})
	return plain(text)
}
