package spelling

import (
	"regexp"
	"strings"
)

// A Habit is how people write a part of a text that has another form here: a regular expression, and
// what takes its place. The example is a text that becomes the result.
type Habit struct{ Expr, With, Example, Result string }

// Habits are those of a table in a text. A line of one word begins a table, and a line of four columns
// with tabs between them is a habit. # begins a comment.
func Habits(text, table string) (habits []Habit) {
	at := ""
	for line := range strings.Lines(text) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(row) == 1 && row[0] != "" && row[0][0] != '#':
			at = row[0]
		case len(row) == 4 && at == table:
			habits = append(habits, Habit{row[0], row[1], row[2], row[3]})
		}
	}
	return habits
}

// Rewritten is a text with habits replaced in their order, each until it changes nothing.
func Rewritten(text string, habits []Habit) string {
	const most = 8 // times
	for _, h := range habits {
		expr := regexp.MustCompile(h.Expr)
		for range most {
			before := text
			if text = expr.ReplaceAllString(text, h.With); text == before {
				break
			}
		}
	}
	return text
}

// First is what the first habit of a text makes of it; "": the text has none.
func First(text string, habits []Habit) string {
	for _, h := range habits {
		if expr := regexp.MustCompile(`^(?:` + h.Expr + `)$`); expr.MatchString(text) {
			return expr.ReplaceAllString(text, h.With)
		}
	}
	return ""
}
