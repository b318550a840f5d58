package trace

import (
	"bytes"

	"blobtail/record/text"
)

// none is the form of a text without a trace.
const none form = 0

// A block is a record of several lines of any level. Its own form says where it ends.
type block uint8

const (
	noBlock   block = iota
	slowHead        // MySQL's slow log: the lines before the statement
	slowQuery       // its statement
	rubyCalls       // a backtrace of Ruby as the text of a line of any level
	phpStack        // an exception in the context of Monolog
	tagLines        // an exception in which all lines begin with the tags of Rails
)

// mayBlock reports whether a line may begin a block, by its first and last bytes.
func mayBlock(line, head []byte) bool {
	if len(line) < 2 {
		return false
	}
	c := line[0]
	return c == '#' || c == '[' || c == '=' || line[len(line)-1] == '\'' || len(head) > 8 && (head[0] == ',' || head[0] == '"')
}

// beginsBlock reports whether a line begins a block, by its whole form. head is the
// line behind its time. Lines that begin before until belong to the record.
func (j *Joiner) beginsBlock(line, head []byte) bool {
	switch c := line[0]; {
	case c == '#':
		if isSlowHead(line) && j.slowAhead(line) {
			j.block = slowHead
		}
	case c == '[':
		if last := line[len(line)-1]; last == ' ' {
			j.tagAhead(line)
		} else if last == ')' || text.IsWord(line, len(line)-1) || last >= 0x80 || last == '.' {
			j.stackAhead(line, j.end)
		}
	case c == '=' && isReport(line):
		j.enter(reportForm, line, j.end)
		return true
	}
	switch {
	case len(head) < 9 || len(head) == len(line):
	case head[0] == ',', head[0] == '"' && head[1] == ',':
		if bytes.Count(line, []byte{'"'})%2 == 1 {
			j.until = j.quotedTo()
		}
	}
	if line[len(line)-1] == '\'' && j.level != nil && !isSevere(j.level) && isRubyTail(line) {
		j.block = rubyCalls
	}
	return j.block != noBlock
}

// takesBlock reports whether a line belongs to the block. It begins at at and ends at end.
func (j *Joiner) takesBlock(line []byte, at, end int) bool {
	switch j.block {
	case slowHead, slowQuery:
		return j.takesSlow(line, at)
	case rubyCalls:
		return isRubyCall(line)
	case phpStack:
		return j.takesStack(line, end)
	case tagLines:
		return j.takesTagged(line)
	}
	return false
}

// isSlowHead reports whether a line may be the first one of a record of MySQL's slow log.
func isSlowHead(line []byte) bool {
	return bytes.HasPrefix(line, []byte("# Time: ")) || bytes.HasPrefix(line, []byte("# User@Host: "))
}

// slowAhead reports whether the lines of the slow log follow its first one.
func (j *Joiner) slowAhead(line []byte) bool {
	if line[2] == 'T' {
		next, _ := j.behind(j.end)
		return bytes.HasPrefix(next, []byte("# User@Host: "))
	}
	next, end := j.behind(j.end)
	for range farthest {
		if bytes.HasPrefix(next, []byte("# Query_time: ")) {
			return true
		}
		if len(next) == 0 || next[0] != '#' || isSlowHead(next) {
			return false
		}
		next, end = j.behind(end)
	}
	return false
}

// takesSlow reports whether a line belongs to the record of the slow log: its head, and its
// statement up to a semicolon at the end of a line.
func (j *Joiner) takesSlow(line []byte, at int) bool {
	second := at == j.end+1 && bytes.HasPrefix(line, []byte("# User@Host: ")) && j.body[j.off+2] == 'T'
	if isSlowHead(line) && !second || text.LooksTimed(line) {
		return false
	}
	ended := bytes.HasSuffix(line, []byte(";"))
	switch {
	case j.block == slowHead && line[0] == '#' && !ended:
	case j.block == slowHead && ended && (bytes.HasPrefix(line, []byte("use ")) || bytes.HasPrefix(line, []byte("SET timestamp="))):
	case ended:
		j.block = noBlock
	default:
		j.block = slowQuery
	}
	return true
}

