package formats

import (
	"regexp"

	"blobtail/record"
)

// isFolded reports whether the object scanned last has properties that are the text of an object.
func (t *Translator) isFolded() bool {
	for key, value := range t.parser.Members() {
		if string(key) == "properties" {
			return len(value) > 2 && value[0] == '"' && value[1] == '{'
		}
	}
	return false
}

// unfold returns an entry with an object in place of properties that App Service and Functions write
// otherwise: as the text of an object, or with single quotation marks, in a text or without one. It
// is nil if that makes no valid entry.
func (t *Translator) unfold(entry []byte) []byte {
	if t.folded == nil {
		t.folded = regexp.MustCompile(`"properties"\s*:\s*("\{|\{\s*')`)
		t.ends = regexp.MustCompile(`^\s*(:|,\s*'|[}\]])`)
	}
	at := t.folded.FindSubmatchIndex(entry)
	if at == nil {
		return nil
	}
	text, rest := entry[at[2]:], []byte(nil)
	if n := record.ValueLen(text); text[0] == '"' && n > 0 {
		text, rest = record.AppendUnescaped(nil, text[1:n-1]), text[n:]
	}
	t.whole = append(t.whole[:0], entry[:at[2]]...)
	if len(text) > 1 && text[1] != '"' {
		t.whole = t.appendDoubleQuoted(t.whole, text)
	} else {
		t.whole = append(t.whole, text...)
	}
	if object := t.whole[at[2]:]; rest != nil && record.ValueLen(object) != len(object) {
		return nil
	}
	t.whole = append(t.whole, rest...)
	if _, err := t.parser.Scan(t.whole); err != nil {
		return nil
	}
	return t.whole
}

// longestGap is more than stands between two strings.
const longestGap = 16

// appendDoubleQuoted appends a text of JSON with its single quotation marks made double ones. A mark
// within a string is escaped, or has nothing behind it that may follow a string: the writers do not
// escape each.
func (t *Translator) appendDoubleQuoted(dst, text []byte) []byte {
	single, double := false, false // the mark of the string that is open
	for i, c := range text {
		switch {
		case double:
			double = c != '"'
		case single && c == '\'' && text[i-1] == '\\':
			dst = dst[:len(dst)-1]
		case c == '\'' && (!single || t.ends.Match(text[i+1:min(len(text), i+longestGap)])):
			single, c = !single, '"'
		case single && c == '"' && text[i-1] != '\\':
			dst = append(dst, '\\')
		case c == '"':
			double = !single
		}
		dst = append(dst, c)
	}
	return dst
}
