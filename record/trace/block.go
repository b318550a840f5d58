package trace

import (
	"bytes"

	"blobtail/record/text"
)

// beginsBlock reports whether a line begins a record of any level whose form says where it ends. head
// is the line behind its time.
func (j *Joiner) beginsBlock(line, head []byte) bool {
	switch last := line[len(line)-1]; {
	case line[0] == '#' && j.any(languages[slow].lead, line, j.end):
		if j.lang = slow; line[2] == 'T' {
			_, j.until = j.behind(j.end)
		}
	case line[0] == '=' && j.any(languages[report].first, line, j.end):
		j.enter(report, line, j.end)
	case line[0] == '[' && last == ' ' && len(line) == len(tagsOf(line)):
		next, _ := j.behind(j.end)
		if rest, ok := j.behindTags(next); ok && j.isRaised(rest) {
			j.level, j.severe = []byte("error"), true
			return true
		}
	case line[0] == '[' && last != '}' && last != ']' && j.fits(`*[object] (`, line, j.end): // Monolog
		j.lang, j.severe, j.message = php, true, true
		if j.ahead(j.end); j.message {
			j.lang, j.severe, j.message = none, false, false
		}
	case len(head) > 8 && len(head) < len(line) && (head[0] == ',' || head[0] == '"' && head[1] == ','):
		if bytes.Count(line, []byte{'"'})%2 == 1 {
			j.until = j.quotedTo()
		}
	}
	return j.lang != none
}

// takesSlow reports whether a line belongs to the record of MySQL's slow log: its head, and its
// statement up to a semicolon at the end of a line.
func (j *Joiner) takesSlow(line []byte, end int) bool {
	if j.any(languages[slow].lead, line, end) || text.LooksTimed(line) {
		return false
	}
	if line[len(line)-1] == ';' && !j.any(languages[slow].on, line, end) {
		j.lang = none
	}
	return true
}

// quotedTo returns the end of a record of CSV that has a line feed in quotation marks. It is 0 if
// the record does not keep to RFC 4180, or has no end within the bounds.
func (j *Joiner) quotedTo() int {
	part := j.body[j.off:min(len(j.body), j.off+MaxBytes)]
	quoted := false
	for i, c := range part {
		switch {
		case c == '\n' && !quoted:
			return j.off + i
		case c == '\n' && text.LooksTimed(part[i+1:]):
			return 0
		case c == '"':
			quoted = !quoted // a doubled one twice
			if quoted && i > 0 && part[i-1] != ',' && part[i-1] != '"' ||
				!quoted && i+1 < len(part) && bytes.IndexByte([]byte(",\"\r\n"), part[i+1]) < 0 {
				return 0
			}
		}
	}
	if quoted || len(part) == MaxBytes {
		return 0
	}
	return j.off + len(part)
}

// tagsOf returns the words in brackets that a text begins with, and the blanks behind them: [a] [b]
func tagsOf(s []byte) []byte {
	n := 0
	for n < len(s) && s[n] == '[' {
		end := n + bytes.IndexByte(s[n:], ']') + 1
		if end == n || end < len(s) && s[end] != ' ' {
			break
		}
		n = text.SkipBlanks(s, end)
	}
	return s[:n]
}

// behindTags returns the text of a line behind the tags of the record's first line: a line that has
// nothing else, or one of Ruby's Logger, which has them behind its head. ok is false for a line without
// these tags.
func (j *Joiner) behindTags(line []byte) (rest []byte, ok bool) {
	const reach = 512
	first := j.body[j.off:min(j.end, j.off+reach)]
	if j.fits("~, [", first, 0) {
		_, first, _ = bytes.Cut(first, []byte(" -- "))
		_, first, _ = bytes.Cut(first, []byte(": "))
	} else if len(tagsOf(first)) < len(first) {
		return nil, false
	}
	tags := bytes.TrimRight(tagsOf(first), " \r")
	rest, ok = bytes.CutPrefix(line, tags)
	ok = ok && len(tags) > 0 && (len(rest) == 0 || rest[0] == ' ')
	return bytes.TrimRight(rest, " \r"), ok
}

// isTagged reports whether a line with the tags of the first one belongs to its record.
func (j *Joiner) isTagged(line []byte) bool {
	rest, ok := j.behindTags(line)
	s := bytes.TrimLeft(rest, " ")
	if !ok || j.body[j.off] != '[' { // of Ruby's Logger: the record has one head, and each of its lines the tags
		return ok && (j.severe || len(s) > 0 && !j.isRaised(s))
	}
	return j.severe && (len(s) == 0 || j.isFrame(s) || j.isRaised(s) || string(s) == "Causes:" || bytes.HasPrefix(rest, []byte("    ")))
}

// isRaised reports whether a line is an exception as Rails writes it: RuntimeError (no):
func (j *Joiner) isRaised(s []byte) bool {
	s = bytes.TrimLeft(s, " ")
	return len(s) > 2 && s[0]-'A' < 26 && (j.fits("~ (*):$", s, 0) || j.fits("~ (*)$", s, 0))
}

// follows reports whether the line at at is known for the second one of its record by the first:
// of gorm, with a time and a place as the first line, and by the tags of Rails.
func (j *Joiner) follows(at int) bool {
	rest := j.body[at:text.LineEnd(j.body, at)]
	if rest[0] == '[' && j.isTagged(rest) {
		return true
	}
	var first text.Stamp
	return at == j.end+1 && j.any(languages[gorm].on, rest, 0) && first.Read(j.times, j.body[j.off:j.end]) &&
		j.any(languages[gorm].lead, bytes.TrimLeft(text.Uncoloured(first.Rest), " "), 0)
}

// announces reports whether calls follow a line of any level.
func (j *Joiner) announces(line []byte) bool {
	switch line[len(line)-1] {
	case ':':
		return j.any(languages[clickHouse].lead, line, j.end)
	case '\'':
		return j.any(languages[sidekiq].lead, line, j.end)
	}
	return bytes.IndexByte(line, '\t') > 0 && j.any(languages[zap].lead, line, j.end)
}

// isOwn reports whether an indented line is a record of its own.
func (j *Joiner) isOwn(line []byte) bool {
	return text.IsPadded(line) || len(line) > 7 && line[0] == ' ' && (line[1] != ' ' || line[2] != ' ') &&
		j.any(languages[none].first, text.Uncoloured(line), 0)
}