// quotedTo returns the end of a record of CSV that has a line feed in quotation marks. It is 0 if
// the record does not keep to RFC 4180, or has no end within the bounds.
func (j *Joiner) quotedTo() int {
	part := j.body[j.off:min(len(j.body), j.off+MaxBytes)]
	quoted := false
	for i := 0; i < len(part); i++ {
		switch c := part[i]; {
		case c == '\n' && !quoted:
			return j.off + i
		case c == '\n' && text.LooksTimed(part[i+1:]):
			return 0
		case c != '"':
		case !quoted:
			if i > 0 && part[i-1] != ',' {
				return 0
			}
			quoted = true
		case i+1 < len(part) && part[i+1] == '"':
			i++
		case i+1 < len(part) && part[i+1] != ',' && part[i+1] != '\r' && part[i+1] != '\n':
			return 0
		default:
			quoted = false
		}
	}
	if quoted || len(part) == MaxBytes {
		return 0
	}
	return j.off + len(part)
}

// isRubyTail reports whether a line ends with a call of Ruby.
func isRubyTail(line []byte) bool {
	n := max(bytes.Index(line, []byte(":in `")), bytes.Index(line, []byte(":in '")))
	if n < 0 {
		return false
	}
	return isRuby(line[bytes.LastIndexByte(line[:n], ' ')+1:])
}

// isRubyCall reports whether a whole line is a call of Ruby.
func isRubyCall(line []byte) bool {
	return line[len(line)-1] == '\'' && isRuby(line)
}

// stackAhead begins the block of an exception in the context of Monolog, if its calls follow
// within a few lines. Its message may have several lines.
func (j *Joiner) stackAhead(line []byte, end int) {
	if !bytes.Contains(line, []byte("[object] (")) {
		return
	}
	for range farthest {
		next, e := j.behind(end)
		switch {
		case len(next) == 0 || text.LooksLikeObject(next) || text.LooksTimed(bytes.TrimPrefix(next, []byte("["))):
			return
		case string(next) == "[stacktrace]":
			j.block, j.until = phpStack, e
			return
		}
		end = e
	}
}

// takesStack reports whether a line belongs to an exception in the context of Monolog.
func (j *Joiner) takesStack(line []byte, end int) bool {
	switch {
	case bytes.HasPrefix(line, []byte("[previous exception] ")):
		j.stackAhead(line, end)
		return true
	case bytes.HasPrefix(line, []byte(`"}`)):
		j.block = noBlock
		return true
	}
	return isNumbered(line) || string(line) == "[stacktrace]"
}

// tagsOf returns the words in brackets that a text begins with: [a] [b]
func tagsOf(s []byte) []byte {
	n := 0
	for n < len(s) && s[n] == '[' {
		end := bytes.IndexByte(s[n:], ']')
		if end < 0 || n+end+1 < len(s) && s[n+end+1] != ' ' {
			break
		}
		n += end + 2
	}
	return bytes.TrimRight(s[:min(n, len(s))], " ")
}

// behindTags returns the text of a line behind tags. ok is false if it has not just these.
func behindTags(line, tags []byte) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, tags)
	if !ok || len(tags) == 0 || len(rest) > 0 && rest[0] != ' ' {
		return nil, false
	}
	return rest, true
}

// tagAhead begins the block of an exception of Rails in which all lines begin with the tags of the
// request: the first has nothing else.
func (j *Joiner) tagAhead(line []byte) {
	tags := tagsOf(line)
	if len(tags) < 3 || len(bytes.TrimLeft(line[len(tags):], " ")) > 0 {
		return
	}
	next, _ := j.behind(j.end)
	if rest, ok := behindTags(next, tags); ok && isRaised(bytes.TrimLeft(rest, " ")) {
		j.block, j.tag = tagLines, len(tags)
		j.level, j.severe = []byte("error"), true
	}
}

// takesTagged reports whether a line has the tags of the exception, and a part of it.
func (j *Joiner) takesTagged(line []byte) bool {
	rest, ok := behindTags(line, j.body[j.off:j.off+j.tag])
	if !ok {
		return false
	}
	s := bytes.TrimLeft(rest, " ")
	return len(s) == 0 || isFrame(s) || isRaised(s) || string(s) == "Causes:" || len(rest) > 4 && string(rest[:4]) == "    "
}

