package stage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"blobtail/logql"
)

// texts are in each record that passes, as the texts of a blobs.Filter are looked for. A text that
// a record lacks in these eyes would lose it, so no uncertain text is among them.
func (c *compiler) texts() []string {
	var texts []string
	changed := c.view.Lines // the stored line has texts before msg
	for i, one := range c.stages {
		switch one := one.(type) {
		case *lineFilter:
			if !changed {
				texts = addTexts(texts, one.texts())
			}
		case *labelFilter:
			texts = c.condTexts(texts, one.cond, i)
		}
		changed = changed || one.changesLine()
	}
	return texts
}

// addTexts adds texts of the line. The brace before the fields of a record without a message is
// not stored. A backslash may be half of a surrogate pair.
func addTexts(texts, more []string) []string {
	for _, text := range more {
		text = strings.TrimPrefix(text, "{")
		if text != "" && utf8.ValidString(text) && !strings.Contains(text, `\`) {
			texts = append(texts, text)
		}
	}
	return texts
}

// condTexts adds the texts that fields of the record must equal. i is the place of the filter.
func (c *compiler) condTexts(texts []string, one cond, i int) []string {
	switch one := one.(type) {
	case *joined:
		if !one.or {
			return c.condTexts(c.condTexts(texts, one.left, i), one.right, i)
		}
	case *matchCond:
		if one.m.op != logql.Equal || one.of.kind != refField && one.of.kind != refMsg {
			return texts
		}
		for at, before := range c.stages[:i] {
			if before.changes(one.of.name) && !c.copies(at) {
				return texts
			}
		}
		if value := one.m.texts[0]; value != "" && utf8.ValidString(value) && !strings.ContainsFunc(value, escapes) {
			return append(texts, value)
		}
	}
	return texts
}

// copies reports whether all labels that a stage makes are texts of the record: members of the
// stored line, or parts of the message.
func (c *compiler) copies(at int) bool {
	switch one := c.stages[at].(type) {
	case *jsonStage:
		return one.lines && one.first
	case *regexpStage, *patternStage:
		return !c.view.Lines && !slices.ContainsFunc(c.stages[:at], stage.changesLine)
	}
	return false
}

// escapes reports whether a character is stored in another form than it is shown.
func escapes(r rune) bool { return r < ' ' || r == '"' || r == '\\' }
