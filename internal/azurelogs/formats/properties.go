package formats

import (
	"regexp"

	"blobtail/record"
)

// unfolded is resource of an entry that unfold made of another.
func (t *Translator) unfolded(dst, entry, whole []byte) (line []byte, stamp record.Stamp, err error) {
	line, stamp, err = t.resource(dst, whole, true)
	t.id = idOf(TrimEnd(entry))
	return line, stamp, err
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
	whole := append(make([]byte, 0, len(entry)), entry[:at[2]]...)
	if len(text) > 1 && text[1] != '"' {
		whole = t.appendDoubleQuoted(whole, text)
	} else {
		whole = append(whole, text...)
	}
	if object := whole[at[2]:]; rest != nil && record.ValueLen(object) != len(object) {
		return nil
	}
	whole = append(whole, rest...)
	if _, err := t.parser.Scan(whole); err != nil {
		return nil
	}
	return whole
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