// isRaised reports whether a line is an exception as Rails writes it: RuntimeError (no):
func isRaised(s []byte) bool {
	n := 0
	for n < len(s) && (isNamed(s[n]) || s[n] == ':') {
		n++
	}
	return n > 2 && s[0]-'A' < 26 && n+2 < len(s) && s[n] == ' ' && s[n+1] == '(' && (s[len(s)-1] == ':' && s[len(s)-2] == ')' || s[len(s)-1] == ')')
}

// isTagged reports whether a line begins with the tags of the record's first line, which Ruby's
// Logger wrote: the record has one head, and each of its lines the tags.
func (j *Joiner) isTagged(s []byte) bool {
	const reach = 512
	line := j.body[j.off:min(j.end, j.off+reach)]
	if len(line) < 8 || line[1] != ',' || line[2] != ' ' || line[3] != '[' {
		return false
	}
	_, said, ok := bytes.Cut(line, []byte(" -- "))
	if !ok {
		return false
	}
	if _, said, ok = bytes.Cut(said, []byte(": ")); !ok {
		return false
	}
	rest, ok := behindTags(s[:text.LineEnd(s, 0)], tagsOf(bytes.TrimRight(said, " \r")))
	rest = bytes.Trim(rest, " \r")
	return ok && (j.severe || len(rest) > 0 && !isRaised(rest))
}

// follows reports whether the line at at is known for the second one of its record by the first:
// of gorm, with a time and a place as the first line, and by the tags of Rails.
func (j *Joiner) follows(at int) bool {
	rest := j.body[at:]
	return rest[0] == '[' && j.isTagged(rest) || at == j.end+1 && j.isGorm(rest)
}

// isGorm reports whether a line is the second one of gorm.
func (j *Joiner) isGorm(s []byte) bool {
	const longest = len("[123456789.123ms] [rows:")
	switch {
	case bytes.HasPrefix(s, []byte("\x1b[0m\x1b[")), bytes.HasPrefix(s, []byte("[info] ")), bytes.HasPrefix(s, []byte("[warn] ")), bytes.HasPrefix(s, []byte("[error] ")):
	case len(s) > longest && s[0] == '[' && text.IsDigit(s[1]) && bytes.Contains(s[:longest], []byte("ms] [rows:")):
	default:
		return false
	}
	var at text.Stamp
	if !at.Read(j.times, j.body[j.off:j.end]) {
		return false
	}
	place, _, _ := bytes.Cut(bytes.TrimLeft(text.Uncoloured(at.Rest), " "), []byte(" "))
	return isGoFile(bytes.TrimSuffix(place, []byte("\r")))
}

// mayEvent reports whether an indented line may be a record of its own, by its first bytes.
func mayEvent(line []byte) bool {
	return len(line) > 7 && line[0] == ' ' && (line[1] == '*' || line[1] == ' ' && line[2] != ' ')
}

// isEvent reports whether an indented line is a record of its own by its whole form: of koa-logger
// and of Flask.
func isEvent(line []byte) bool {
	switch {
	case line[1] == '*' && line[2] == ' ':
		for _, begin := range [...]string{"Running on ", "Serving Flask app", "Debug mode: ", "Restarting with ", "Debugger is active!", "Debugger PIN: ", "Environment: ", "Detected change in ", "Tip: "} {
			if bytes.HasPrefix(line[3:], []byte(begin)) {
				return true
			}
		}
	case line[1] == ' ' && (line[2] == '<' || line[2] == '-' || line[2] == 'x' || line[2] == 0x1b):
		s := text.Uncoloured(line[2:])
		if len(s) < 6 || string(s[:4]) != "<-- " && string(s[:4]) != "--> " && string(s[:4]) != "xxx " {
			return false
		}
		method, path, ok := bytes.Cut(s[4:], []byte(" "))
		for _, c := range method {
			ok = ok && c-'A' < 26
		}
		return ok && len(method) > 2 && len(path) > 0 && (path[0] == '/' || path[0] == '*')
	}
	return false
}
